# SPDX-License-Identifier: Apache-2.0
"""Python numbers in place of a source or value. Complex ones were read as whole numbers, bit by bit."""

import pytest
import tenon
from running import skip_unserved

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
    complex_dtype = "complex128" if dtype == "float64" else "complex64"
    text = rf"expected (source|value) of dtype {dtype}, got {complex_dtype}"
    with pytest.raises(TypeError, match=text):
        CALLS[name](x, index, 1j)


@pytest.mark.parametrize(
    ("dtype", "numbers"), [("float64", [0.585]), ("complex128", [0.585, 0.1 + 0.7j])]
)
@pytest.mark.parametrize("name", [*CALLS, "masked_scatter"])
def test_numbers_beside_doubles_keep_their_digits(name, dtype, numbers, device):
    """They passed through float32: 0.585 became 0.5849999785."""
    skip_unserved(device, dtype)
    calls = {**CALLS, "masked_scatter": lambda x, i, v: tenon.masked_scatter(x, i == 1, v)}
    index = tenon.tensor([0, 1, 0] if name == "masked_scatter" else [1], device=device)
    x = tenon.zeros((3,), dtype=dtype, device=device)
    for number in numbers:
        for recorded in {False, dtype == "float64"}:
            result = calls[name](x.detach().requires_grad_(recorded), index, number)
            assert result.dtype == x.dtype and result.tolist() == [0, number, 0]


@pytest.mark.parametrize("number", [True, 1, 1j], ids=str)
def test_a_number_in_the_first_place_has_the_dtype_of_its_kind(number):
    # The tensors behind it have chosen the kernel, which then read a byte as a float64.
    scale, found = tenon.tensor([0.5]), tenon.tensor([0.0])
    with pytest.raises(TypeError, match="expected one of float8_e4m3, .*, float64, got"):
        tenon.check_finite_and_unscale(number, scale, found)
    unscaled, bad = tenon.check_finite_and_unscale(2.5, scale, found)
    assert unscaled.item() == 1.25 and bad.item() == 0
