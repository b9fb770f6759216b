# SPDX-License-Identifier: Apache-2.0
"""Linear algebra where there is no LAPACK."""

import os
import subprocess
import sys


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
