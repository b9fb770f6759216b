# SPDX-License-Identifier: Apache-2.0
"""Files of the IDX format, in which MNIST and data sets like it are distributed."""

from __future__ import annotations

import array
import gzip
import math
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenon
from tenon import Tensor

from .arrays import ImageArrays, check_flags, existing

_DTYPES = {  # and the type codes of Python's array
    0x08: (tenon.uint8, "B"),
    0x09: (tenon.int8, "b"),
    0x0B: (tenon.int16, "h"),
    0x0C: (tenon.int32, "i"),
    0x0D: (tenon.float32, "f"),
    0x0E: (tenon.float64, "d"),
}


def read_idx(path: str | Path) -> Tensor:
    """The tensor in a file of the IDX format, which may be compressed by gzip."""
    path = Path(path)
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _DTYPES:
        raise ValueError(f"read_idx: expected a file of the IDX format, got {path}")
    (dtype, code), ndim = _DTYPES[content[2]], content[3]
    start = 4 + 4 * ndim
    shape = struct.unpack(f">{ndim}I", content[4:start]) if len(content) >= start else ()
    expected = start + math.prod(shape) * dtype.itemsize
    if len(content) != expected or len(shape) != ndim:
        raise ValueError(
            f"read_idx: expected {expected} bytes in {path}, got {len(content)}; it may be cut off"
        )
    numbers = array.array(code, content[start:])
    if sys.byteorder == "little":
        numbers.byteswap()  # numbers of the format are big-endian
    return tenon.frombuffer(numbers, dtype, shape)


class MNIST(ImageArrays):
    """28 x 28 pixels of handwritten digits, uint8, from the four IDX files in `root`, `root`/raw or
    `root`/MNIST/raw (LeCun et al., 1998)."""

    classes = tuple("0123456789")

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Callable[[Tensor], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        download: bool = False,
    ) -> None:
        # With `download` scripts ask for files that may be there: nothing is downloaded.
        check_flags(type(self).__name__, train=train, download=download)
        part = "train" if train else "t10k"
        images = read_idx(self._file(root, f"{part}-images-idx3-ubyte"))
        labels = read_idx(self._file(root, f"{part}-labels-idx1-ubyte"))
        super().__init__(images.unsqueeze(1), labels.to(tenon.int64), transform, target_transform)

    def _file(self, root: str | Path, name: str) -> Path:
        kind = type(self).__name__
        folders = ("", "raw/", f"{kind}/raw/")
        names = [f"{folder}{name}{end}" for folder in folders for end in ("", ".gz")]
        return existing(root, names, kind)


class FashionMNIST(MNIST):
    """28 x 28 pixels of clothes, in files of the same names (Xiao et al., 2017)."""

    classes = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )
