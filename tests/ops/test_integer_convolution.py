# SPDX-License-Identifier: Apache-2.0
"""conv2d_integer beside exact integers: every combination of signs, shapes that take each way of the kernel, and extremes."""

import numpy as np
import pytest
import tenon
from references.quantization import conv2d_integer as reference

LIMITS = {"int8": (-128, 128), "uint8": (0, 256)}
# x, weight, and stride, padding, dilation, groups
SHAPES = {
    "3x3": ((2, 5, 9, 11), (7, 5, 3, 3), (1, 1, 1, 1)),
    "3x3 of many": ((1, 70, 14, 14), (33, 70, 3, 3), (1, 1, 1, 1)),
    "stride": ((2, 16, 17, 33), (20, 16, 3, 3), (2, 1, 1, 1)),
    "stride 3": ((1, 3, 40, 41), (8, 3, 5, 5), (3, 2, 1, 1)),
    "wide rows": ((1, 3, 3, 300), (6, 3, 3, 7), ([1, 2], [1, 3], 1, 1)),
    "dilation": ((1, 4, 20, 21), (6, 4, 3, 3), (1, [4, 5], [2, 3], 1)),
    "groups": ((2, 12, 8, 8), (18, 4, 3, 3), (1, 1, 1, 3)),
    "depthwise": ((2, 9, 13, 15), (9, 1, 3, 3), (1, 1, 1, 9)),
    "depthwise of two": ((1, 4, 9, 9), (8, 1, 5, 5), (2, 2, 1, 4)),
    "1x1": ((3, 40, 6, 7), (50, 40, 1, 1), (1, 0, 1, 1)),
    "1x1 stride": ((2, 40, 7, 7), (20, 40, 1, 1), (2, 0, 1, 1)),
    "margins alone": ((1, 2, 1, 1), (3, 2, 3, 3), (1, 3, 1, 1)),
    "deep": ((1, 350, 6, 6), (5, 350, 3, 3), (1, 1, 1, 1)),
    "one filter": ((1, 200, 10, 10), (1, 200, 3, 3), (1, 1, 1, 1)),
}


def draw(rng, dtype, shape):
    """All numbers that there are, and the extreme ones often."""
    low, high = LIMITS[dtype]
    return rng.choice([*range(low, high), *[low, high - 1] * 64], shape).astype(dtype)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    "kinds", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")], ids=str
)
def test_sums_are_exact(name, kinds, device):
    x_shape, weight_shape, settings = SHAPES[name]
    rng = np.random.default_rng(len(name))
    x, weight = draw(rng, kinds[0], x_shape), draw(rng, kinds[1], weight_shape)
    given = [tenon.tensor(each, device=device) for each in (x, weight)]
    for zero, weight_zero in (
        (None, None),
        (LIMITS[kinds[0]][1] - 3, None),
        (5, draw(rng, kinds[1], weight_shape[:1])),
    ):
        points = [
            None if each is None else tenon.tensor(np.asarray(each), device=device)
            for each in (zero, weight_zero)
        ]
        got = tenon.conv2d_integer(*given, *points, *settings)
        assert got.dtype == tenon.int32
        want = reference(x, weight, zero, weight_zero, *settings)
        np.testing.assert_array_equal(got.to("cpu").numpy(), want)


def test_no_images_give_none(device):
    x, weight = tenon.zeros([0, 3, 5, 5], device=device), tenon.zeros([4, 3, 3, 3], device=device)
    assert tenon.conv2d_integer(x.to("uint8"), weight.to("int8"), padding=1).shape == (0, 4, 5, 5)


def test_sums_that_int32_does_not_hold_wrap():
    x = tenon.full([1, 40000, 1, 1], 255).to("uint8")
    sums = tenon.conv2d_integer(x, x)
    assert sums.item() == (40000 * 255 * 255 + 2**31) % 2**32 - 2**31


def test_threads_and_layouts_change_nothing():
    rng = np.random.default_rng(3)
    x = tenon.tensor(draw(rng, "uint8", (3, 24, 19, 23)))
    weight = tenon.tensor(draw(rng, "int8", (40, 24, 3, 3)))
    want = tenon.conv2d_integer(x, weight, 7, None, 1, 1)
    channels_last = x.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
    for other in (channels_last, tenon.concat([x, x], 0)[:3]):
        assert (tenon.conv2d_integer(other, weight, 7, None, 1, 1) == want).all()


def test_what_is_refused():
    x, weight = tenon.ones((1, 2, 4, 4)).to("uint8"), tenon.ones((3, 2, 3, 3)).to("int8")
    with pytest.raises(TypeError, match="expected one of uint8, int8, got float32"):
        tenon.conv2d_integer(x.to("float32"), weight)
    with pytest.raises(TypeError, match="expected weight of dtype"):
        tenon.conv2d_integer(x, weight.to("int32"))
    with pytest.raises(TypeError, match="expected x_zero_point of dtype"):
        tenon.conv2d_integer(x, weight, tenon.tensor(1.5))
    with pytest.raises(ValueError, match=r"x_zero_point to be one number, got shape \(2,\)"):
        tenon.conv2d_integer(x, weight, tenon.tensor([1, 2]))
    with pytest.raises(
        ValueError, match="weight_zero_point to be one number or one for each of the 3 filters"
    ):
        tenon.conv2d_integer(x, weight, None, tenon.tensor([1, 2]))
    with pytest.raises(ValueError, match="x_zero_point that the dtype of x, uint8, holds, got 256"):
        tenon.conv2d_integer(x, weight, tenon.tensor(256))
    with pytest.raises(ValueError, match=r"weight.shape\[1\] \* groups == channels"):
        tenon.conv2d_integer(x, weight, groups=3)
    with pytest.raises(ValueError, match="expected room for a window of 3 by 3"):
        tenon.conv2d_integer(x[:, :, :2], weight)
