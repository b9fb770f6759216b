# SPDX-License-Identifier: Apache-2.0
"""Masks that are no masks. Elements of a mask of another dtype were counted by their dtype and read as
bytes, and what was written did not fit the result."""

import numpy as np
import pytest
import tenon
from running import skip_unserved, to_tensor


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_masked_select_takes_bools_alone(dtype, device):
    skip_unserved(device, dtype)
    x = to_tensor(np.arange(100.0, dtype="float32"), device)
    mask = to_tensor((np.arange(100) % 3).astype(dtype), device)
    text = (
        rf"\[masked_select\] expected mask of dtype bool, got {dtype}; compare it, as by mask != 0"
    )
    with pytest.raises(TypeError, match=text):
        tenon.masked_select(x, mask)
    got = tenon.masked_select(x, mask != 0)
    np.testing.assert_array_equal(got.to("cpu").numpy(), np.arange(100)[np.arange(100) % 3 != 0])


def test_masked_select_takes_a_number_that_is_a_bool():
    x = tenon.tensor([1.0, 2.0])
    assert tenon.masked_select(x, True).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="expected mask of dtype bool, got int64"):
        tenon.masked_select(x, 1)
