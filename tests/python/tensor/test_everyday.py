# SPDX-License-Identifier: Apache-2.0
"""Names and keywords that users of NumPy and PyTorch type first, against NumPy's results."""

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


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: tenon.sum(x, dim=0), ARRAY.sum(0)),
        (lambda x: x.mean(dim=1, keepdims=True), ARRAY.mean(1, keepdims=True)),
        (lambda x: x.std(axis=1, ddof=1), ARRAY.std(axis=1, ddof=1)),
        (lambda x: tenon.cumsum(x, dim=1), ARRAY.cumsum(1)),
        (lambda x: tenon.cat([x, x], dim=1), np.concatenate([ARRAY, ARRAY], 1)),
        (lambda x: tenon.full((2,), fill_value=3.0), np.full((2,), fill_value=3.0)),
        (lambda x: tenon.full_like(x, fill_value=2), np.full_like(ARRAY, fill_value=2)),
        (lambda x: tenon.eye(3, 4, k=-1), np.eye(3, 4, k=-1)),
        (lambda x: tenon.tril(x, k=1), np.tril(ARRAY, k=1)),
        (lambda x: tenon.triu(x, k=-1), np.triu(ARRAY, k=-1)),
        (lambda x: tenon.topk(x, k=2, dim=1)[0], ARRAY[:, :0:-1]),
    ],
)
def test_keywords_of_numpy_and_pytorch(ours, numpys):
    np.testing.assert_array_equal(ours(T(ARRAY)).numpy(), numpys)


def test_a_keyword_and_its_spelling_are_two_values():
    with pytest.raises(TypeError, match="got two values for argument 'fill_value'"):
        tenon.full((2,), value=1, fill_value=2)
    with pytest.raises(TypeError, match=r"exp\(\): unknown keyword 'k'"):
        tenon.exp(T(ARRAY), k=1)


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
