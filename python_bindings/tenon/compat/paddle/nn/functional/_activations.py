# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: activations and what drops elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.paddle._functions import floating
from tenon.compat.paddle.nn.functional._layout import is_last as _is_last

__all__ = """alpha_dropout celu dropout dropout1d dropout2d dropout3d elu elu_ feature_alpha_dropout gelu glu
gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ log_sigmoid
log_softmax logsigmoid maxout mish prelu relu relu6 relu_ rrelu selu sigmoid silu softmax softmax_ softplus
softshrink softsign swiglu swish tanh tanh_ tanhshrink thresholded_relu thresholded_relu_""".split()

_F = tenon.nn.functional


def _of_one(name: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return _operator(name)(x)

    function.__doc__ = f"tenon.{name}."
    return function


relu, relu6, sigmoid, tanh = map(_of_one, "relu relu6 sigmoid tanh".split())
hardswish, mish, softsign, tanhshrink = map(_of_one, "hardswish mish softsign tanhshrink".split())
log_sigmoid = logsigmoid = _of_one("log_sigmoid")
swish = _of_one("silu")


def silu(x: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return x.copy_(_operator("silu")(x)) if inplace else _operator("silu")(x)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    if alpha == 0:
        raise ZeroDivisionError("celu(): expected alpha not to be 0")
    return _operator("celu")(x, float(alpha))


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below."""
    return _operator("elu")(x, float(alpha))


def gelu(x: Tensor, approximate: bool = False) -> Tensor:
    """x times the normal distribution at x, by tanh if `approximate`."""
    return _operator("gelu")(x, bool(approximate))


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second."""
    return _operator("glu")(x, axis)


def swiglu(x: Tensor, y: Tensor | None = None) -> Tensor:
    """silu(x) * y, or of the halves of x along its last axis."""
    return _F.swiglu(x, y)


def hardshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x, and 0 between -threshold and threshold, which stay."""
    # Paddle keeps the threshold itself.
    return _operator("where")(x.abs() >= float(threshold), x, _operator("zeros_like")(x))


def softshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x moved towards 0 by the threshold."""
    if threshold < 0:
        raise ValueError(f"softshrink(): expected a threshold of at least 0, got {threshold}")
    return _operator("softshrink")(x, float(threshold))


def hardsigmoid(x: Tensor, slope: float = 0.1666667, offset: float = 0.5) -> Tensor:
    """slope * x + offset, moved into [0, 1]."""
    return _operator("clip")(x * float(slope) + float(offset), 0.0, 1.0)


def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0) -> Tensor:
    """x moved into [min, max]."""
    return _operator("hardtanh")(x, float(min), float(max))


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, below 0 times the slope."""
    return _operator("leaky_relu")(x, float(negative_slope))


def thresholded_relu(x: Tensor, threshold: float = 1.0, value: float = 0.0) -> Tensor:
    """x above the threshold, `value` elsewhere."""
    return _operator("where")(x > threshold, x, float(value))


def selu(
    x: Tensor, scale: float = 1.0507009873554804934193349852946, alpha: float = 1.6732632423543772
) -> Tensor:
    """scale * x, below 0 scale * alpha * (exp(x) - 1)."""
    if scale <= 1.0:
        raise ValueError(f"selu(): expected a scale above 1, got {scale}")
    if alpha < 0:
        raise ValueError(f"selu(): expected alpha of at least 0, got {alpha}")
    return _operator("elu")(x, float(alpha)) * float(scale)


def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta, and x where beta x is above the threshold."""
    smooth = _operator("softplus")(x, float(beta))
    return _operator("where")(x * float(beta) > float(threshold), x, smooth)


def maxout(x: Tensor, groups: int, axis: int = 1) -> Tensor:
    """The largest of each group along an axis."""
    return _F.maxout(x, groups, axis)


def prelu(x: Tensor, weight: Tensor, data_format: str = "NCHW") -> Tensor:
    """x, below 0 times the weight: one for all, or one for each channel."""
    last = _is_last("prelu", data_format)
    if weight.numel() == 1:
        return _operator("where")(x > 0, x, x * weight.reshape([1] * x.ndim if x.ndim else []))
    axis = x.ndim - 1 if last else 1
    if weight.ndim != 1 or x.ndim < 2 or weight.shape[0] != x.shape[axis]:
        raise ValueError(
            f"prelu(): expected a weight of 1 or one for each channel, axis {axis} of shape "
            f"{tuple(x.shape)}, got shape {tuple(weight.shape)}"
        )
    lengths = [1] * x.ndim
    lengths[axis] = -1
    return _operator("where")(x > 0, x, x * weight.reshape(lengths))


def rrelu(x: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = True) -> Tensor:
    """Negative numbers times a random slope, or outside of training times the mean slope."""
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"rrelu(): expected 0 <= lower <= upper <= 1, got {lower} and {upper}")
    return tenon.nn.functional.rrelu(x, lower, upper, training)


