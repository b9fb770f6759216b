# SPDX-License-Identifier: Apache-2.0
"""Names that users of NumPy and PyTorch type first, against NumPy's results."""

import numpy as np
import pytest
import tenon

T = tenon.tensor
ARRAY = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("spelling", "own"),
    [
        ("absolute", "abs"),
        ("array", "tensor"),
        ("bmm", "matmul"),
        ("cat", "concat"),
        ("clamp", "clip"),
        ("concatenate", "concat"),
        ("mm", "matmul"),
        ("power", "pow"),
        ("swapaxes", "transpose"),
    ],
)
def test_spellings_are_the_same_objects(spelling, own):
    assert getattr(tenon, spelling) is getattr(tenon, own)
    assert spelling in dir(tenon)


def test_stacks():
    x, row = T(ARRAY), T(ARRAY[0])
    pairs = [
        (tenon.vstack([x, row]), np.vstack([ARRAY, ARRAY[0]])),
        (tenon.vstack([T(1.0), T(2.0)]), np.vstack([1.0, 2.0])),
        (tenon.hstack([x, x]), np.hstack([ARRAY, ARRAY])),
        (tenon.hstack([row, T(7.0)]), np.hstack([ARRAY[0], 7.0])),
        (tenon.ravel(x.T), np.ravel(ARRAY.T)),
        (tenon.argwhere(x), np.argwhere(ARRAY)),
    ]
    for got, want in pairs:
        np.testing.assert_array_equal(got.numpy(), want)
    assert tenon.array_equal(x, T(ARRAY)) is True
    assert tenon.array_equal(x, x + 1) is tenon.array_equal(x, row) is False


def test_random_numbers_of_a_shape():
    for shape in ((), (2,), (2, 3)):
        assert tenon.rand(*shape).shape == tenon.randn(*shape).shape == shape
    assert tenon.rand((2, 3)).shape == tenon.randn([2, 3], dtype="float64").shape == (2, 3)
    x = tenon.rand(1000)
    assert 0 <= x.min().item() < x.max().item() < 1
