# SPDX-License-Identifier: Apache-2.0
"""Where the stand-in plugins are, and programs of their own."""

import os
import pathlib
import subprocess
import sys

import tenon

LIBRARIES = (
    pathlib.Path(os.environ.get("TENON_BUILD_DIR", "build/release")).absolute()
    / "tests/compat/paddle_device/libraries"
)


def library(name):
    return str(LIBRARIES / f"lib{name}.so")


def rows_of(device):
    """What ran on a device: a dict from operator to its row of the report."""
    return {row["op"]: row for row in tenon.fallback_report() if row["device"] == device}


def run_python(program, **environment):
    """Exit code, stdout and stderr of a program in a process of its own."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr
