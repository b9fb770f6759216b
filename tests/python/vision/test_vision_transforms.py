# SPDX-License-Identifier: Apache-2.0
"""tenon.vision.transforms against NumPy, SciPy, colorsys and exact values."""

import colorsys
import math

import numpy as np
import pytest
import scipy.ndimage
import tenon
from tenon.vision import transforms as V
from tenon.vision.transforms import functional as F

RNG = np.random.default_rng(0)
IMAGE = RNG.uniform(size=(2, 3, 17, 23))
BYTES = RNG.integers(0, 256, size=(3, 9, 12)).astype(np.uint8)
T = tenon.tensor


def test_arrays_become_images():
    picture = BYTES.transpose(1, 2, 0)
    image = F.to_tensor(picture)
    assert image.dtype == tenon.float32 and image.shape == (3, 9, 12)
    np.testing.assert_allclose(image.numpy(), BYTES / 255, rtol=1e-6)
    assert F.to_tensor(picture[..., 0]).shape == (1, 9, 12)
    assert F.to_tensor(picture.astype(np.float64)).dtype == tenon.float64
    with pytest.raises(TypeError, match="expected an array, a Pillow image or a tensor, got str"):
        F.to_tensor("cat.png")
    with pytest.raises(ValueError, match=r"expected \[H, W\] or \[H, W, C\], got shape \(4,\)"):
        F.to_tensor(np.zeros(4))


def test_dtypes_of_images():
    exact = F.convert_image_dtype(T(BYTES), tenon.float32)
    np.testing.assert_allclose(exact.numpy(), BYTES / 255, rtol=1e-6)
    np.testing.assert_array_equal(V.ConvertImageDtype(tenon.uint8)(exact).numpy(), BYTES)
    wide = F.convert_image_dtype(T(BYTES), tenon.int16)
    np.testing.assert_array_equal(wide.numpy(), BYTES.astype(np.int16) << 7)
    for dtype in (tenon.int16, tenon.int32, tenon.int64):
        back = F.convert_image_dtype(F.convert_image_dtype(T(BYTES), dtype), tenon.uint8)
        np.testing.assert_array_equal(back.numpy(), BYTES)


