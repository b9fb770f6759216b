# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional: functions with PyTorch's parameters. Those that do not need code of their own are
tenon.nn.functional's, called by PyTorch's signatures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat._adapt import at, functions_of, operators_of
from tenon.compat.torch import (
    _conversions,
    _functions,
    _layers,
    _moments,
    _options,
    _pooling,
    _signatures,
)
from tenon.compat.torch.nn import _fractional, _images, _lookup, _losses
from tenon.compat.torch.nn._attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from tenon.nn import functional as _functional

_CONVOLUTIONS = """conv1d conv2d conv3d conv_transpose1d conv_transpose2d
conv_transpose3d""".split()

__all__ = (
    """gelu gumbel_softmax hardshrink hardtanh log_softmax logsigmoid multi_head_attention_forward normalize pixel_shuffle
    pixel_unshuffle prelu relu6 rms_norm
    scaled_dot_product_attention silu softmax softmin softplus softshrink softsign threshold""".split()
    + _CONVOLUTIONS
    + _fractional.__all__
    + _images.__all__
    + _lookup.__all__
    + _losses.__all__
    + _pooling.__all__
)

globals().update({name: getattr(_layers, name) for name in _CONVOLUTIONS})
for _module in (_fractional, _images, _lookup, _losses, _pooling):
    globals().update({name: getattr(_module, name) for name in _module.__all__})
prelu = _conversions.prelu
pixel_shuffle, pixel_unshuffle = _functions.pixel_shuffle, _functions.pixel_unshuffle


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution's share below x; 'tanh' approximates it."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu(): expected approximate 'none' or 'tanh', got {approximate!r}")
    return tenon.gelu(input, approximate == "tanh")


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of sigmoid(x), without underflow."""
    return tenon.log_sigmoid(input)


def silu(input: Tensor) -> Tensor:
    """x sigmoid(x), also of complex numbers."""
    return input * _moments.sigmoid(input) if input.dtype.is_complex else tenon.silu(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + abs(x)), also of complex numbers."""
    return input / (1 + abs(input)) if input.dtype.is_complex else tenon.softsign(input)


def _of_dtype(result: Tensor, input: Tensor) -> Tensor:
    """Whole numbers stay whole numbers, cut as PyTorch cuts bounds."""
    return result if input.dtype.is_floating_point else result.to(input.dtype)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x between `min_val` and `max_val`."""
    if min_val > max_val:
        raise ValueError(
            f"hardtanh(): expected min_val up to max_val, got {min_val!r} and {max_val!r}"
        )
    return _of_dtype(tenon.hardtanh(input, float(min_val), float(max_val)), input)


def relu6(input: Tensor) -> Tensor:
    """x between 0 and 6."""
    return _of_dtype(tenon.relu6(input), input)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above `threshold`, else `value`."""
    return _of_dtype(tenon.threshold(input, threshold, value), input)


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
        return function(_functions._inexact(name, input, dtype), dim)

    of_rows.__name__ = name
    of_rows.__doc__ = f"tenon.{name} along `dim`, computed in `dtype`."
    return of_rows


softmax, log_softmax, softmin = map(_of_rows, ("softmax", "log_softmax", "softmin"))


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
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + attn_mask) @ value."""
    return tenon.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its norm of order `p` over `dim`, which is at least `eps`."""
    if isinstance(dim, int) and isinstance(p, (int, float)):
        return tenon.normalize(input, p, dim, eps)
    return input / tenon.clip(_functions.norm(input, p, dim, True), eps, None)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random, differentiable sample of one of the classes along `dim`. `eps` does nothing, in PyTorch neither; another
    value than the default is refused."""
    if eps != 1e-10:
        raise NotImplementedError(f"gumbel_softmax(): expected eps=1e-10, got {eps!r}")
    return _functional.gumbel_softmax(logits, tau, hard, dim)


_OWN = set(__all__)
_OPERATORS = operators_of("torch", "nn.functional.")
_FUNCTIONS = functions_of("torch", "nn.functional.")
_SHARED = {*_OPERATORS, *_FUNCTIONS} - _OWN
_signatures.adapt_all("nn.functional", __all__, globals())


def __getattr__(name: str) -> Any:
    if name in _SHARED:
        # An operator or function of Tenon, called by PyTorch's signature.
        shared = _core.operator(_OPERATORS[name]) if name in _OPERATORS else at(_FUNCTIONS[name])
        function = _signatures.adapted(f"nn.functional.{name}", shared)
        globals()[name] = function
        return function
    if name.endswith("_") and name[:-1] in _IN_PLACE:
        function = _in_place(name)
        globals()[name] = function
        return function
    where = "; tenon.nn.functional has it" if hasattr(_functional, name) else ""
    raise AttributeError(
        f"tenon.compat.torch.nn.functional does not cover torch.nn.functional.{name}{where}"
    )


def _in_place(name: str) -> Callable[..., Tensor]:
    plain = __getattr__(name[:-1]) if name[:-1] in _SHARED else globals()[name[:-1]]
    return _options.in_place(name, plain)


_IN_PLACE = set("celu elu hardtanh leaky_relu relu rrelu selu threshold".split())


def __dir__() -> list[str]:
    return sorted({*__all__, *_SHARED, *(f"{each}_" for each in _IN_PLACE)})
