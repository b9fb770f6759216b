# SPDX-License-Identifier: Apache-2.0
"""What kernels from source refuse, and in which words."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tenon

if os.environ.get("TENON_KERNEL_C_HOST_LIKE") == "0":
    pytest.skip("positions are checked on processors only", allow_module_level=True)


@pytest.mark.parametrize("position", [3, -4, 2**40])
@pytest.mark.parametrize(
    "op, call",
    [
        ("index_select", lambda x, i: tenon.index_select(x, i)),
        ("gather", lambda x, i: tenon.gather(x, i, 0)),
        ("scatter", lambda x, i: tenon.scatter(x, i, 1.0, 0)),
        ("index", lambda x, i: x[i]),
    ],
)
def test_positions_outside_are_named(op, call, position, device):
    x = tenon.tensor(np.arange(3, dtype=np.float32), device=device)
    index = tenon.tensor(np.array([0, position]), device=device)
    with pytest.raises(IndexError) as caught:
        call(x, index)
    assert f"[{op}] expected positions from -3 to 2, got {position}" in str(caught.value)


def test_unchecked_positions_touch_no_foreign_memory(device):
    """They read zero and write nothing."""
    program = f"""
import numpy as np, tenon
x = tenon.tensor(np.arange(1, 4, dtype=np.float32), device={device!r})
index = tenon.tensor(np.array([0, 2**40, -(2**40)]), device={device!r})
print(tenon.index_select(x, index).to("cpu").numpy().tolist(),
      tenon.scatter_add(x, index, 10.0, 0).to("cpu").numpy().tolist(),
      tenon.index_put(x, [index], 7.0).to("cpu").numpy().tolist())
"""
    environment = {**os.environ, "TENON_KERNEL_C_CHECK": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[1.0, 0.0, 0.0] [11.0, 2.0, 3.0] [7.0, 2.0, 3.0]"


def test_numbers_that_make_no_sense(device):
    with pytest.raises(ValueError, match=r"\[normal\] expected std of at least 0, got -1"):
        tenon.normal([3], 0.0, -1.0, device=device)
    with pytest.raises(ValueError, match=r"\[randint\] expected low < high, got 5 and 5"):
        tenon.randint(5, 5, [3], device=device)


def test_dtypes_without_arithmetic_are_refused(device):
    x = tenon.zeros([2], dtype=tenon.float8_e4m3, device="cpu").to(device)
    with pytest.raises(tenon.PolicyError, match=r"\[add\]"):
        x + x
