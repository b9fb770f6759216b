# SPDX-License-Identifier: Apache-2.0
"""repr: readable, aligned, short, and it says what is unusual."""

import pytest
import tenon


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tenon.tensor([1.0, 2.5]), "tensor([1.0, 2.5])"),
        (lambda: tenon.tensor([1.0, 20.0]), "tensor([ 1., 20.])"),
        (lambda: tenon.tensor(3.0), "tensor(3.)"),
        (lambda: tenon.tensor([1, -20]), "tensor([  1, -20])"),
        (lambda: tenon.tensor([True, False]), "tensor([ True, False])"),
        (lambda: tenon.tensor([]), "tensor([])"),
        (lambda: tenon.zeros((2, 0)), "tensor([], shape=(2, 0))"),
        (lambda: tenon.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (lambda: tenon.tensor([1 / 3, 1.0]), "tensor([0.3333, 1.0000])"),
        (lambda: tenon.tensor([1e-10, 1.0]), "tensor([1.0000e-10, 1.0000e+00])"),
        (lambda: tenon.tensor([1.5, tenon.nan, -tenon.inf]), "tensor([ 1.5,  nan, -inf])"),
        (lambda: tenon.tensor([1 + 2j, 3 - 4j]), "tensor([1+2j, 3-4j], dtype=tenon.complex64)"),
        (lambda: tenon.tensor([1], dtype="int8"), "tensor([1], dtype=tenon.int8)"),
        (lambda: tenon.empty((2, 3), device="meta"), "tensor(..., shape=(2, 3), device='meta:0')"),
        (lambda: tenon.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: tenon.tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<multiply>)"),
        (lambda: tenon.arange(2000), "tensor([   0,    1,    2, ..., 1997, 1998, 1999])"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == str(make()) == text


def test_large_tensors_show_their_corners():
    text = repr(tenon.arange(10_000).reshape(100, 100))
    assert text.startswith("tensor([[   0,    1,    2, ...,   97,   98,   99],\n")
    assert "...,\n" in text and len(text) < 600


def test_long_rows_are_wrapped():
    lines = repr(tenon.arange(100)).splitlines()
    assert len(lines) > 3 and all(len(line) <= 90 for line in lines)


def test_half_precision_prints():
    assert repr(tenon.tensor([1.5], dtype="bfloat16")) == "tensor([1.5], dtype=tenon.bfloat16)"


@pytest.mark.parametrize("name", ["precision", "edgeitems", "linewidth"])
def test_options_that_are_no_whole_numbers_are_refused(name):
    for value in (2.0, "2"):
        with pytest.raises(TypeError, match=f"expected {name} to be a whole number, got {value!r}"):
            tenon.set_printoptions(**{name: value})
    with pytest.raises(TypeError, match="expected threshold to be a whole number, got 'all'"):
        tenon.set_printoptions(threshold="all")
    assert repr(tenon.tensor([1.5])) == "tensor([1.5])"


def test_a_threshold_may_be_infinite():
    with tenon.printoptions(threshold=float("inf")):
        assert "..." not in repr(tenon.arange(2000))
    with tenon.printoptions(threshold=10.0):
        assert "..." in repr(tenon.arange(20))


def test_a_number_in_a_text_is_a_number():
    x = tenon.tensor([1.0, 2.0], requires_grad=True)
    assert f"{x.sum()} {x.detach().sum():.2f} {tenon.tensor(3)}" == "3.0 3.00 3"
    assert f"{tenon.tensor([1, 2])}" == str(tenon.tensor([1, 2]))
    meta = tenon.ones((), device="meta")
    assert f"{meta}" == str(meta)
