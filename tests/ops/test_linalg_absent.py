# SPDX-License-Identifier: Apache-2.0
"""Linear algebra where there is no LAPACK."""

import os
import subprocess
import sys

import pytest


def test_without_lapack_the_error_says_what_to_install(tmp_path):
    program = "import tenon; tenon.matmul(tenon.ones([2, 2]), tenon.ones([2, 2])); tenon.inv(tenon.ones([2, 2]))"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TENON_LAPACK": str(tmp_path / "absent.so")},
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert "[inv] expected a LAPACK library, found none in" in result.stderr
    assert "pip install scipy-openblas32" in result.stderr and "TENON_LAPACK" in result.stderr


CORE = """
import ctypes
import tenon

tenon.linalg.inv(tenon.eye(3))
paths = {line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line}
for path in paths:
    for name in ("openblas_get_corename", "scipy_openblas_get_corename", "scipy_openblas_get_corename64_"):
        core = getattr(ctypes.CDLL(path), name, None)
        if core:
            core.restype = ctypes.c_char_p
            print(core().decode())
"""


def test_an_openblas_older_than_the_processor_uses_its_instructions():
    """OpenBLAS takes a processor that it does not know for one with SSE3."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        flags = file.read()
    if "avx2" not in flags:
        pytest.skip("the processor has no AVX2")
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    command = [sys.executable, "-c", CORE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "Prescott" not in done.stdout and "Generic" not in done.stdout