@pytest.mark.parametrize("integer", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("floating", ["float16", "float32", "float64"])
def test_white_is_white_in_every_dtype(floating, integer):
    integer, floating = tenon.dtype(integer), tenon.dtype(floating)
    top = tenon.iinfo(integer).max
    got = F.convert_image_dtype(T([[[0.0, 1.0, 1.5, -1.0]]], dtype=floating), integer)
    assert got.tolist() == [[[0, top, top, 0]]]
    assert F.convert_image_dtype(got, floating).tolist() == [[[0.0, 1.0, 1.0, 0.0]]]
    half = F.convert_image_dtype(T([[[0.5]]], dtype=floating), integer).item()
    assert half == top // 2 or half == top // 2 + 1


def test_a_tensor_is_an_image_with_its_channels_first():
    got = F.to_tensor(T(BYTES))
    assert got.shape == (3, 9, 12) and got.dtype == tenon.float32
    np.testing.assert_allclose(got.numpy(), BYTES / 255, rtol=1e-6)
    assert F.to_tensor(T(BYTES[0])).shape == (1, 9, 12)
    with pytest.raises(ValueError, match=r"expected a tensor \[C, H, W\] or \[H, W\], got shape"):
        F.to_tensor(T(BYTES.transpose(1, 2, 0).copy()))


def test_what_is_no_image_is_refused_by_name():
    for wrong in ([1, 2], BYTES, "cat.png", None):
        with pytest.raises(TypeError, match="resize: expected an image as a tensor .* got"):
            F.resize(wrong, 3)
        with pytest.raises(TypeError, match="CenterCrop: expected an image as a tensor .* got"):
            V.CenterCrop(3)(wrong)
        with pytest.raises(TypeError, match="got"):
            V.Normalize(0.5, 0.5)(wrong)


def test_margins_and_sides():
    x = T(np.ones((1, 3, 5), np.float32))
    assert F.center_crop(x, [6, 5])[0, :, 0].tolist() == [0, 1, 1, 1, 0, 0]
    assert F.center_crop(x, [3, 8])[0, 0].tolist() == [0, 1, 1, 1, 1, 1, 0, 0]
    assert F.crop(x, 5, 7, 2, 2).tolist() == [[[0, 0], [0, 0]]]
    assert F.crop(x, -4, -4, 2, 2).tolist() == [[[0, 0], [0, 0]]]
    assert F.crop(x, -1, 4, 5, 2).tolist() == [[[0, 0], [1, 0], [1, 0], [1, 0], [0, 0]]]
    assert F.resize(T(np.ones((1, 107, 50), np.float32)), 20, max_size=27).shape == (1, 27, 12)
    assert F.resize(T(np.ones((1, 50, 107), np.float32)), 20, max_size=27).shape == (1, 12, 27)
    with pytest.raises(ValueError, match="resize: expected max_size above size 20, got 20"):
        F.resize(x, 20, max_size=20)
    with pytest.raises(ValueError, match="crop: expected extents of at least 0, got -1 x 2"):
        F.crop(x, 0, 0, -1, 2)


PICTURES = [
    V.Resize(8), V.CenterCrop(30), V.Pad(2), V.RandomCrop(6), V.RandomResizedCrop(7),
    V.RandomHorizontalFlip(1.0), V.RandomVerticalFlip(1.0), V.RandomRotation(10),
    V.RandomAffine(10), V.Grayscale(1), V.Grayscale(3), V.RandomGrayscale(1.0),
    V.RandomInvert(1.0), V.GaussianBlur(3), V.ColorJitter(0.1, 0.1, 0.1, 0.1),
    V.RandomErasing(1.0),
]  # fmt: skip


@pytest.mark.parametrize("transform", PICTURES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pictures_of_pillow_become_pictures(transform, mode):
    image = pytest.importorskip("PIL.Image", reason="Pillow is no dependency")
    pixels = RNG.integers(0, 256, size=(20, 26, 3)).astype(np.uint8)
    if mode == "L":
        if "Jitter" in type(transform).__name__ or getattr(transform, "num_output_channels", 0) > 1:
            pytest.skip("colours need three channels")
        pixels = pixels[..., 0].copy()
    tenon.manual_seed(3)
    picture = transform(image.fromarray(pixels))
    tenon.manual_seed(3)
    tensor = transform(T(np.atleast_3d(pixels).transpose(2, 0, 1).copy()))
    assert isinstance(picture, image.Image)
    want = tensor.numpy().transpose(1, 2, 0)
    np.testing.assert_array_equal(np.atleast_3d(np.asarray(picture)), want)


def test_pictures_of_pillow_in_other_modes():
    image = pytest.importorskip("PIL.Image", reason="Pillow is no dependency")
    two = image.fromarray(np.array([[True, False]]))
    assert F.to_tensor(two).tolist() == [[[1.0, 0.0]]] and two.mode == "1"
    with pytest.raises(ValueError, match="got mode '1'; convert it by image.convert"):
        F.hflip(two)


def test_numbers_of_normalize():
    x = T(np.full((1, 2, 2), 0.75, np.float32))
    assert V.Normalize(0.5, 0.25)(x).tolist() == [[[1.0, 1.0]] * 2]
    with pytest.raises(
        ValueError, match="normalize: expected mean of one number or 1, one for each"
    ):
        F.normalize(x, [0.1, 0.2, 0.3], 1.0)


def test_normalize():
    mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    want = (IMAGE - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(V.Normalize(mean, std)(T(IMAGE)).numpy(), want)
    with pytest.raises(TypeError, match="normalize: expected a floating image, got uint8"):
        F.normalize(T(BYTES), mean, std)
    with pytest.raises(ValueError, match="expected std without 0"):
        F.normalize(T(IMAGE), mean, [1.0, 0.0, 1.0])


def test_crops_and_flips():
    np.testing.assert_array_equal(F.crop(T(IMAGE), 2, 3, 5, 7).numpy(), IMAGE[..., 2:7, 3:10])
    beyond = F.crop(T(IMAGE), -1, 20, 4, 5).numpy()
    np.testing.assert_array_equal(beyond[..., 1:, :3], IMAGE[..., :3, 20:])
    assert beyond.shape == (2, 3, 4, 5) and not beyond[..., 0, :].any()
    np.testing.assert_array_equal(V.CenterCrop(5)(T(IMAGE)).numpy(), IMAGE[..., 6:11, 9:14])
    np.testing.assert_array_equal(F.hflip(T(IMAGE)).numpy(), IMAGE[..., ::-1])
    np.testing.assert_array_equal(F.vflip(T(IMAGE)).numpy(), IMAGE[..., ::-1, :])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_margins(mode):
    got = V.Pad((1, 2, 3, 4), padding_mode=mode)(T(IMAGE)).numpy()
    want = np.pad(IMAGE, [(0, 0), (0, 0), (2, 4), (1, 3)], mode=mode)
    np.testing.assert_array_equal(got, want)
    assert F.pad(T(BYTES), 2, fill=7).numpy()[0, 0, 0] == 7


def test_a_longer_margin_than_the_image_is_mirrored_again():
    x = np.arange(3.0).reshape(1, 1, 3)
    got = F.pad(T(x), (7, 0, 8, 0), padding_mode="symmetric").numpy()
    np.testing.assert_array_equal(got, np.pad(x, [(0, 0), (0, 0), (7, 8)], mode="symmetric"))


def test_sizes_of_resized_images():
    assert F.resize(T(IMAGE), 34).shape == (2, 3, 34, 46)
    assert F.resize(T(IMAGE), [10, 11]).shape == (2, 3, 10, 11)
    assert F.resize(T(IMAGE), 34, max_size=40).shape == (2, 3, 29, 40)
    with pytest.raises(
        ValueError, match="expected interpolation 'nearest', 'bilinear' or 'bicubic'"
    ):
        F.resize(T(IMAGE), 5, "cubic")


@pytest.mark.parametrize("size", [(8, 9), (34, 40), (5, 50)])
def test_resizing_without_antialiasing_interpolates(size):
    for mode in ("bilinear", "bicubic"):
        got = F.resize(T(IMAGE), size, mode, antialias=False)
        want = tenon.nn.functional.interpolate(T(IMAGE), size, mode=mode)
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)


def test_antialiased_filters():
    # A triangle of reach 2 at the middle between two pixels: distances 0.5 and 1.5.
    x = np.zeros((1, 1, 8))
    x[..., 3] = 8.0
    got = F.resize(T(x), [1, 4]).numpy().ravel()
    np.testing.assert_allclose(got, [0, 3, 1, 0])
    for mode in ("bilinear", "bicubic"):
        ramp = T(np.arange(40.0).reshape(1, 1, 40))
        small = F.resize(ramp, [1, 10], mode).numpy().ravel()
        np.testing.assert_allclose(small[2:-2], np.arange(10)[2:-2] * 4 + 1.5)  # means of four
        constant = F.resize(T(np.full((1, 7, 9), 3.0)), [3, 20], mode)
        np.testing.assert_allclose(constant.numpy(), 3.0)
    assert V.Resize(4)(T(BYTES)).dtype == tenon.uint8


def test_gradients_pass_through_resizing():
    x = T(IMAGE[0, :1, :4, :5])
    x.requires_grad = True
    assert tenon.autograd.gradcheck(lambda x: F.resize(x, [3, 7], "bicubic"), (x,))


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_right_angles_are_exact(turns):
    x = RNG.uniform(size=(3, 6, 6)).astype(np.float32)
    np.testing.assert_array_equal(F.rotate(T(x), 90 * turns).numpy(), np.rot90(x, turns, (-2, -1)))


def test_rotations_keep_the_size_and_the_middle():
    for call in (
        lambda: F.rotate(T(IMAGE), 10, "nearest", True),
        lambda: V.RandomRotation(10, "nearest", False, (0, 0)),
        lambda: V.RandomRotation(10, "nearest", 0.5),
    ):
        with pytest.raises(NotImplementedError, match="expected expand False and center None, got"):
            call()
    assert V.RandomRotation((45, 45), fill=0.5)(T(IMAGE))[0, 0, 0, 0].item() == 0.5


def test_affine_maps():
    x = RNG.uniform(size=(1, 12, 15)).astype(np.float32)
    moved = F.affine(T(x), 0, (2, -3)).numpy()
    np.testing.assert_array_equal(moved[0, :9, 2:], x[0, 3:, :-2])
    assert not moved[0, 9:].any() and not moved[0, :, :2].any()
    # From where a pixel comes, counted from the middle, rows first; scaled by 2 and rotated.
    angle, middle = math.radians(20), np.array([5.5, 7.0])
    inverse = (
        np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]) / 2
    )
    got = F.affine(T(x), -20, scale=2.0, interpolation="bilinear").numpy()
    want = scipy.ndimage.affine_transform(
        x[0], inverse, middle - inverse @ middle, order=1, mode="constant"
    )
    np.testing.assert_allclose(got[0], want, atol=1e-5)
    filled = F.rotate(T(x), 45, fill=0.5)
    assert filled[0, 0, 0].item() == 0.5
    sheared = F.affine(T(np.ones((1, 5, 5), np.float32)), 0, shear=(45, 0)).numpy()[0]
    np.testing.assert_array_equal(sheared[0], [0, 0, 1, 1, 1])


