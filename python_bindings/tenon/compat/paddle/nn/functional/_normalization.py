# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: normalization. Paddle's `momentum` is the part that running statistics keep."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.paddle.nn.functional._layout import by_format, is_last

__all__ = """batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm""".split()

_F = tenon.nn.functional


def normalize(x: Tensor, p: float = 2, axis: int = 1, epsilon: float = 1e-12) -> Tensor:
    """x over its p-norm along an axis, or over `epsilon` if that is larger; vectors along their axis."""
    axis = 0 if x.ndim == 1 else axis
    length = tenon.linalg.vector_norm(x, axis=axis, keepdims=True, ord=float(p))
    return x / _operator("maximum")(length, epsilon)


def _lengths(normalized_shape: int | Sequence[int]) -> list[int]:
    return [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalised over the last axes, which have the given lengths."""
    shape = _lengths(normalized_shape)
    weight = None if weight is None else weight.reshape(shape)
    bias = None if bias is None else bias.reshape(shape)
    return _F.layer_norm(x, shape, weight, bias, epsilon)


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Over the root of the mean square of the last axes, which have the given lengths."""
    shape = _lengths(normalized_shape)
    if list(input.shape[input.ndim - len(shape) :]) != shape:
        raise ValueError(
            f"rms_norm(): expected the last axes of the input to be {shape}, got {tuple(input.shape)}"
        )
    axes = list(range(input.ndim - len(shape), input.ndim))
    made = input * _operator("rsqrt")((input * input).mean(axes, keepdim=True) + eps)
    return made if weight is None else made * weight.reshape(shape)


def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
) -> Tensor:
    """Every channel normalised by the batch in training, otherwise by the running statistics. In training
    these keep the part `momentum` and take the rest from the batch."""
    if x.ndim < 2:
        raise ValueError(f"batch_norm(): expected at least two axes, got {x.ndim}")
    if use_global_stats not in (None, True, False):
        raise TypeError(
            f"batch_norm(): expected use_global_stats True, False or None, got {use_global_stats!r}"
        )
    last = is_last("batch_norm", data_format) and x.ndim > 2
    channel = x.ndim - 1 if last else 1
    axes = [i for i in range(x.ndim) if i != channel]
    lengths = [1] * x.ndim
    lengths[channel] = -1
    uses_running = (not training) if use_global_stats is None else bool(use_global_stats)
    if uses_running:
        mean, variance = running_mean, running_var
    else:
        mean = x.mean(axes)
        off = x - mean.reshape(lengths)
        variance = (off * off).mean(axes)
        keep = float(momentum)
        with tenon.no_grad():
            running_mean.copy_(running_mean * keep + mean.detach() * (1 - keep))
            running_var.copy_(running_var * keep + variance.detach() * (1 - keep))
    scale = _operator("rsqrt")(variance + epsilon)
    scale = scale if weight is None else scale * weight
    made = (x - mean.reshape(lengths)) * scale.reshape(lengths)
    return made if bias is None else made + bias.reshape(lengths)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-5,
    data_format: str = "NCHW",
) -> Tensor:
    """Every channel of every sample normalised by itself. Running statistics have no part in it."""
    if not use_input_stats or running_mean is not None or running_var is not None:
        raise NotImplementedError(
            "instance_norm(): expected no running statistics and use_input_stats=True; Tenon's are in "
            "tenon.nn.functional.instance_norm"
        )
    if is_last("instance_norm", data_format):
        raise ValueError(f"instance_norm(): expected channels first, got {data_format!r}")
    return _F.instance_norm(x, None, None, weight, bias, True, 0.0, eps)


def group_norm(
    x: Tensor,
    num_groups: int,
    epsilon: float = 1e-5,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """Groups of channels of every sample normalised together."""
    return by_format(
        "group_norm",
        x,
        data_format,
        None,
        lambda y: _operator("group_norm")(y, num_groups, weight, bias, epsilon),
    )


def local_response_norm(
    x: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
) -> Tensor:
    """Over a power of the mean square of neighbouring channels."""
    return by_format(
        "local_response_norm",
        x,
        data_format,
        None,
        lambda y: _F.local_response_norm(y, size, alpha, beta, k),
    )
