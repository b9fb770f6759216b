# SPDX-License-Identifier: Apache-2.0
"""Pillow images where tensors are meant: a transform of a picture gives a picture.

The bytes of the picture are transformed as those of a tensor [C, H, W] are. Pillow is no dependency: an
image can only be given where it is there.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import tenon
from tenon import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4, "YCbCr": 3, "HSV": 3, "LAB": 3}
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def is_picture(value: Any) -> bool:
    """Whether it is a Pillow image."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def pixels_of(picture: Any) -> Tensor:
    """The bytes of a Pillow image as a tensor [C, H, W] of uint8."""
    channels = _CHANNELS.get(picture.mode)
    if channels is None:
        raise ValueError(
            f"expected a Pillow image of one of the modes {', '.join(_CHANNELS)}, got mode "
            f"{picture.mode!r}; convert it by image.convert('RGB')"
        )
    width, height = picture.size
    pixels = tenon.frombuffer(bytearray(picture.tobytes()), tenon.uint8, (height, width, channels))
    return pixels.permute([2, 0, 1]).contiguous()


def picture_of(pixels: Tensor, mode: str) -> Any:
    """The Pillow image of a tensor [C, H, W] of uint8: of `mode` if that has as many channels."""
    from PIL import Image

    channels, height, width = pixels.shape
    mode = mode if _CHANNELS.get(mode) == channels else _MODES[channels]
    content = bytes(pixels.permute([1, 2, 0]).contiguous()._bytes())  # type: ignore[attr-defined]
    return Image.frombytes(mode, (width, height), content)


def takes_pictures(function: F) -> F:
    """`function(image, ...)`, or a method, of tensors, for Pillow images as well."""
    names = list(inspect.signature(function).parameters)
    place = 1 if names[0] == "self" else 0

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        image: Any = args[place] if len(args) > place else kwargs.get(names[place])
        if isinstance(image, Tensor) or (len(args) <= place and names[place] not in kwargs):
            return function(*args, **kwargs)
        if not is_picture(image):
            caller = type(args[0]).__name__ if place else function.__name__
            raise TypeError(
                f"{caller}: expected an image as a tensor [..., C, H, W] or of Pillow, got "
                f"{type(image).__name__}; to_tensor() makes tensors of arrays [H, W, C]"
            )
        if len(args) > place:
            args = (*args[:place], pixels_of(image), *args[place + 1 :])
        else:
            kwargs = {**kwargs, names[place]: pixels_of(image)}
        result = function(*args, **kwargs)
        if isinstance(result, Tensor) and result.dtype == tenon.uint8:
            return picture_of(result, image.mode)
        return result

    return wrapper  # type: ignore[return-value]
