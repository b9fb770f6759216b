# SPDX-License-Identifier: Apache-2.0
"""Functions of Paddle's by the names that PyTorch has for them."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.paddle import _composed, _functions, _selection
from tenon.compat.paddle.nn import functional as F

__all__ = """adaptive_avg_pool1d argwhere as_tensor asarray clamp concatenate conv1d conv2d conv3d div from_numpy group_norm layer_norm
matrix_transpose msort narrow rand_like randn_like ravel scatter_add softmax sub take_along_dim true_divide view_as_complex view_as_real""".split()

clamp, concatenate = _functions.clip, _functions.concat
sub, div = _composed.subtract, _composed.divide
take_along_dim = _selection.take_along_axis
adaptive_avg_pool1d, group_norm, layer_norm = F.adaptive_avg_pool1d, F.group_norm, F.layer_norm
conv1d, conv2d, conv3d = F.conv1d, F.conv2d, F.conv3d


def true_divide(input: Tensor, other: Any) -> Tensor:
    """divide() without rounding."""
    return _composed.divide(input, other)


def argwhere(input: Tensor) -> Tensor:
    """The indices of what is not zero, a row for each."""
    return tenon.nonzero(input)


def as_tensor(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`data` itself where it is a tensor of that dtype and device, else a copy."""
    if isinstance(data, Tensor):
        made = data if dtype is None else data.to(dtype=dtype)
    else:
        made = _functions.to_tensor(data, dtype)
    made = made if device is None else made.to(device)
    return made.requires_grad_() if requires_grad else made


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """as_tensor(), with `copy` of a tensor's own memory in any case, or in none."""
    made = as_tensor(obj, dtype, device)
    shares = made is obj
    if copy is False and not shares:
        raise ValueError(
            f"asarray(): expected a tensor of that dtype and device beside copy=False, got {type(obj).__name__}"
        )
    if copy and shares:
        made = made.clone()
    return made.requires_grad_() if requires_grad else made


def from_numpy(ndarray: Any) -> Tensor:
    """The array's numbers, in its memory."""
    return tenon.from_numpy(ndarray)


def matrix_transpose(x: Tensor) -> Tensor:
    """The last two axes exchanged."""
    return tenon.linalg.matrix_transpose(x)


def msort(input: Tensor) -> Tensor:
    """Sorted along the first axis."""
    return tenon.sort(input, 0)


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements along an axis from `start` on."""
    first = int(start.item()) if isinstance(start, Tensor) else start
    return _core.operator("narrow")(input, dim, first, length)


def rand_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Numbers from 0 to 1 in the shape of `input`, and in its dtype unless one is given."""
    made = tenon.rand(list(input.shape), dtype=dtype or input.dtype, device=device or input.device)
    return made.requires_grad_() if requires_grad else made


def randn_like(
    x: Tensor, dtype: Any = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Numbers of the normal distribution in the shape of `x`, and in its dtype unless one is given."""
    made = tenon.randn(list(x.shape), dtype=dtype or x.dtype, device=device or x.device)
    return made.requires_grad_() if requires_grad else made


def ravel(input: Tensor) -> Tensor:
    """The elements in one axis."""
    return input.reshape([-1])


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` plus `src`, of which the extents of `index` count, at `index` along an axis."""
    return tenon.scatter_add(input, index, cut(src, index), dim)


def cut(src: Tensor, index: Tensor) -> Tensor:
    """The first elements of `src` along each axis, as many as `index` has."""
    return src[tuple(slice(extent) for extent in index.shape)]


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """nn.functional.softmax(). If no axis is named, it is the first of tensors with none, one or three, and else the second."""
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return F.softmax(input, dim, dtype)


def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers along the last axis as complex ones."""
    return tenon.as_complex(input)


def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along a new last axis."""
    return tenon.as_real(input)
