# SPDX-License-Identifier: Apache-2.0
"""Matrix products on more threads than this machine may have processors."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("threads", [16, 64])
def test_more_threads_than_the_rows_of_a_product(threads):
    """Rows are cut as well as columns, so that a tile has fewer rows than the algorithm was chosen for."""
    code = """
import numpy as np, tenon
rng = np.random.default_rng(0)
for m, n, k in [(17, 60, 784), (25, 50, 400), (32, 130, 1600), (33, 70, 400), (64, 256, 784)]:
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((m, k), (n, k)))
    np.testing.assert_array_equal((tenon.tensor(a) @ tenon.tensor(b).T).numpy(), a @ b.T)
"""
    environment = {**os.environ, "TENON_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
