# SPDX-License-Identifier: Apache-2.0
"""Images in files: their bytes, and what these hold."""

from __future__ import annotations

import io
import os

import tenon
from tenon import Tensor
from tenon._tensor import numpy as np
from tenon.data.optional import need

_MODES = {"unchanged": None, "gray": "L", "rgb": "RGB"}


def read_file(filename: str | os.PathLike[str]) -> Tensor:
    """The bytes of a file, uint8 [size]."""
    # open() takes descriptors of files, too, and reads and closes them.
    if not isinstance(filename, str | os.PathLike):
        raise TypeError(f"read_file: expected a path, got {type(filename).__name__}")
    with open(filename, "rb") as file:
        return tenon.tensor(np.frombuffer(file.read(), np.uint8).copy())


def decode_jpeg(x: Tensor, mode: str = "unchanged") -> Tensor:
    """The picture, uint8 [channels, height, width], in the bytes `x` of a JPEG file: 'gray', 'rgb', or 'unchanged' as it is stored."""
    if mode not in _MODES:
        raise ValueError(f"decode_jpeg: expected mode 'unchanged', 'gray' or 'rgb', got {mode!r}")
    if str(x.dtype) != "uint8" or x.ndim != 1:
        raise ValueError(
            f"decode_jpeg: expected bytes, uint8 [size], got {x.dtype} of shape {tuple(x.shape)}"
        )
    need("PIL.Image", "pillow", "decode_jpeg")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(x.numpy().tobytes()), formats=["JPEG"]) as picture:
            wanted = _MODES[mode]
            pixels = np.array(picture if wanted is None else picture.convert(wanted), np.uint8)
    except (OSError, SyntaxError) as error:
        raise ValueError(f"decode_jpeg: expected the bytes of a JPEG file: {error}") from error
    return tenon.tensor(
        np.ascontiguousarray(pixels.transpose(2, 0, 1) if pixels.ndim == 3 else pixels[None])
    )
