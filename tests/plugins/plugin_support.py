# SPDX-License-Identifier: Apache-2.0
"""What tests of plugins share. Not in conftest.py: other folders have modules of that name."""

import os
import subprocess
import sys

import tenon

OWN_PLUGINS = os.path.join(tenon.sdk_path(), "plugins")
# Made for the loader's tests in C++; "faulty" has the fault that TENON_TEST_FAULT names.
FAULTY_PLUGINS = os.path.join(os.environ.get("TENON_BUILD_DIR", ""), "tests/plugins/libraries")
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


def copy_plugin(folder, name, edit=None):
    """A copy of one of the host's own plugins in `folder`, its bytes changed by `edit`."""
    with open(os.path.join(OWN_PLUGINS, f"libtenon_{name}.so"), "rb") as file:
        data = file.read()
    path = os.path.join(folder, f"libtenon_{name}.so")
    with open(path, "wb") as file:
        file.write(edit(data) if edit else data)
    os.chmod(path, 0o755)
    return path


def with_epoch(epoch):
    """An edit for copy_plugin: the note speaks that ABI epoch."""

    def edit(data):
        at = data.index(b"TENON\0\0\0") + 8
        return data[:at] + epoch.to_bytes(4, sys.byteorder) * 2 + data[at + 8 :]

    return edit


def announce(folder, name, value):
    """A distribution `name` in `folder`, with the entry point `name = value` and all its files."""
    info = os.path.join(folder, f"{name}-1.0.dist-info")
    os.mkdir(info)
    with open(os.path.join(info, "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    with open(os.path.join(info, "entry_points.txt"), "w") as file:
        file.write(f"[tenon.plugins]\n{name} = {value}\n")
    with open(os.path.join(info, "RECORD"), "w") as file:
        for path, _, names in os.walk(folder):
            for each in names:
                file.write(os.path.relpath(os.path.join(path, each), folder) + ",,\n")


def command(*arguments, **environment):
    """Run `tenon` in a process of its own: (exit code, standard output, standard error)."""
    return python("-m", "tenon", *arguments, **environment)


def python(*arguments, **environment):
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )
    return result.returncode, result.stdout, result.stderr
