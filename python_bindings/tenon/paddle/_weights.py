# SPDX-License-Identifier: Apache-2.0
"""Reader of `.pdiparams` files: tensors back to back, without names, in the alphabetical order of the parameters.

4 bytes     version of the list, 0
8 bytes     levels of sequences, and for each its length in bytes and these
4 bytes     version of the tensor, 0
4 bytes     length of what follows: a TensorDesc, with dtype and shape
the rest    elements, row-major, little-endian, at whatever offset that is
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Sequence

import tenon
from tenon._core import Tensor
from tenon.paddle._blocks import Input
from tenon.paddle._program_desc import tensor_type

_MOST_LEVELS = 64


def read(path: str | os.PathLike, parameters: Sequence[Input]) -> dict[str, Tensor]:
    """The tensors by the names of the parameters, in the mapped file where their elements lie at multiples of their size, else
    copied. ValueError: the file does not fit them."""
    if not parameters:
        return {}
    shown = os.path.basename(os.fspath(path))
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    except FileNotFoundError:
        raise ValueError(
            f"{shown}: expected the file of the model's {len(parameters)} weights beside it, there is none"
        ) from None
    view = memoryview(data)
    found: dict[str, Tensor] = {}
    at = 0
    for each in parameters:
        try:
            found[each.name], at = _tensor(view, at, each, shown)
        except (struct.error, IndexError):
            raise ValueError(f"{shown}: it ends within the weight {each.name!r}") from None
    if at != len(view):
        raise ValueError(
            f"{shown}: expected {at} bytes, as the model's {len(parameters)} weights have, got {len(view)}"
        )
    return found


def _tensor(view: memoryview, at: int, parameter: Input, shown: str) -> tuple[Tensor, int]:
    version, levels = struct.unpack_from("<IQ", view, at)
    at += 12
    if version != 0 or levels > _MOST_LEVELS:
        raise ValueError(
            f"{shown}: expected a tensor of version 0 at the weight {parameter.name!r}, got version {version}"
        )
    for _ in range(levels):
        (length,) = struct.unpack_from("<Q", view, at)
        at += 8 + length
    version, length = struct.unpack_from("<Ii", view, at)
    at += 8
    if version != 0 or length < 0 or length > len(view) - at:
        raise ValueError(
            f"{shown}: expected a tensor's description at the weight {parameter.name!r}"
        )
    found = tensor_type(view[at : at + length], shown)
    at += length
    shape = found.shape or ()
    if found != parameter.type or any(each < 0 for each in shape):
        raise ValueError(
            f"{shown}: expected {parameter.type.dtype}{list(parameter.type.shape or ())} as the weight "
            f"{parameter.name!r}, got {found.dtype}{list(shape)}; is it of another model?"
        )
    dtype: tenon.dtype = getattr(tenon, found.dtype)
    size = math.prod(shape) * dtype.itemsize
    if size > len(view) - at:
        raise ValueError(f"{shown}: it ends within the weight {parameter.name!r}")
    if size == 0:
        return tenon.zeros(shape, dtype=dtype), at
    part = view[at : at + size]
    if at % dtype.itemsize:
        part = memoryview(bytearray(part))
    return tenon.frombuffer(part, dtype, shape), at + size