def softmax(x: Tensor, axis: int = -1, dtype: Any = None) -> Tensor:
    """Exponentials over their sum along an axis."""
    return _operator("softmax")(x if dtype is None else x.to(dtype=dtype), axis)


def log_softmax(x: Tensor, axis: int = -1, dtype: Any = None) -> Tensor:
    """The logarithms of softmax()."""
    return _operator("log_softmax")(x if dtype is None else x.to(dtype=dtype), axis)


def gumbel_softmax(
    x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1
) -> Tensor:
    """Softmax of logits with Gumbel noise, as one-hot vectors if `hard`."""
    return _F.gumbel_softmax(x, float(temperature), hard, axis)


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    import functools

    @functools.wraps(function)
    def write(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        made = function(x, *args, **kwargs)
        if made.dtype != x.dtype:
            raise TypeError(f"{function.__name__}_(): expected dtype {x.dtype}, got {made.dtype}")
        return x.copy_(made)

    return write


elu_, hardtanh_, leaky_relu_ = _in_place(elu), _in_place(hardtanh), _in_place(leaky_relu)
relu_, softmax_, tanh_ = _in_place(relu), _in_place(softmax), _in_place(tanh)
thresholded_relu_ = _in_place(thresholded_relu)


# -- dropping elements -----------------------------------------------------------------------------


def _check_probability(name: str, p: Any) -> float:
    p = float(p)
    if not 0 <= p <= 1:
        raise ValueError(f"{name}(): expected p from 0 to 1, got {p}")
    return p


def dropout(
    x: Tensor,
    p: Any = 0.5,
    axis: Any = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
) -> Tensor:
    """With elements set to 0 with probability p; along the axes that `axis` leaves out they go together. By
    `mode` those that stay grow in training, or all shrink otherwise."""
    p = _check_probability("dropout", p)
    floating("dropout", x)
    if isinstance(axis, str):
        raise TypeError(f"dropout(): expected axes as numbers, got {axis!r}")
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(
            f"dropout(): expected mode 'upscale_in_train' or 'downscale_in_infer', got {mode!r}"
        )
    grows = mode == "upscale_in_train"
    if not training:
        made = x if grows else x * (1 - p)
    elif p == 0:
        made = x
    elif p == 1:
        made = x * 0.0
    else:
        axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = [each % x.ndim for each in axes]
        shape = [n if i in axes else 1 for i, n in enumerate(x.shape)]
        like = _operator("full")(shape, 1 - p, dtype=x.dtype, device=x.device)
        kept = _operator("bernoulli")(like)
        made = x * kept / (1 - p) if grows else x * kept
    return x.copy_(made) if inplace else made


def dropout1d(input: Tensor, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout() of whole channels of [N, C, L] or [C, L]."""
    made = _F.dropout1d(floating("dropout1d", input), _check_probability("dropout1d", p), training)
    return input.copy_(made) if inplace else made


def _of_channels(count: int) -> Callable[..., Tensor]:
    name, formats = f"dropout{count}d", {2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[count]

    def function(
        x: Tensor, p: Any = 0.5, training: bool = True, data_format: str = formats[0]
    ) -> Tensor:
        if x.ndim != count + 2:
            raise ValueError(f"{name}(): expected {count + 2} axes, got {x.ndim}")
        if data_format not in formats:
            raise ValueError(
                f"{name}(): expected data_format {formats[0]!r} or {formats[1]!r}, got {data_format!r}"
            )
        axis = [0, 1] if data_format == formats[0] else [0, count + 1]
        return dropout(x, p, axis, training)

    function.__doc__ = "dropout() of whole channels."
    return function


dropout2d, dropout3d = _of_channels(2), _of_channels(3)


def alpha_dropout(x: Tensor, p: Any = 0.5, training: bool = True) -> Tensor:
    """dropout() that keeps mean and variance of selu()."""
    return _F.alpha_dropout(
        floating("alpha_dropout", x), _check_probability("alpha_dropout", p), training
    )


def feature_alpha_dropout(x: Tensor, p: Any = 0.5, training: bool = True) -> Tensor:
    """alpha_dropout() of whole channels."""
    floating("feature_alpha_dropout", x)
    return _F.feature_alpha_dropout(x, _check_probability("feature_alpha_dropout", p), training)
