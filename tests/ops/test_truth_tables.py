# SPDX-License-Identifier: Apache-2.0
"""Booleans, whose rules are expressions of their own, and questions that integers answer by dtype."""

import numpy as np
import pytest
import tenon
from running import skip_unserved, to_tensor

BINARY = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.logical_and,
    "bitwise_or": np.logical_or,
    "bitwise_xor": np.logical_xor,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
X, Y = np.array([False, False, True, True]), np.array([False, True, False, True])


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_of_booleans(name, device):
    skip_unserved(device, "bool")
    result = getattr(tenon, name)(to_tensor(X, device), to_tensor(Y, device))
    assert result.dtype == tenon.bool
    np.testing.assert_array_equal(result.to("cpu").numpy(), BINARY[name](X, Y))


REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "any": np.any,
    "all": np.all,
    "max": np.max,
    "min": np.min,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_booleans(name, device):
    skip_unserved(device, "bool")
    array = np.stack([X, Y, ~X, X | Y, np.ones(4, bool), np.zeros(4, bool)])
    result = getattr(tenon, name)(to_tensor(array, device), 1)
    np.testing.assert_array_equal(result.to("cpu").numpy(), REDUCTIONS[name](array, axis=1))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integers_are_finite_numbers(dtype, device):
    skip_unserved(device, dtype)
    x = to_tensor(np.array([0, 1, 0, 1, 1]).astype(dtype), device)
    assert tenon.isfinite(x).tolist() == [True] * 5
    assert tenon.isinf(x).tolist() == [False] * 5
    assert tenon.isnan(x).tolist() == [False] * 5