def test_colours():
    x = IMAGE[0]
    luma = 0.2989 * x[0] + 0.587 * x[1] + 0.114 * x[2]
    np.testing.assert_allclose(F.rgb_to_grayscale(T(x), 3).numpy(), np.stack([luma] * 3))
    np.testing.assert_allclose(F.adjust_brightness(T(x), 1.3).numpy(), np.clip(x * 1.3, 0, 1))
    np.testing.assert_allclose(
        F.adjust_contrast(T(x), 0.4).numpy(), 0.4 * x + 0.6 * luma.mean(), rtol=1e-6
    )
    np.testing.assert_allclose(F.adjust_saturation(T(x), 0.4).numpy(), 0.4 * x + 0.6 * luma)
    np.testing.assert_allclose(F.adjust_gamma(T(x), 2.0, 0.5).numpy(), 0.5 * x**2)
    np.testing.assert_allclose(F.invert(T(x)).numpy(), 1 - x)
    want = np.zeros_like(x)
    for i, j in np.ndindex(x.shape[1:]):
        hue, saturation, value = colorsys.rgb_to_hsv(*x[:, i, j])
        want[:, i, j] = colorsys.hsv_to_rgb((hue - 0.3) % 1, saturation, value)
    np.testing.assert_allclose(F.adjust_hue(T(x), -0.3).numpy(), want, atol=1e-12)
    np.testing.assert_array_equal(F.adjust_brightness(T(BYTES), 0.5).numpy(), np.rint(BYTES / 2))
    with pytest.raises(ValueError, match="adjust_hue: expected a factor from -0.5 to 0.5, got 1"):
        F.adjust_hue(T(x), 1)
    with pytest.raises(ValueError, match="adjust_contrast: expected a factor of at least 0"):
        F.adjust_contrast(T(x), -1)


