# SPDX-License-Identifier: Apache-2.0
"""Functions of images: tensors [..., C, H, W], uint8 from 0 to 255 or floating from 0 to 1.

Leading axes are batches, whose images are all changed alike. Results have the dtype of the image. Most take
Pillow images as well, and give such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional as F

from .pictures import is_picture, takes_pictures

Size = int | Sequence[int]


def to_tensor(picture: Any) -> Tensor:
    """An array or Pillow image [H, W] or [H, W, C] as a tensor [C, H, W]; bytes become float32 from
    0 to 1. A tensor is an image [C, H, W] or [H, W] already, and keeps its axes."""
    if isinstance(picture, Tensor):
        x = picture.unsqueeze(0) if picture.ndim == 2 else picture
        if x.ndim != 3 or (x.shape[0] > 4 and x.shape[2] <= 4):
            raise ValueError(
                f"to_tensor: expected a tensor [C, H, W] or [H, W], got shape "
                f"{tuple(picture.shape)}; .permute([2, 0, 1]) makes one of [H, W, C]"
            )
    else:
        if is_picture(picture) and picture.mode == "1":  # black and white
            picture = picture.convert("L")
        x = tenon.tensor(_array(picture))
        if x.ndim == 2:
            x = x.unsqueeze(-1)
        if x.ndim != 3:
            raise ValueError(f"to_tensor: expected [H, W] or [H, W, C], got shape {tuple(x.shape)}")
        x = x.permute([2, 0, 1]).contiguous()
    return x.to(tenon.float32) / 255 if x.dtype == tenon.uint8 else x


def _array(picture: Any) -> Any:
    if hasattr(picture, "__array__") or hasattr(picture, "__array_interface__"):
        import numpy

        return numpy.array(picture)  # a copy, as memory of a Pillow image is read-only
    raise TypeError(
        f"to_tensor: expected an array, a Pillow image or a tensor, got {type(picture).__name__}"
    )


@takes_pictures
def convert_image_dtype(image: Tensor, dtype: tenon.dtype = tenon.float32) -> Tensor:
    """The image in another dtype; the largest integer stands for 1.0.

    Among integers the bits are moved, so that a narrower dtype has the leading ones. The largest
    number of a wide dtype comes from that of a narrow one by way of floats only.
    """
    if image.dtype == dtype:
        return image
    if image.dtype.is_floating_point and dtype.is_floating_point:
        return image.to(dtype)
    if image.dtype.is_floating_point:
        return _integers_of(image, dtype)
    top = tenon.iinfo(image.dtype).max
    if dtype.is_floating_point:
        # 65535 is no float16, nor is the largest int64 a float32.
        wide = tenon.float32 if top < 2**24 and dtype != tenon.float64 else tenon.float64
        return (image.to(wide) / float(top)).to(dtype)
    bits = (tenon.iinfo(dtype).max + 1).bit_length() - (top + 1).bit_length()
    if bits < 0:
        return tenon.bitwise_right_shift(image, -bits).to(dtype)
    return tenon.bitwise_left_shift(image.to(dtype), bits)


def _integers_of(image: Tensor, dtype: tenon.dtype) -> Tensor:
    """Shares of the largest integer, which is what 1.0 becomes, also where no float equals it."""
    top = tenon.iinfo(dtype).max
    share = image.to(tenon.float64)
    scaled = tenon.floor(share * (top + 1 - 1e-3))
    below = math.nextafter(float(top + 1), 0.0) if top >= 2**53 else float(top)
    whole = tenon.clip(scaled, 0.0, below).to(dtype)
    return tenon.where(share >= 1.0, tenon.full([], top, dtype=dtype, device=image.device), whole)


def normalize(image: Tensor, mean: float | Sequence[float], std: float | Sequence[float]) -> Tensor:
    """`(image - mean) / std`, with one number for each channel or one for all."""
    if not isinstance(image, Tensor) or not image.dtype.is_floating_point:
        got = image.dtype if isinstance(image, Tensor) else type(image).__name__
        raise TypeError(
            f"normalize: expected a floating image, got {got}; use ToTensor or ConvertImageDtype "
            "first"
        )
    size_of(image)
    means, stds = (
        [float(each)] if isinstance(each, (int, float)) else [float(one) for one in each]
        for each in (mean, std)
    )
    if min(map(abs, stds)) == 0:
        raise ValueError(f"normalize: expected std without 0, got {stds}")
    channels = image.shape[-3]
    for name, values in (("mean", means), ("std", stds)):
        if len(values) not in (1, channels):
            raise ValueError(
                f"normalize: expected {name} of one number or {channels}, one for each channel, got "
                f"{values}"
            )
    offset, scale = (
        tenon.tensor(values, image.dtype, image.device).reshape([-1, 1, 1])
        for values in (means, stds)
    )
    return (image - offset) / scale


# -- geometry --------------------------------------------------------------------------------------


def size_of(image: Any) -> tuple[int, int]:
    """Height and width."""
    if is_picture(image):
        return image.height, image.width
    if not isinstance(image, Tensor):
        raise TypeError(
            f"expected an image as a tensor [..., C, H, W] or of Pillow, got {type(image).__name__}"
        )
    if image.ndim < 3:
        raise ValueError(f"expected an image [..., C, H, W], got shape {tuple(image.shape)}")
    return image.shape[-2], image.shape[-1]


def pair(size: Size) -> tuple[int, int]:
    """Height and width from one number or from two."""
    if isinstance(size, int):
        return size, size
    values = [int(each) for each in size]
    if len(values) not in (1, 2):
        raise ValueError(f"expected a size of one or two numbers, got {values}")
    return values[0], values[-1]


@takes_pictures
def crop(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The rows and columns from `top` and `left` on; what lies beyond the image is 0."""
    rows, columns = size_of(image)
    if height < 0 or width < 0:
        raise ValueError(f"crop: expected extents of at least 0, got {height} x {width}")
    inside, margins = [], []
    for start, extent, whole in ((top, height, rows), (left, width, columns)):
        first = min(max(start, 0), whole)
        last = min(max(start + extent, first), whole)
        before = min(max(-start, 0), extent)
        inside.append(slice(first, last))
        margins += [before, extent - before - (last - first)]
    part = image[(..., *inside)]
    return tenon.pad(part, [*[0, 0] * (image.ndim - 2), *margins]) if max(margins) else part


