# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: linear maps, convolutions and what lies beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.paddle.nn.functional._layout import (
    by_format,
    margins,
    numbers,
    padded,
    split,
    spread,
)

__all__ = """bilinear conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose fold linear unfold
""".split()

_F = tenon.nn.functional
_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight + bias, with a weight [in, out]."""
    if weight.ndim != 2:
        raise ValueError(f"linear(): expected a weight [in, out], got shape {tuple(weight.shape)}")
    made = tenon.matmul(x, weight)
    return made if bias is None else made + bias


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1 @ weight[i] @ x2 for each row [n, in1] and [n, in2], plus a bias [1, out]."""
    return _F.bilinear(x1, x2, weight, None if bias is None else bias.reshape(-1))


def _conv(count: int) -> Callable[..., Tensor]:
    name = f"conv{count}d"

    def function(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        data_format: str = _FORMATS[count],
    ) -> Tensor:
        step = spread(name, "stride", stride, count)
        wide = spread(name, "dilation", dilation, count)

        def convolve(y: Tensor) -> Tensor:
            if y.ndim != count + 2 or weight.ndim != count + 2:
                raise ValueError(
                    f"{name}(): expected x and weight of {count + 2} axes, got shapes "
                    f"{tuple(y.shape)} and {tuple(weight.shape)}"
                )
            kernel = list(weight.shape[2:])
            last = data_format.endswith("C")
            y, pads = split(y, margins(name, padding, y, kernel, step, wide, last))
            return getattr(_F, name)(y, weight, bias, step, pads, wide, groups)

        return by_format(name, x, data_format, count, convolve)

    function.__doc__ = "The correlation with a weight [out, in / groups, ...]."
    return function


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def _transposed(count: int) -> Callable[..., Tensor]:
    name = f"conv{count}d_transpose"

    def function(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
        output_size: Any = None,
        data_format: str = _FORMATS[count],
    ) -> Tensor:
        step = spread(name, "stride", stride, count)
        wide = spread(name, "dilation", dilation, count)
        kernel = list(weight.shape[2:])

        def convolve(y: Tensor) -> Tensor:
            if y.ndim != count + 2:
                raise ValueError(
                    f"{name}(): expected x of {count + 2} axes, got shape {tuple(y.shape)}"
                )
            if isinstance(padding, str) and padding.upper() == "SAME":
                raise NotImplementedError(
                    f"{name}(): expected padding of numbers or 'VALID', got 'SAME'"
                )
            pairs = margins(name, padding, y, kernel, step, wide, data_format.endswith("C"))
            extra = spread(name, "output_padding", output_padding, count)
            if output_size is not None:
                if any(extra):
                    raise ValueError(
                        f"{name}(): expected one of `output_padding` and `output_size`, got both"
                    )
                wanted = spread(name, "output_size", output_size, count)
                least = [
                    (n - 1) * s - sum(p) + d * (k - 1) + 1
                    for n, s, p, d, k in zip(y.shape[2:], step, pairs, wide, kernel, strict=True)
                ]
                extra = [a - b for a, b in zip(wanted, least, strict=True)]
                if any(not 0 <= e < s for e, s in zip(extra, step, strict=True)):
                    raise ValueError(
                        f"{name}(): expected output_size from {least} to below that plus the stride, "
                        f"got {wanted}"
                    )
            made = getattr(_F, f"conv_transpose{count}d")
            if all(a == b for a, b in pairs):
                pads = [a for a, _ in pairs]
                if count == 2:
                    return made(y, weight, bias, step, pads, extra, wide, groups)
                return made(y, weight, bias, step, pads, extra, groups, wide)
            none = [0] * count
            whole = (
                made(y, weight, bias, step, none, extra, wide, groups)
                if count == 2
                else made(y, weight, bias, step, none, extra, groups, wide)
            )
            return padded(whole, [(-a, -b) for a, b in pairs])

        return by_format(name, x, data_format, count, convolve)

    function.__doc__ = "The adjoint of the convolution with a weight [in, out / groups, ...]."
    return function


conv1d_transpose, _conv2d_transpose = _transposed(1), _transposed(2)
conv3d_transpose = _transposed(3)


def conv2d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_size: Any = None,
    data_format: str = "NCHW",
) -> Tensor:
    """The adjoint of the convolution with a weight [in, out / groups, kh, kw]."""
    return _conv2d_transpose(
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        output_size,
        data_format,
    )


def _sides(name: str, paddings: Any) -> list[tuple[int, int]]:
    values = [paddings] * 2 if isinstance(paddings, int) else list(numbers(paddings))
    if len(values) == 2:
        return [(values[0],) * 2, (values[1],) * 2]
    if len(values) == 4:  # top, left, bottom, right
        return [(values[0], values[2]), (values[1], values[3])]
    raise ValueError(f"{name}(): expected paddings of one number, two or four, got {paddings!r}")


def unfold(
    x: Tensor, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1
) -> Tensor:
    """Windows of [N, C, H, W] as columns [N, C kh kw, L]."""
    kernel = spread("unfold", "kernel_sizes", kernel_sizes, 2)
    step = spread("unfold", "strides", strides, 2)
    wide = spread("unfold", "dilations", dilations, 2)
    y, pads = split(x, _sides("unfold", paddings))
    return _F.unfold(y, kernel, wide, pads, step)


def fold(
    x: Tensor,
    output_sizes: Any,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
) -> Tensor:
    """Sums of the columns [N, C kh kw, L] where unfold() took them from: [N, C, H, W]."""
    size = spread("fold", "output_sizes", output_sizes, 2)
    kernel = spread("fold", "kernel_sizes", kernel_sizes, 2)
    step = spread("fold", "strides", strides, 2)
    wide = spread("fold", "dilations", dilations, 2)
    pairs = _sides("fold", paddings)
    if any(a != b for a, b in pairs):
        raise NotImplementedError(
            f"fold(): expected equal paddings on both sides, got {paddings!r}"
        )
    return _F.fold(x, size, kernel, wide, [a for a, _ in pairs], step)
