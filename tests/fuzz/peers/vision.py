# SPDX-License-Identifier: Apache-2.0
"""Transforms of images beside Pillow.

    python -m tests.fuzz.peers.vision [--minutes 5] [--seed 0]

Pictures of random bytes go through both libraries, and the bytes that come out are compared: exactly where
bytes are only moved, within one where they are computed. Pillow comes from an environment outside the
repository.
"""

from collections.abc import Iterator

import numpy as np
import tenon
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from tenon.vision.transforms import functional as F

from .beside import Comparison, main, pick

KNOWN = {
    "rotate bilinear": "Pillow rounds positions to fixed point, and takes no part of a pixel outside; "
    "the border of the turned image is blended with the fill here, as in torchvision",
    "rotate nearest": "a pixel whose position falls on the edge between two may be either",
    "contrast": "Pillow blends with the rounded mean of the rounded luma, torchvision and Tenon with the mean",
    "hue": "Pillow turns the hue in bytes, of which 256 make the circle",
    "gaussian blur": "Pillow's blur is made of three box filters, not of a normal one",
}

_FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


def _pixels(picture: Image.Image) -> np.ndarray:
    return np.atleast_3d(np.asarray(picture)).transpose(2, 0, 1)


def draw(rng: np.random.Generator) -> Iterator[Comparison]:
    """One comparison of each kind, for a picture of random size, mode and content."""
    mode = pick(rng, ["L", "RGB"])
    height, width = (int(each) for each in rng.integers(3, 40, size=2))
    shape = (height, width) if mode == "L" else (height, width, 3)
    content = rng.integers(0, 256, size=shape).astype(np.uint8)
    if rng.random() < 0.3:  # smooth
        content = np.broadcast_to(np.linspace(0, 255, width)[:, None], (height, width, 3))
        content = content[..., 0] if mode == "L" else content
        content = content.astype(np.uint8)
    picture = Image.fromarray(np.ascontiguousarray(content))
    x = tenon.tensor(_pixels(picture).copy())
    about = f"{mode} {width} x {height}"

    def beside(name: str, ours, theirs, within: int = 0, drawn: str = "") -> Comparison:
        return Comparison(
            name,
            f"{about} {drawn}",
            lambda: ours(x).numpy(),
            lambda: _pixels(theirs(picture)),
            0.0,
            within,
        )

    yield beside("hflip", F.hflip, ImageOps.mirror)
    yield beside("vflip", F.vflip, ImageOps.flip)
    yield beside("invert", F.invert, ImageOps.invert)
    yield Comparison(
        "hflip of a picture",
        about,
        lambda: _pixels(F.hflip(picture)),
        lambda: _pixels(ImageOps.mirror(picture)),
        0.0,
        0.0,
    )
    yield Comparison(
        "to_tensor",
        about,
        lambda: F.to_tensor(picture).numpy(),
        lambda: _pixels(picture).astype(np.float32) / np.float32(255),
        0.0,
        0.0,
    )
    new = [int(each) for each in rng.integers(1, 50, size=2)]
    for name, which in _FILTERS.items():
        yield beside(
            f"resize {name}",
            lambda x, name=name: F.resize(x, new, name),
            lambda p, which=which: p.resize(new[::-1], which),
            2,  # a half may be rounded the other way in each direction
            f"to {new}",
        )
    top, left = (int(each) for each in rng.integers(-20, 50, size=2))
    extent = [int(each) for each in rng.integers(1, 50, size=2)]
    box = (left, top, left + extent[1], top + extent[0])
    yield beside(
        "crop",
        lambda x: F.crop(x, top, left, *extent),
        lambda p: p.crop(box),
        drawn=f"{box}",
    )
    margins = [int(each) for each in rng.integers(0, 9, size=4)]
    fill = int(rng.integers(0, 256))
    yield beside(
        "pad",
        lambda x: F.pad(x, margins, fill),
        lambda p: ImageOps.expand(p, tuple(margins), fill if mode == "L" else (fill,) * 3),
        drawn=f"{margins} {fill}",
    )
    turns = int(rng.integers(0, 4))
    square = min(height, width)
    yield beside(
        "rotate by right angles",
        lambda x: F.rotate(x[..., :square, :square], 90 * turns),
        lambda p: p.crop((0, 0, square, square)).rotate(90 * turns),
        drawn=f"{turns}",
    )
    angle = float(rng.uniform(-180, 180))
    for name, which in (
        ("nearest", Image.Resampling.NEAREST),
        ("bilinear", Image.Resampling.BILINEAR),
    ):
        yield beside(
            f"rotate {name}",
            lambda x, name=name: F.rotate(x, angle, name),
            lambda p, which=which: p.rotate(angle, which),
            1,
            f"by {angle:.3f}",
        )
    factor = float(rng.uniform(0, 2.5))
    # Pillow cuts what is behind the point of a mixture off, and rounds luma.
    yield beside(
        "brightness",
        lambda x: F.adjust_brightness(x, factor),
        lambda p: ImageEnhance.Brightness(p).enhance(factor),
        1,
        f"{factor}",
    )
    yield beside(
        "contrast",
        lambda x: F.adjust_contrast(x, factor),
        lambda p: ImageEnhance.Contrast(p).enhance(factor),
        2,
        f"{factor}",
    )
    gamma = float(rng.uniform(0.2, 3))
    table = [round(255 * (i / 255) ** gamma) for i in range(256)]
    yield beside(
        "gamma",
        lambda x: F.adjust_gamma(x, gamma),
        lambda p: p.point(table * len(p.getbands())),
        1,
        f"{gamma}",
    )
    radius = float(rng.uniform(0.5, 2))
    size = 2 * int(4 * radius) + 1
    if size < 2 * square - 1:
        yield beside(
            "gaussian blur",
            lambda x: F.gaussian_blur(x, size, radius),
            lambda p: p.filter(ImageFilter.GaussianBlur(radius)),
            2,
            f"{radius}",
        )
    if mode == "RGB":
        yield beside("grayscale", F.rgb_to_grayscale, lambda p: p.convert("L"), 1)
        yield beside(
            "saturation",
            lambda x: F.adjust_saturation(x, factor),
            lambda p: ImageEnhance.Color(p).enhance(factor),
            3,
            f"{factor}",
        )
        turn = float(rng.uniform(-0.5, 0.5))

        def turned(p: Image.Image) -> Image.Image:
            hue, saturation, value = p.convert("HSV").split()
            moved = hue.point([(i + round(255 * turn)) % 256 for i in range(256)])
            return Image.merge("HSV", (moved, saturation, value)).convert("RGB")

        yield beside("hue", lambda x: F.adjust_hue(x, turn), turned, 6, f"{turn}")


if __name__ == "__main__":
    main(draw, KNOWN)
