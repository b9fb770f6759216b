# SPDX-License-Identifier: Apache-2.0
"""What tests of plugins share. Not in conftest.py: other folders have modules of that name."""

import os
import subprocess
import sys

import tenon

OWN_PLUGINS = os.path.join(tenon.sdk_path(), "plugins")


def copy_plugin(folder, name, edit=None):
    """A copy of one of the host's own plugins in `folder`, its bytes changed by `edit`."""
    with open(os.path.join(OWN_PLUGINS, f"libtenon_{name}.so"), "rb") as file:
        data = file.read()
    path = os.path.join(folder, f"libtenon_{name}.so")
    with open(path, "wb") as file:
        file.write(edit(data) if edit else data)
    os.chmod(path, 0o755)
    return path


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
