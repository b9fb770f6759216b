# SPDX-License-Identifier: Apache-2.0
"""`values, indices = x.max(1)`, which means something else in PyTorch, is told."""

import warnings

import pytest
import tenon


def test_two_rows_of_maxima_taken_apart_are_told_once():
    x = tenon.arange(6, dtype="float32").reshape((2, 3))

    def as_in_pytorch(x):
        values, indices = x.max(1)
        return values, indices

    with pytest.warns(UserWarning, match=r"Tenon's max gives the values alone, and x.argmax"):
        assert [each.item() for each in as_in_pytorch(x)] == [2.0, 5.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_in_pytorch(x)
    with pytest.warns(UserWarning, match="x.argsort"):
        values, indices = x.sort(1)
    with pytest.warns(UserWarning, match="x.argmin"):
        values, indices = tenon.min(x, 1)
    assert indices.shape == ()


def test_what_is_meant_is_not():
    x = tenon.arange(6, dtype="float32").reshape((2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = x.max(axis=1)
        first, second = x
        first, second = x.sum(1)
        rows = [*x.max(1)]
        for _ in x.min(1):
            pass
        pair = tuple(x.max(1))
    assert first.item() == 3.0 and second.item() == 12.0
    assert len(rows) == len(pair) == 2
