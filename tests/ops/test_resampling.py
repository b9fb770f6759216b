# SPDX-License-Identifier: Apache-2.0
"""interpolate, affine_grid and grid_sample: what they refuse, coordinates far away, and adjoints."""

import numpy as np
import pytest
import tenon
from running import to_tensor

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_mean_of_equal_elements_is_exact(mode, dtype, device):
    x = tenon.full([1, 2, 5, 7], 3.0, dtype=dtype, device=device)
    got = tenon.interpolate(x, [3, 11], mode=mode).to("cpu").to("float64").numpy()
    np.testing.assert_allclose(got, 3.0, rtol=2e-7 if dtype == "float32" else 0)


def test_infinite_elements_stay_where_they_have_weight(device):
    x = tenon.tensor([[[1.0, INF, 2.0, 3.0]]], device=device)
    got = tenon.interpolate(x, [7], mode="linear", align_corners=True).to("cpu").numpy()[0, 0]
    np.testing.assert_array_equal(got, [1, INF, INF, INF, 2, 2.5, 3])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_coordinates_that_are_not_finite(mode, padding, device):
    """NaN is nowhere, and so is an infinity in a mirror; what is infinitely far away is outside."""
    x = tenon.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], device=device)
    points = [[NAN, NAN], [INF, INF], [-INF, INF], [-1.0, -1.0], [9e9, -9e9]]
    grid = tenon.tensor([[points]], device=device, requires_grad=True)
    out = tenon.grid_sample(x, grid, mode, padding, align_corners=True)
    got = out.detach().to("cpu").numpy()[0, 0, 0]
    assert np.isnan(got[0]) and got[3] == 1.0
    nowhere = [0, 1, 2] if padding == "reflection" else [0]
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(got)), nowhere)
    if padding == "zeros":
        np.testing.assert_array_equal(got[[1, 2, 4]], 0.0)
    if padding == "border":
        np.testing.assert_array_equal(got[[1, 2, 4]], [4.0, 3.0, 2.0])
    if mode != "nearest":
        out.sum().backward()
        assert np.isfinite(grid.grad.to("cpu").numpy()).all()


def test_empty_batches(device):
    x = to_tensor(np.ones((0, 2, 3, 4)), device)
    assert tenon.interpolate(x, [2, 5], mode="bilinear").shape == (0, 2, 2, 5)
    grid = to_tensor(np.ones((0, 6, 2)), device)
    assert tenon.grid_sample(x, grid).shape == (0, 2, 6)
    few = to_tensor(np.ones((2, 0, 2)), device)
    assert tenon.grid_sample(to_tensor(np.ones((2, 3, 4, 5)), device), few).shape == (2, 3, 0)


IMAGE = tenon.ones((1, 1, 4, 5))
REFUSED = {
    "mode of other axes": (
        lambda: tenon.interpolate(IMAGE, [2, 2], mode="linear"),
        r"expected mode 'nearest', 'nearest-exact', 'area' or 'bilinear', 'bicubic' for an x of 4 "
        "axes, got 'linear'",
    ),
    "a matrix": (lambda: tenon.interpolate(tenon.ones((4, 5)), [2]), "expected x to have 3 to 5"),
    "neither size": (lambda: tenon.interpolate(IMAGE), "one of size and scale_factor, got neither"),
    "both": (lambda: tenon.interpolate(IMAGE, [2, 2], [2.0]), "scale_factor, got both"),
    "three sizes": (
        lambda: tenon.interpolate(IMAGE, [2, 2, 2]),
        "expected size to be one number or 2, got 3",
    ),
    "no size": (lambda: tenon.interpolate(IMAGE, [2, 0]), r"size of at least 1, got \(2, 0\)"),
    "three factors": (
        lambda: tenon.interpolate(IMAGE, None, [2.0, 2.0, 2.0]),
        "expected scale_factor to be one number or 2, got 3",
    ),
    "small factor": (
        lambda: tenon.interpolate(IMAGE, None, [0.1]),
        "scale factors that leave at least one element of 4, got 0.1",
    ),
    "nan factor": (lambda: tenon.interpolate(IMAGE, None, [NAN]), "at least one element of 4, got"),
    "antialias": (
        lambda: tenon.interpolate(IMAGE, [2, 2], antialias=True),
        "expected mode 'bilinear' or 'bicubic' for antialias, got 'nearest'",
    ),
    "empty image": (
        lambda: tenon.interpolate(tenon.ones((1, 1, 0, 5)), [2, 2]),
        r"expected an image with elements, got shape \(1, 1, 0, 5\)",
    ),
    "affine size": (
        lambda: tenon.affine_grid(tenon.ones((1, 2, 3)), [1, 1, 4]),
        r"expected size \[N, C, H, W\] or \[N, C, D, H, W\], got \(1, 1, 4\)",
    ),
    "affine map": (
        lambda: tenon.affine_grid(tenon.ones((1, 2, 2)), [1, 1, 4, 4]),
        r"expected theta of shape \(1, 2, 3\) for size \(1, 1, 4, 4\), got \(1, 2, 2\)",
    ),
    "grid of a volume": (
        lambda: tenon.grid_sample(IMAGE, tenon.ones((1, 2, 3))),
        r"expected x \[N, C, H, W\] and grid \[N, ..., 2\], or x",
    ),
    "grid mode": (
        lambda: tenon.grid_sample(tenon.ones((1, 1, 2, 2, 2)), tenon.ones((1, 2, 3)), "bicubic"),
        r"expected mode 'bilinear', 'nearest' or, for images \[N, C, H, W\], 'bicubic', got",
    ),
    "padding mode": (
        lambda: tenon.grid_sample(IMAGE, tenon.ones((1, 2, 2)), "nearest", "circular"),
        "expected padding_mode 'zeros', 'border' or 'reflection', got 'circular'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_dtypes_refused():
    with pytest.raises(TypeError, match="expected a floating x for mode 'area', got int32"):
        tenon.interpolate(tenon.ones((1, 1, 3), dtype="int32"), [2], mode="area")
    with pytest.raises(TypeError, match="expected x and grid of one floating dtype, got float32"):
        tenon.grid_sample(IMAGE, tenon.ones((1, 2, 2), dtype="float64"))