@takes_pictures
def center_crop(image: Tensor, output_size: Size) -> Tensor:
    """The middle of the image; what lies beyond it is 0, where the margins of an axis differ one more
    behind it than before."""
    height, width = pair(output_size)
    top, left = (
        round((extent - wanted) / 2) if wanted <= extent else -((wanted - extent) // 2)
        for wanted, extent in zip((height, width), size_of(image))
    )
    return crop(image, top, left, height, width)


@takes_pictures
def pad(image: Tensor, padding: Size, fill: float = 0, padding_mode: str = "constant") -> Tensor:
    """Margins around the image: one for all sides, (x, y), or (left, top, right, bottom).

    `padding_mode` is 'constant', 'edge', 'reflect' or 'symmetric'.
    """
    values = [padding] if isinstance(padding, int) else list(padding)
    if len(values) not in (1, 2, 4):
        raise ValueError(f"pad: expected 1, 2 or 4 margins, got {values}")
    left, top, right, bottom = (values * 4)[:4] if len(values) != 4 else values
    margins = [*[0, 0] * (image.ndim - 2), top, bottom, left, right]
    if padding_mode == "constant":
        return tenon.pad(image, margins, "constant", fill)
    if padding_mode == "symmetric":
        rows, columns = size_of(image)
        image = tenon.index_select(image, _mirrored(rows, top, bottom, image), image.ndim - 2)
        return tenon.index_select(image, _mirrored(columns, left, right, image), image.ndim - 1)
    if padding_mode not in ("edge", "reflect"):
        raise ValueError(
            "pad: expected padding_mode 'constant', 'edge', 'reflect' or 'symmetric', got "
            f"{padding_mode!r}"
        )
    return tenon.pad(image, margins, padding_mode)


def _mirrored(extent: int, before: int, after: int, like: Tensor) -> Tensor:
    """Indices of an axis that goes on beyond its ends as in a mirror."""
    index = [i % (2 * extent) for i in range(-before, extent + after)]
    index = [i if i < extent else 2 * extent - 1 - i for i in index]
    return tenon.tensor(index, dtype=tenon.int64, device=like.device)


@takes_pictures
def hflip(image: Tensor) -> Tensor:
    """Left and right exchanged."""
    return tenon.flip(image, [-1])


@takes_pictures
def vflip(image: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    return tenon.flip(image, [-2])


@takes_pictures
def resize(
    image: Tensor,
    size: Size,
    interpolation: str = "bilinear",
    max_size: int | None = None,
    antialias: bool = True,
) -> Tensor:
    """The image with height and width `size`; one number is the length of the shorter side, of which
    less is left where the longer one would be above `max_size`.

    `interpolation` is 'nearest', 'bilinear' or 'bicubic'. With `antialias` the filters of the
    latter two are stretched where the image shrinks, so that every pixel counts.
    """
    rows, columns = size_of(image)
    if isinstance(size, int) or len(size) == 1:
        short = pair(size)[0]
        long = int(short * max(rows, columns) / min(rows, columns))
        if max_size is not None and max_size <= short:
            raise ValueError(f"resize: expected max_size above size {short}, got {max_size}")
        if max_size is not None and long > max_size:
            short, long = int(max_size * short / long), max_size
        height, width = (short, long) if rows <= columns else (long, short)
    elif max_size is not None:
        raise ValueError("resize: expected max_size only where size is one number")
    else:
        height, width = pair(size)
    if interpolation == "nearest":
        for axis, extent, new in ((-2, rows, height), (-1, columns, width)):
            index = [min(int(i * extent / new), extent - 1) for i in range(new)]
            at = tenon.tensor(index, dtype=tenon.int64, device=image.device)
            image = tenon.index_select(image, at, image.ndim + axis)
        return image
    if interpolation not in _FILTERS:
        raise ValueError(
            "resize: expected interpolation 'nearest', 'bilinear' or 'bicubic', got "
            f"{interpolation!r}"
        )
    x = _as_float(image)
    if width != columns:
        x = x @ _resampling(columns, width, interpolation, antialias, x).mT
        if antialias:  # as Pillow, which keeps bytes between both directions
            x = _as_float(_as_before(x, image))
    if height != rows:
        x = _resampling(rows, height, interpolation, antialias, x) @ x
    return _as_before(x, image)


def _triangle(x: float) -> float:
    return max(1.0 - abs(x), 0.0)


def _cubic(a: float, x: float) -> float:
    """Cubic convolution (Keys, 1981)."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


_FILTERS = {"bilinear": 1, "bicubic": 2}  # and how far their filters reach


def _resampling(extent: int, new: int, mode: str, antialias: bool, like: Tensor) -> Tensor:
    """The matrix [new, extent] that resamples an axis."""
    scale = extent / new
    stretch = max(scale, 1.0) if antialias else 1.0
    reach = _FILTERS[mode] * stretch
    a = -0.5 if antialias else -0.75
    matrix = []
    for i in range(new):
        center = (i + 0.5) * scale
        row = [0.0] * extent
        if antialias:
            first, last = max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), extent)
        else:
            first, last = math.floor(center - 0.5 - reach) + 1, math.floor(center - 0.5 + reach) + 1
        for j in range(first, last):
            at = (j + 0.5 - center) / stretch
            weight = _triangle(at) if mode == "bilinear" else _cubic(a, at)
            row[min(max(j, 0), extent - 1)] += weight
        total = sum(row)
        matrix.append([weight / total for weight in row])
    return tenon.tensor(matrix, dtype=like.dtype, device=like.device)


@takes_pictures
def resized_crop(
    image: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: str = "bilinear",
    antialias: bool = True,
) -> Tensor:
    """A part of the image, resized."""
    part = crop(image, top, left, height, width)
    return resize(part, pair(size), interpolation, antialias=antialias)


@takes_pictures
def affine(
    image: Tensor,
    angle: float,
    translate: Sequence[float] = (0, 0),
    scale: float = 1.0,
    shear: Sequence[float] = (0.0, 0.0),
    interpolation: str = "nearest",
    fill: float = 0,
) -> Tensor:
    """The image rotated clockwise by `angle` degrees about its middle, sheared by angles in x and y
    (a positive one moves the top to the right), scaled and moved by pixels in x and y; what was
    outside is `fill`."""
    turn, shear_x, shear_y = (math.radians(each) for each in (angle, shear[0], shear[-1]))
    # The matrix of what happens to a point, x first: rotation, shear, scale.
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    # Its inverse tells from where a pixel of the result comes; the determinant is scale ** 2.
    inverse = [[d / scale, -b / scale], [-c / scale, a / scale]]
    return _sampled(image, inverse, (translate[0], translate[1]), interpolation, fill)


@takes_pictures
def rotate(
    image: Tensor,
    angle: float,
    interpolation: str = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: float = 0,
) -> Tensor:
    """The image rotated counter-clockwise by `angle` degrees about its middle; what was outside is
    `fill`. The result has the size of the image: `expand` and `center` have no other values."""
    check_rotation("rotate", expand, center)
    return affine(image, -angle, interpolation=interpolation, fill=fill)


def check_rotation(caller: str, expand: Any, center: Any) -> None:
    if expand is not False or center is not None:
        raise NotImplementedError(
            f"{caller}: expected expand False and center None, got {expand!r} and {center!r}; pad() "
            f"makes room, and fill is passed by name"
        )


def _sampled(
    image: Tensor,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    interpolation: str,
    fill: float,
) -> Tensor:
    """The image at `matrix @ (point - offset)` for every pixel, in pixels from the middle, x
    first."""
    y, x = _points(image, offset)
    return _at(
        image,
        matrix[0][0] * x + matrix[0][1] * y,
        matrix[1][0] * x + matrix[1][1] * y,
        interpolation,
        fill,
    )


def _points(image: Tensor, offset: Sequence[float]) -> Sequence[Tensor]:
    """y and x of every pixel from the middle, less the offset, whose x is first."""
    rows, columns = size_of(image)
    from_middle = [
        tenon.arange(count, dtype=tenon.float32, device=image.device) - ((count - 1) / 2 + moved)
        for count, moved in ((rows, offset[1]), (columns, offset[0]))
    ]
    return tenon.meshgrid(from_middle)


def _at(image: Tensor, x: Tensor, y: Tensor, interpolation: str, fill: float) -> Tensor:
    """The image at the points x and y, in pixels from its middle."""
    if interpolation not in ("nearest", "bilinear"):
        raise ValueError(f"expected interpolation 'nearest' or 'bilinear', got {interpolation!r}")
    rows, columns = size_of(image)
    grid = tenon.stack([x * (2 / columns), y * (2 / rows)], -1)
    value = _as_float(image)
    flat = value.reshape([1, -1, rows, columns]) - fill
    result = F.grid_sample(flat, grid.unsqueeze(0).to(flat.dtype), interpolation)
    return _as_before((result + fill).reshape(image.shape), image)


@takes_pictures
def perspective(
    image: Tensor,
    startpoints: Sequence[Sequence[float]],
    endpoints: Sequence[Sequence[float]],
    interpolation: str = "bilinear",
    fill: float = 0,
) -> Tensor:
    """The image seen from elsewhere: four points (x, y) of it, `startpoints`, move to `endpoints`, and lines
    stay lines; what was outside is `fill`."""
    for name, points in (("startpoints", startpoints), ("endpoints", endpoints)):
        if [len(point) for point in points] != [2] * 4:
            raise ValueError(f"perspective: expected {name} of four (x, y), got {points}")
        for left_out in range(4):
            (a, b), (c, d), (e, f) = (points[i] for i in range(4) if i != left_out)
            if (c - a) * (f - b) == (e - a) * (d - b):
                raise ValueError(
                    f"perspective: expected {name} of which no three are on a line, got {points}"
                )
    # The projective map from ends to starts, whose last coefficient is 1, has eight others.
    equations, values = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        equations += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [[u], [v]]
    solved = tenon.linalg.solve(
        tenon.tensor(equations, dtype=tenon.float64), tenon.tensor(values, dtype=tenon.float64)
    )
    a, b, c, d, e, f, g, h = solved.reshape([-1]).tolist()
    rows, columns = size_of(image)
    # The middles of pixels, counted from the corner.
    row, column = _points(image, (-columns / 2, -rows / 2))
    depth = g * column + h * row + 1
    x = (a * column + b * row + c) / depth - columns / 2
    y = (d * column + e * row + f) / depth - rows / 2
    return _at(image, x, y, interpolation, fill)


# -- colours ---------------------------------------------------------------------------------------


def _as_float(image: Tensor) -> Tensor:
    return image if image.dtype.is_floating_point else image.to(tenon.float32)


def _top(image: Tensor) -> float:
    """What stands for full brightness."""
    return 1.0 if image.dtype.is_floating_point else float(tenon.iinfo(image.dtype).max)


def _as_before(value: Tensor, image: Tensor) -> Tensor:
    """A result in the dtype of the image, rounded and limited for integers."""
    if image.dtype.is_floating_point:
        return value
    return tenon.clip(tenon.round(value), 0, _top(image)).to(image.dtype)


def _blend(image: Tensor, other: Tensor | float, ratio: float) -> Tensor:
    mixed = ratio * _as_float(image) + (1.0 - ratio) * other
    return _as_before(tenon.clip(mixed, 0.0, _top(image)), image)


def _check_factor(function: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{function}: expected a factor of at least 0, got {factor}")


def _channels(image: Tensor, function: str) -> list[Tensor]:
    size_of(image)
    if image.shape[-3] != 3:
        raise ValueError(f"{function}: expected 3 channels, got shape {tuple(image.shape)}")
    return list(tenon.unbind(_as_float(image), image.ndim - 3))


@takes_pictures
def rgb_to_grayscale(image: Tensor, num_output_channels: int = 1) -> Tensor:
    """Luma (ITU-R BT.601) in one channel, or in three that are equal. One channel stays as it
    is."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"rgb_to_grayscale: expected 1 or 3 channels, got {num_output_channels}")
    if image.shape[-3] == 1:
        grey = image
    else:
        red, green, blue = _channels(image, "rgb_to_grayscale")
        luma = (0.2989 * red + 0.587 * green + 0.114 * blue).unsqueeze(-3)
        grey = luma if image.dtype.is_floating_point else tenon.floor(luma).to(image.dtype)
    shape = list(grey.shape)
    shape[-3] = num_output_channels
    return tenon.expand(grey, shape)


@takes_pictures
def adjust_brightness(image: Tensor, brightness_factor: float) -> Tensor:
    """0 is black, 1 the image."""
    _check_factor("adjust_brightness", brightness_factor)
    return _blend(image, 0.0, brightness_factor)


@takes_pictures
def adjust_contrast(image: Tensor, contrast_factor: float) -> Tensor:
    """0 is grey of the mean brightness, 1 the image."""
    _check_factor("adjust_contrast", contrast_factor)
    grey = _as_float(rgb_to_grayscale(image))
    return _blend(image, tenon.mean(grey, [-3, -2, -1], keepdim=True), contrast_factor)


@takes_pictures
def adjust_saturation(image: Tensor, saturation_factor: float) -> Tensor:
    """0 is shades of grey, 1 the image."""
    _check_factor("adjust_saturation", saturation_factor)
    return _blend(image, _as_float(rgb_to_grayscale(image)), saturation_factor)


@takes_pictures
def adjust_hue(image: Tensor, hue_factor: float) -> Tensor:
    """Hues moved by a share of the circle from -0.5 to 0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: expected a factor from -0.5 to 0.5, got {hue_factor}")
    if image.shape[-3] == 1:
        return image
    top = _top(image)
    hue, saturation, value = _rgb_to_hsv(*(each / top for each in _channels(image, "adjust_hue")))
    turned = tenon.remainder(hue + hue_factor, 1.0)
    return _as_before(_hsv_to_rgb(turned, saturation, value) * top, image)


def _rgb_to_hsv(red: Tensor, green: Tensor, blue: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    value = tenon.maximum(tenon.maximum(red, green), blue)
    span = value - tenon.minimum(tenon.minimum(red, green), blue)
    divisor = tenon.where(span == 0, tenon.ones_like(span), span)
    saturation = span / tenon.where(value == 0, tenon.ones_like(value), value)
    sixth = tenon.where(
        value == red,
        (green - blue) / divisor,
        tenon.where(value == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor),
    )
    return tenon.remainder(sixth / 6, 1.0), saturation, value


def _hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    channels = []
    for offset in (5, 3, 1):
        k = tenon.remainder(offset + hue * 6, 6.0)
        share = tenon.clip(tenon.minimum(k, 4 - k), 0.0, 1.0)
        channels.append(value - value * saturation * share)
    return tenon.stack(channels, -3)


@takes_pictures
def adjust_gamma(image: Tensor, gamma: float, gain: float = 1.0) -> Tensor:
    """`gain * image ** gamma`."""
    _check_factor("adjust_gamma", gamma)
    top = _top(image)
    result = gain * tenon.pow(_as_float(image) / top, gamma)
    return _as_before(tenon.clip(result, 0.0, 1.0) * top, image)


@takes_pictures
def invert(image: Tensor) -> Tensor:
    """The negative."""
    return _as_before(_top(image) - _as_float(image), image)


@takes_pictures
def gaussian_blur(
    image: Tensor, kernel_size: Size, sigma: float | Sequence[float] | None = None
) -> Tensor:
    """The image under a normal filter of odd size; `sigma` is 0.3 ((size - 1) / 2 - 1) + 0.8 unless
    given. Of two sizes or sigmas the first is along x."""
    sizes = pair(kernel_size)[::-1]
    if any(size < 1 or size % 2 == 0 for size in sizes):
        raise ValueError(f"gaussian_blur: expected odd kernel sizes, got {sizes}")
    if sigma is None:
        sigmas = [0.15 * size + 0.35 for size in sizes]
    else:
        given = [float(sigma)] if isinstance(sigma, (int, float)) else [*map(float, sigma)]
        sigmas = given * 2 if len(given) == 1 else given[::-1]
        if len(sigmas) != 2 or min(sigmas) <= 0:
            raise ValueError(
                f"gaussian_blur: expected sigma of one number or two above 0, got {given}"
            )
    rows, columns = size_of(image)
    x = _as_float(image).reshape([-1, 1, rows, columns])
    top, left = sizes[0] // 2, sizes[1] // 2
    x = tenon.pad(x, [0, 0, 0, 0, top, top, left, left], "reflect")
    for axis, (size, each) in enumerate(zip(sizes, sigmas)):
        at = tenon.arange(size, dtype=x.dtype, device=x.device) - (size - 1) / 2
        weights = F.softmax(-tenon.square(at / each) / 2, -1)
        x = F.conv2d(x, weights.reshape([1, 1, size, 1] if axis == 0 else [1, 1, 1, size]))
    return _as_before(x.reshape(image.shape), image)


@takes_pictures
def erase(
    image: Tensor, top: int, left: int, height: int, width: int, value: float | Tensor
) -> Tensor:
    """The image with a rectangle of `value`."""
    result = image.clone()
    result[..., top : top + height, left : left + width] = value
    return result