def test_blur_and_erasing():
    got = F.gaussian_blur(T(IMAGE), [5, 3], [1.2, 0.8]).numpy()  # along x first
    want = IMAGE
    for axis, size, sigma in ((-2, 3, 0.8), (-1, 5, 1.2)):
        weights = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma**2))
        want = scipy.ndimage.correlate1d(want, weights / weights.sum(), axis, mode="mirror")
    np.testing.assert_allclose(got, want)
    erased = F.erase(T(IMAGE), 1, 2, 3, 4, 0.0).numpy()
    assert not erased[..., 1:4, 2:6].any()
    erased[..., 1:4, 2:6] = IMAGE[..., 1:4, 2:6]
    np.testing.assert_array_equal(erased, IMAGE)


def test_random_transforms_follow_the_seed():
    transform = V.Compose(
        [
            V.RandomResizedCrop(8),
            V.RandomHorizontalFlip(),
            V.RandomVerticalFlip(),
            V.RandomRotation(20),
            V.RandomAffine(10, (0.1, 0.1), (0.9, 1.1), 5),
            V.ColorJitter(0.2, 0.2, 0.2, 0.1),
            V.RandomGrayscale(0.5),
            V.RandomInvert(),
            V.GaussianBlur(3),
            V.RandomErasing(1.0, value="random"),
        ]
    )

    def draw():
        tenon.manual_seed(5)
        return transform(T(IMAGE)).numpy()

    first = draw()
    assert first.shape == (2, 3, 8, 8)
    np.testing.assert_array_equal(first, draw())
    assert (first != transform(T(IMAGE)).numpy()).any()


def test_random_crops_are_parts_of_the_image():
    tenon.manual_seed(0)
    x = np.arange(30.0).reshape(1, 5, 6)
    corners = set()
    for _ in range(60):
        part = V.RandomCrop((4, 4))(T(x)).numpy()
        top, left = divmod(int(part[0, 0, 0]), 6)
        np.testing.assert_array_equal(part, x[:, top : top + 4, left : left + 4])
        corners.add((top, left))
    assert corners == {(i, j) for i in range(2) for j in range(3)}
    assert V.RandomCrop(7, padding=1)(T(x)).shape == (1, 7, 7)
    assert V.RandomCrop(9, pad_if_needed=True)(T(x)).shape == (1, 9, 9)
    with pytest.raises(
        ValueError, match="RandomCrop: expected an image of at least 9 x 9, got 5 x 6"
    ):
        V.RandomCrop(9)(T(x))
    crop = V.RandomResizedCrop(4, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    for _ in range(50):
        top, left, height, width = crop.part(40, 50)
        assert 0 <= top <= 40 - height and 0 <= left <= 50 - width
        assert 0.18 < height * width / 2000 < 0.53 and 0.45 < width / height < 2.2


def test_probabilities():
    tenon.manual_seed(0)
    flip, image = V.RandomHorizontalFlip(0.3), T(np.arange(2.0).reshape(1, 1, 2))
    flipped = sum(flip(image)[0, 0, 0].item() for _ in range(400))
    assert abs(flipped - 120) < 4 * math.sqrt(400 * 0.3 * 0.7)
    assert V.RandomApply([V.Lambda(lambda x: x + 1)], p=0.0)(1) == 1
    assert V.RandomApply([V.Lambda(lambda x: x + 1)], p=1.0)(1) == 2
    assert {V.RandomChoice([lambda x: 1, lambda x: 2])(0) for _ in range(30)} == {1, 2}
    order = V.RandomOrder([lambda x: x + 1, lambda x: x * 2])
    assert {order(1) for _ in range(30)} == {3, 4}
