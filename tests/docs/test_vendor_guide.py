# SPDX-License-Identifier: Apache-2.0
"""docs/vendors.md, command by command, as a vendor would follow it in an environment of their own.

Blocks marked `sh` and `python` run in order in one folder; `cd` carries over. Those marked `diff` are
applied. `pip install tenon` is what this test
stands in for: the environment sees the package that was built.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time

import pytest
import tenon

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUIDE = os.path.join(ROOT, "docs", "vendors.md")
BUILD = os.environ.get("TENON_BUILD_DIR")

pytestmark = pytest.mark.skipif(
    not BUILD or shutil.which("cmake") is None, reason="TENON_BUILD_DIR or cmake is missing"
)


def blocks():
    with open(GUIDE, encoding="utf-8") as file:
        return re.findall(r"^```(sh|python|diff)\n(.*?)^```", file.read(), re.M | re.S)


@pytest.fixture(scope="module")
def user():
    """An environment with `tenon` and nothing of this test's, in a folder that plugins may lie in."""
    home = os.path.join(BUILD, "vendor_guide")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{home}/venv"], check=True)
    package = os.path.dirname(os.path.dirname(tenon.__file__))
    # As in a wheel: the SDK inside the package.
    subprocess.run(
        ["cmake", "--install", BUILD, "--component", "sdk", "--prefix", f"{package}/tenon"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    with open(f"{home}/venv/lib/{version}/site-packages/built.pth", "w") as file:
        file.write(f"{package}\n{sysconfig.get_path('purelib')}\n")
    commands = {
        "tenon": 'exec python -m tenon "$@"',
        "pip": 'exec python -m pip --disable-pip-version-check "$@"',
        "tenon-conformance": f'exec "{package}/tenon/bin/tenon-conformance" "$@"',
    }
    for name, body in commands.items():
        path = f"{home}/venv/bin/{name}"
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(path, 0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "PYTHON"))}
    environment["PATH"] = f"{home}/venv/bin:{environment['PATH']}"
    environment["FOLDER_FILE"] = f"{home}/folder"  # where the last block ended
    environment["CMAKE_GENERATOR"] = "Ninja"
    environment["TENON_PLUGIN_TRUST"] = "any"
    return home, environment


def test_the_guide_holds(user):
    folder, environment = user
    for language, text in blocks():
        began = time.monotonic()
        if language == "sh":
            lines = [line for line in text.splitlines() if line != "pip install tenon"]
            command = ["bash", "-euc", "\n".join([*lines, 'pwd > "$FOLDER_FILE"'])]
        elif language == "diff":
            command = ["patch", "-p1"]
        else:
            command = ["python", "-c", text]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=text if language == "diff" else None,
            capture_output=True,
            text=True,
            timeout=600,
        )
        shown = f"{text}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, shown
        print(f"{time.monotonic() - began:5.1f} s  {text.splitlines()[0]}")
        if language == "sh":
            with open(environment["FOLDER_FILE"]) as file:
                folder = file.read().strip()


def test_the_template_is_as_small_as_the_guide_says():
    from tenon.cli.new_device import template_folder

    runtime = os.path.join(template_folder(), "runtime")
    with open(os.path.join(template_folder(), "kernels", "primitives.c")) as file:
        kernels = file.read()
    lines, functions = 0, 0
    for name in os.listdir(runtime):
        with open(os.path.join(runtime, name)) as file:
            text = file.read()
        lines += text.count("\n")
        if name.endswith(".c"):
            functions += len(re.findall(r"^\w[\w *]+\([^;]*?\) \{", text, re.M))
    # The eight, the entry point, and two that are not the contract's: `stop` and the error helper.
    assert functions == 8 + 1 + 2
    assert lines < 200
    assert lines + kernels.count("\n") < 600
    assert len(re.findall("^TENON_BOX_primitive_", kernels, re.M)) == 11
