# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional: functions with PyTorch's parameters, and tenon.nn.functional's for the others,
which take `input` and `dim` for what Tenon calls `x` and `axis`."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat import _adapt
from tenon.compat.torch import _conversions, _layers, _moments
from tenon.compat.torch.nn import _pooling
from tenon.compat.torch.nn._attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from tenon.nn import functional as _functional

_CONVOLUTIONS = """conv1d conv2d conv3d conv_transpose1d conv_transpose2d
conv_transpose3d""".split()

__all__ = (
    """embedding gelu linear_cross_entropy multi_head_attention_forward hardshrink hardtanh log_softmax logsigmoid one_hot prelu rms_norm
scaled_dot_product_attention silu softmax softmin softplus softshrink softsign upsample_bilinear
upsample_nearest""".split()
    + _CONVOLUTIONS
    + _pooling.__all__
)

globals().update({name: getattr(_layers, name) for name in _CONVOLUTIONS})
globals().update({name: getattr(_pooling, name) for name in _pooling.__all__})
prelu = _conversions.prelu


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` at the indices `input`. With `max_norm`, rows of a larger norm are scaled to it first, in `weight`
    itself."""
    if sparse:
        raise NotImplementedError("embedding(): expected sparse=False; gradients are dense")
    if max_norm is not None:
        with tenon.no_grad():
            rows = tenon.unique_values(input)
            chosen = tenon.index_select(weight, rows, 0)
            norms = tenon.norm(chosen, norm_type, [1], True)
            scale = tenon.where(norms > max_norm, max_norm / (norms + 1e-7), tenon.ones_like(norms))
            weight.copy_(tenon.index_put(weight, [rows], chosen * scale))
    return _functional.embedding(input, weight, padding_idx, scale_grad_by_freq)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target, ...). `options` are PyTorch's for computing it in
    parts, and change no result."""
    classes, *inner, features = linear_weight.shape
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = tenon.linear(input, linear_weight.reshape([-1, features]), bias)
    logits = logits.reshape([*input.shape[:-1], classes, *inner])
    named: dict[str, Any] = {} if ignore_index is None else {"ignore_index": ignore_index}
    return _functional.cross_entropy(
        logits, target, weight, reduction=reduction, label_smoothing=label_smoothing, **named
    )


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution's share below x; 'tanh' approximates it."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu(): expected approximate 'none' or 'tanh', got {approximate!r}")
    return tenon.gelu(input, approximate == "tanh")


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of sigmoid(x), without underflow."""
    return tenon.log_sigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x), also of complex numbers. The result is new memory even if `inplace`."""
    return input * _moments.sigmoid(input) if input.dtype.is_complex else tenon.silu(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + abs(x)), also of complex numbers."""
    return input / (1 + abs(input)) if input.dtype.is_complex else tenon.softsign(input)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`input` [N, C, ...] resized to `size` or by `scale_factor`, each element the nearest one."""
    return _functional.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`input` [N, C, H, W] resized bilinearly; the corners stay corners, as align_corners says."""
    return _functional.interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x between `min_val` and `max_val`."""
    return tenon.hardtanh(input, min_val, max_val)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, or 0 where its magnitude is at most `lambd`."""
    return tenon.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`."""
    return tenon.softshrink(input, lambd)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta, and x itself where beta x exceeds `threshold`."""
    return tenon.where(input * beta > threshold, input, tenon.softplus(input, beta))


def _of_rows(name: str) -> Callable[..., Tensor]:
    function = getattr(_functional, name)

    def of_rows(
        input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
    ) -> Tensor:
        if dim is None:
            raise TypeError(f"{name}(): expected dim, got none; give the axis, such as dim=-1")
        return function(input if dtype is None else input.to(dtype), dim)

    of_rows.__name__ = name
    of_rows.__doc__ = f"tenon.{name} along `dim`, computed in `dtype`."
    return of_rows


softmax, log_softmax, softmin = map(_of_rows, ("softmax", "log_softmax", "softmin"))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of 0 with 1 at each index, in int64; without `num_classes` up to the largest index."""
    if num_classes < 0:
        if tensor.numel() == 0:
            raise ValueError(
                "one_hot(): expected num_classes for a tensor without elements, got -1"
            )
        num_classes = int(tensor.max().item()) + 1
    return tenon.one_hot(tensor, num_classes).to(tenon.int64)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x divided by its root mean square over the last axes, those of `normalized_shape`."""
    axes = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(axes) :]) != axes:
        raise ValueError(
            f"rms_norm(): expected input whose last axes are {axes}, got shape {tuple(input.shape)}"
        )
    eps = tenon.finfo(input.dtype).eps if eps is None else eps
    joined = input.reshape([*input.shape[: input.ndim - len(axes)], math.prod(axes)])
    flat = None if weight is None else weight.reshape(-1)
    return tenon.rms_norm(joined, flat, eps).reshape(input.shape)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + attn_mask) @ value."""
    return tenon.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )


def _with_keywords(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Tenon's that also takes `input` for `x`, and `dim` for `axis`."""
    own = inspect.signature(function).parameters
    names = {
        theirs: ours
        for theirs, ours in (("input", "x"), ("dim", "axis"))
        if ours in own and theirs not in own
    }
    if not names:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{names.get(key, key): each for key, each in kwargs.items()})

    return call


def __getattr__(name: str) -> Any:
    function = getattr(_functional, name)
    if name.startswith("_") or not callable(function):
        return function
    if isinstance(function, type(_core.operator("add"))):
        function = _adapt.operator(function.__name__)
    elif inspect.isfunction(function):
        function = _with_keywords(function)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_functional)})
