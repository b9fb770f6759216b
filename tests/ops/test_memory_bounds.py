# SPDX-License-Identifier: Apache-2.0
"""No kernel reads past its arguments, whatever extents are 0."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_kernels_stay_within_their_arguments(device):
    if device != "cpu":
        pytest.skip("guard pages are for memory of the host")
    program = Path(__file__).with_name("memory_bounds.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    calls = done.stdout.splitlines()
    assert done.returncode == 0, f"in {calls[-1:]}: {done.stderr[-2000:]}"
    assert len(calls) > 30_000
