# SPDX-License-Identifier: Apache-2.0
"""Operators on windows and diagonals: what they refuse, and that they are each other's inverse or adjoint."""

import pytest
import tenon


def test_columns_are_the_operand_of_a_convolution():
    x, weight = tenon.randn((2, 3, 6, 7)), tenon.randn((4, 3, 3, 2))
    geometry = dict(stride=[2, 1], padding=[1, 2], dilation=[1, 2])
    columns = tenon.im2col(x, [3, 2], **geometry)
    want = tenon.conv2d(x, weight, None, *geometry.values())
    got = (weight.reshape(4, -1) @ columns).reshape(want.shape)
    assert tenon.allclose(got, want, atol=1e-5)


def test_windows_that_do_not_overlap_come_back():
    x = tenon.randn((2, 3, 4, 6))
    columns = tenon.im2col(x, [2, 3], stride=[2, 3])
    assert bool((tenon.col2im(columns, [4, 6], [2, 3], stride=[2, 3]) == x).all())


REFUSED = {
    "im2col of a matrix": (
        lambda: tenon.im2col(tenon.ones((4, 5)), [2, 2]),
        r"\[im2col\] expected images of shape \[N, C, H, W\], got shape \(4, 5\)",
    ),
    "im2col of a large window": (
        lambda: tenon.im2col(tenon.ones((1, 1, 4, 5)), [5, 2]),
        r"\[im2col\] expected room for a window of 5 by 2",
    ),
    "col2im of a vector": (
        lambda: tenon.col2im(tenon.ones((4,)), [4, 4], [2, 2]),
        r"\[col2im\] expected columns of shape \[N, C \* KH \* KW, L\]",
    ),
    "col2im of other windows": (
        lambda: tenon.col2im(tenon.ones((1, 4, 8)), [4, 4], [2, 2]),
        r"\[col2im\] expected a multiple of 4 rows and 3 x 3 columns, got shape \(1, 4, 8\)",
    ),
    "col2im of other channels": (
        lambda: tenon.col2im(tenon.ones((1, 6, 9)), [4, 4], [2, 2]),
        r"\[col2im\] expected a multiple of 4 rows and 3 x 3 columns, got shape \(1, 6, 9\)",
    ),
    "diag_embed of a number": (
        lambda: tenon.diag_embed(tenon.tensor(1.0)),
        r"\[diag_embed\] expected at least one axis",
    ),
    "diag_embed in one axis": (
        lambda: tenon.diag_embed(tenon.ones((2,)), 0, 1, -1),
        r"\[diag_embed\] expected two different axes, got 1 twice",
    ),
    "diag_embed far away": (
        lambda: tenon.diag_embed(tenon.ones((2,)), -(2**63)),
        "too many elements",
    ),
    "cov of matrices": (lambda: tenon.cov(tenon.ones((2, 3, 4))), r"\[cov\]"),
    "corrcoef of matrices": (lambda: tenon.corrcoef(tenon.ones((2, 3, 4))), r"\[corrcoef\]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()
