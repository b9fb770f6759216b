# SPDX-License-Identifier: Apache-2.0
"""interpolate2d beside infinities and small numbers, and of integers."""

import numpy as np
import pytest
import tenon
from references.pooling import interpolate2d as resize
from running import skip_unserved, to_tensor

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("beside", [INF, -INF, NAN])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_neighbour_of_weight_zero_is_left_out(beside, dtype, device):
    """x + 0 * (inf - x) is NaN."""
    images = [[[[[1.0, beside], [2.0, 3.0]]]], [[[[beside, 1.0], [3.0, 2.0]]]]]
    for image in images:
        x = tenon.tensor(image, dtype=dtype, device=device)
        got = tenon.interpolate2d(x, [2, 7], "bilinear").to("cpu").to("float64").numpy()
        np.testing.assert_array_equal(got[0, 0, 0, [0, -1]], np.array(image)[0, 0, 0])
        assert np.isfinite(got[0, 0, 1]).all()
    x = tenon.tensor(images[0], dtype=dtype, device=device)
    for size in ([2, 2], [1, 1], [3, 3]):
        got = tenon.interpolate2d(x, size, "bilinear", True).to("cpu").to("float64").numpy()
        np.testing.assert_array_equal(got[0, 0, 0, 0], 1.0)


@pytest.mark.parametrize("align_corners", [False, True])
def test_a_small_neighbour_keeps_its_digits(align_corners, device):
    """At weight 1, x + weight * (y - x) errs by a rounding of x."""
    image = np.array([[[[-5603.0, -0.030526], [0, 0]]]], np.float32)
    x = to_tensor(image, device)
    got = tenon.interpolate2d(x, [5, 9], "bilinear", align_corners).to("cpu").numpy()
    want = resize(image.astype(np.float64), [5, 9], "bilinear", align_corners)
    np.testing.assert_allclose(got, want, rtol=2.0**-22)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64"])
def test_integers_have_no_weights(dtype, device):
    skip_unserved(device, dtype)
    x = tenon.tensor([[[[1, 1, 0]]]], dtype=dtype, device=device)
    text = (
        rf"\[interpolate2d\] expected a floating x for mode 'bilinear', got {dtype}; convert it with "
        r"\.to\(float32\), or use mode 'nearest'"
    )
    with pytest.raises(TypeError, match=text):
        tenon.interpolate2d(x, [2, 3], "bilinear")
    got = tenon.interpolate2d(x, [2, 6])
    assert got.dtype == x.dtype and got.tolist() == [[[[1, 1, 1, 1, 0, 0]] * 2]]
