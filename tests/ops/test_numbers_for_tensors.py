# SPDX-License-Identifier: Apache-2.0
"""Python numbers in place of a source or value. Complex ones were read as whole numbers, bit by bit."""

import pytest
import tenon

CALLS = {
    "scatter": lambda x, i, value: tenon.scatter(x, i, value),
    "scatter_add": lambda x, i, value: tenon.scatter_add(x, i, value),
    "index_put": lambda x, i, value: tenon.index_put(x, [i], value),
    "index_put accumulated": lambda x, i, value: tenon.index_put(x, [i], value, accumulate=True),
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_written_into_complex_tensors(name, dtype):
    x, index = tenon.zeros((3,), dtype=dtype), tenon.tensor([1])
    for number in (0.5 + 0.25j, 0.5, 3, True):
        assert CALLS[name](x, index, number).tolist() == [0, complex(number), 0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_written_into_real_tensors(name, dtype):
    x, index = tenon.zeros((3,), dtype=dtype), tenon.tensor([1])
    for number in (2.0, 3, True):
        assert CALLS[name](x, index, number).tolist() == [0, number, 0]
    text = rf"expected (source|value) of dtype {dtype}, got complex64"
    with pytest.raises(TypeError, match=text):
        CALLS[name](x, index, 1j)
