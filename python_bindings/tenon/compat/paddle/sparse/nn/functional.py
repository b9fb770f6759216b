# SPDX-License-Identifier: Apache-2.0
"""paddle.sparse.nn.functional."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon import sparse as _sparse
from tenon._core import Tensor
from tenon.compat.paddle.sparse import _functions

_F = _sparse.nn.functional

__all__ = """attention conv2d conv3d leaky_relu max_pool3d relu relu6 softmax subm_conv2d subm_conv2d_igemm
subm_conv3d subm_conv3d_igemm""".split()


def relu(x: Tensor, name: Any = None) -> Tensor:
    """The positive stored elements."""
    _functions.expect_sparse("relu", x)
    return _core.operator("relu")(x)


def relu6(x: Tensor, name: Any = None) -> Tensor:
    """The stored elements between 0 and 6."""
    _functions.expect_sparse("relu6", x)
    return _core.operator("clip")(x, 0.0, 6.0)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, name: Any = None) -> Tensor:
    """Negative stored elements times `negative_slope`."""
    _functions.expect_sparse("leaky_relu", x)
    return _core.operator("leaky_relu")(x, negative_slope)


def softmax(x: Tensor, axis: int = -1, name: Any = None) -> Tensor:
    """sparse.softmax along the last axis: what is not stored takes no part."""
    _functions.expect_sparse("softmax", x)
    if axis not in (-1, x.ndim - 1):
        raise NotImplementedError(f"sparse.softmax(): expected the last axis, got {axis}")
    return _sparse.softmax(x, -1)


def _dense_weight(weight: Tensor) -> Tensor:
    """[kernel, in, out] as [out, in, kernel]."""
    axes = weight.ndim - 2
    return _core.operator("permute")(weight, [axes + 1, axes, *range(axes)])


def _expect_format(name: str, given: str, wanted: str) -> None:
    if given != wanted:
        raise ValueError(f"sparse.{name}(): expected data_format {wanted!r}, got {given!r}")


def _grown(name: str, wanted: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        data_format: str = wanted,
        name: Any = None,
    ) -> Tensor:
        called = function.__name__
        _expect_format(called, data_format, wanted)
        if isinstance(padding, str):
            raise NotImplementedError(
                f"sparse.{called}(): expected padding in numbers, got {padding!r}"
            )
        return getattr(_F, called)(
            x, _dense_weight(weight), bias, stride, padding, dilation, groups
        )

    function.__name__, function.__doc__ = name, f"sparse.nn.functional.{name}."
    return function


def _submanifold(name: str, wanted: str, called: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        data_format: str = wanted,
        key: Any = None,
        name: Any = None,
    ) -> Tensor:
        _expect_format(function.__name__, data_format, wanted)
        if any(step != 1 for step in (stride if isinstance(stride, (list, tuple)) else [stride])):
            raise NotImplementedError(
                f"sparse.{function.__name__}(): expected stride 1, as sites stay, got {stride}"
            )
        return getattr(_F, called)(x, _dense_weight(weight), bias, dilation, groups)

    function.__name__ = name
    function.__doc__ = f"sparse.nn.functional.{called}; the grid stays, whatever the padding."
    return function


conv2d, conv3d = _grown("conv2d", "NHWC"), _grown("conv3d", "NDHWC")
subm_conv2d = _submanifold("subm_conv2d", "NHWC", "subm_conv2d")
subm_conv2d_igemm = _submanifold("subm_conv2d_igemm", "NHWC", "subm_conv2d")
subm_conv3d = _submanifold("subm_conv3d", "NDHWC", "subm_conv3d")
subm_conv3d_igemm = _submanifold("subm_conv3d_igemm", "NDHWC", "subm_conv3d")


def max_pool3d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "NDHWC",
    name: Any = None,
) -> Tensor:
    """The largest stored element of each window."""
    _expect_format("max_pool3d", data_format, "NDHWC")
    if ceil_mode or isinstance(padding, str):
        raise NotImplementedError(
            f"sparse.max_pool3d(): expected ceil_mode=False and padding in numbers, got {ceil_mode} and "
            f"{padding!r}"
        )
    return _F.max_pool3d(x, kernel_size, stride, padding)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_mask: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    name: Any = None,
) -> Tensor:
    """Attention along the stored elements of `sparse_mask` [batch * heads, positions, positions] of layout coo, of query,
    key and value [batch, heads, positions, features]."""
    if key_padding_mask is not None or attn_mask is not None:
        raise NotImplementedError(
            "sparse.attention(): expected no key_padding_mask and no attn_mask; leave the elements out "
            "of sparse_mask"
        )
    _functions.expect_sparse("attention", sparse_mask, "coo")
    batch, heads, positions, features = query.shape
    if tuple(sparse_mask.shape) != (batch * heads, positions, positions):
        raise ValueError(
            f"sparse.attention(): expected sparse_mask of shape {(batch * heads, positions, positions)}, "
            f"got {tuple(sparse_mask.shape)}"
        )
    # One tall matrix, with a block on its diagonal for each head.
    number, row, column = sparse_mask.coalesce().indices()
    size = batch * heads * positions
    rows = tenon.stack([number * positions + row, number * positions + column])
    ones = tenon.ones([rows.shape[1]], dtype=query.dtype, device=query.device)
    pattern = _core.convert_layout(_core.compose("coo", [size, size], [rows, ones]), "csr")
    q, k = query.reshape([size, features]), key.reshape([size, features])
    scores = _sparse.sddmm(pattern, q / math.sqrt(features), k)
    mixed = _sparse.softmax(scores) @ value.reshape([size, value.shape[-1]])
    return mixed.reshape([batch, heads, positions, value.shape[-1]])
