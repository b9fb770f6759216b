# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools, normalisation and resizing: operators of Paddle that a line leaves to a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenon._core import Tensor
from tenon.jit.foreign_calls import Refused

Value = Any
Add = Callable[..., Any]


def _channels_first(call: Add, x: Value, data_format: str) -> Value:
    if data_format.endswith("C") and x.ndim > 2:
        return call("permute", x, [0, x.ndim - 1, *range(1, x.ndim - 1)])
    return x


def _as_given(call: Add, x: Value, data_format: str) -> Value:
    if data_format.endswith("C") and x.ndim > 2:
        return call("permute", x, [0, *range(2, x.ndim), 1])
    return x


def _numbers(values: Any, count: int) -> list[int]:
    listed = [int(each) for each in values]
    return listed * count if len(listed) == 1 else listed


def _margins(
    paddings: Any, algorithm: str, sizes: Any, kernel: Any, strides: Any, dilations: Any
) -> list[tuple[int, int]]:
    """Before and after each spatial axis."""
    if algorithm == "VALID":
        return [(0, 0)] * len(kernel)
    if algorithm == "SAME":
        margins = []
        for size, taps, step, apart in zip(sizes, kernel, strides, dilations, strict=True):
            covered = (math.ceil(size / step) - 1) * step + apart * (taps - 1) + 1
            total = max(covered - size, 0)
            margins.append((total // 2, total - total // 2))
        return margins
    listed = _numbers(paddings, len(kernel))
    if len(listed) == 2 * len(kernel):
        return list(zip(listed[::2], listed[1::2], strict=True))
    if len(listed) != len(kernel):
        raise Refused(f"with paddings {listed} for {len(kernel)} axes")
    return [(each, each) for each in listed]


def _padded(call: Add, x: Value, margins: Any, value: float) -> tuple[Value, list[int]]:
    """The input, and what is left to the operator, which takes one number for an axis."""
    if all(before == after for before, after in margins):
        return x, [before for before, _ in margins]
    flat = [0, 0, 0, 0] + [each for pair in margins for each in pair]
    return call("pad", x, flat, "constant", value), [0] * len(margins)


def conv2d(
    call: Add,
    input: Value,
    filter: Value,
    strides: Any,
    paddings: Any,
    padding_algorithm: str,
    dilations: Any,
    groups: int,
    data_format: str,
) -> Value:
    x = _channels_first(call, input, data_format)
    step, apart = _numbers(strides, 2), _numbers(dilations, 2)
    if padding_algorithm == "SAME":
        apart = [1, 1]
    kernel, sizes = list(filter.shape)[2:], list(x.shape)[2:]
    margins = _margins(paddings, padding_algorithm, sizes, kernel, step, apart)
    x, padding = _padded(call, x, margins, 0.0)
    out = call("conv2d", x, filter, None, step, padding, apart, groups)
    return _as_given(call, out, data_format)


def conv2d_transpose(
    call: Add,
    x: Value,
    filter: Value,
    strides: Any,
    paddings: Any,
    output_padding: Any,
    output_size: Any,
    padding_algorithm: str,
    groups: int,
    dilations: Any,
    data_format: str,
) -> Value:
    x = _channels_first(call, x, data_format)
    step, apart = _numbers(strides, 2), _numbers(dilations, 2)
    kernel, sizes = list(filter.shape)[2:], list(x.shape)[2:]
    if padding_algorithm == "SAME":
        raise Refused("with padding_algorithm='SAME'")
    margins = _margins(paddings, padding_algorithm, sizes, kernel, step, apart)
    more = _numbers(output_padding, 2) if output_padding else [0, 0]
    if output_size:
        more = [
            wanted - ((size - 1) * s - before - after + d * (taps - 1) + 1)
            for wanted, size, s, (before, after), d, taps in zip(
                output_size, sizes, step, margins, apart, kernel, strict=True
            )
        ]
    # What one side has more than the other is cut off the result.
    least = [min(pair) for pair in margins]
    out = call("conv_transpose2d", x, filter, None, step, least, more, apart, groups)
    for axis, (before, after) in enumerate(margins, 2):
        cut = before - least[axis - 2], after - least[axis - 2]
        if any(cut):
            out = call("narrow", out, axis, cut[0], out.shape[axis] - sum(cut))
    return _as_given(call, out, data_format)


def deformable_conv(
    call: Add,
    x: Value,
    offset: Value,
    filter: Value,
    mask: Any,
    strides: Any,
    paddings: Any,
    dilations: Any,
    deformable_groups: int,
    groups: int,
    im2col_step: int,
) -> Value:
    """How many images are done at a time changes nothing; both groups follow from shapes."""
    step, padding, apart = (_numbers(each, 2) for each in (strides, paddings, dilations))
    return call("deform_conv2d", x, offset, filter, None, mask, step, padding, apart)


def pool2d(
    call: Add,
    x: Value,
    kernel_size: Any,
    strides: Any,
    paddings: Any,
    ceil_mode: bool,
    exclusive: bool,
    data_format: str,
    pooling_type: str,
    global_pooling: bool,
    adaptive: bool,
    padding_algorithm: str,
) -> Value:
    if pooling_type not in ("avg", "max"):
        raise Refused(f"with pooling_type={pooling_type!r}")
    x = _channels_first(call, x, data_format)
    kernel, step = _numbers(kernel_size, 2), _numbers(strides, 2)
    if global_pooling or (adaptive and kernel == [1, 1]):
        name = "mean" if pooling_type == "avg" else "max"
        out = call(name, x, [2, 3], True)
    elif adaptive:
        out = call(f"adaptive_{pooling_type}_pool2d", x, kernel)
    else:
        margins = _margins(paddings, padding_algorithm, list(x.shape)[2:], kernel, step, [1, 1])
        is_even = all(before == after for before, after in margins)
        if pooling_type == "max":
            x, padding = _padded(call, x, margins, -math.inf)
            out = call("max_pool2d", x, kernel, step, padding, [1, 1], ceil_mode)
        elif is_even or not exclusive:
            if not is_even and ceil_mode:
                raise Refused("with ceil_mode=True and other paddings before than after an axis")
            x, padding = _padded(call, x, margins, 0.0)
            out = call("avg_pool2d", x, kernel, step, padding, ceil_mode, not exclusive)
        else:
            out = _means_of_inside(call, x, kernel, step, margins, ceil_mode)
    return _as_given(call, out, data_format)


def _means_of_inside(
    call: Add, x: Value, kernel: Any, step: Any, margins: Any, ceil_mode: bool
) -> Value:
    """Sums by the number of elements that are no margin, where margins before and after an axis differ."""
    if ceil_mode:
        raise Refused("with ceil_mode=True and other paddings before than after an axis")
    ones = call("full", [1, 1, *list(x.shape)[2:]], 1.0, dtype=x.dtype)
    summed, counted = (
        call("avg_pool2d", _padded(call, each, margins, 0.0)[0], kernel, step, [0, 0], False, True)
        for each in (x, ones)
    )
    return call("divide", summed, counted)


def conv3d(
    call: Add,
    input: Value,
    filter: Value,
    strides: Any,
    paddings: Any,
    padding_algorithm: str,
    groups: int,
    dilations: Any,
    data_format: str,
) -> Value:
    x = _channels_first(call, input, data_format)
    step, apart = _numbers(strides, 3), _numbers(dilations, 3)
    if padding_algorithm == "SAME":
        apart = [1, 1, 1]
    kernel, sizes = list(filter.shape)[2:], list(x.shape)[2:]
    margins = _margins(paddings, padding_algorithm, sizes, kernel, step, apart)
    x, padding = _padded(call, x, margins, 0.0)
    out = call("conv3d", x, filter, None, step, padding, apart, groups)
    return _as_given(call, out, data_format)


def pool3d(
    call: Add,
    x: Value,
    kernel_size: Any,
    strides: Any,
    paddings: Any,
    ceil_mode: bool,
    exclusive: bool,
    data_format: str,
    pooling_type: str,
    global_pooling: bool,
    adaptive: bool,
    padding_algorithm: str,
) -> Value:
    if pooling_type not in ("avg", "max"):
        raise Refused(f"with pooling_type={pooling_type!r}")
    x = _channels_first(call, x, data_format)
    kernel, step, sizes = _numbers(kernel_size, 3), _numbers(strides, 3), list(x.shape)[2:]
    if global_pooling or (adaptive and kernel == [1, 1, 1]):
        out = call("mean" if pooling_type == "avg" else "max", x, [2, 3, 4], True)
        return _as_given(call, out, data_format)
    margins = _margins(paddings, padding_algorithm, sizes, kernel, step, [1] * 3)
    if adaptive:
        if any(size % part for size, part in zip(sizes, kernel, strict=True)):
            raise Refused("its windows are not all of one size")
        kernel = step = [size // part for size, part in zip(sizes, kernel, strict=True)]
        margins = [(0, 0)] * 3
    if pooling_type == "max":
        x, padding = _padded(call, x, margins, -math.inf)
        out = call("max_pool3d", x, kernel, step, padding, [1, 1, 1], ceil_mode)
    elif all(before == after for before, after in margins):
        padding = [before for before, _ in margins]
        out = call("avg_pool3d", x, kernel, step, padding, ceil_mode, not exclusive)
    elif ceil_mode:
        raise Refused("with ceil_mode=True and other paddings before than after an axis")
    else:  # sums by the number of elements that count
        counted = call("full", [1, 1, *sizes], 1.0, dtype=x.dtype)
        out, count = (
            call("avg_pool3d", _padded(call, each, margins, 0.0)[0], kernel, step)
            for each in (x, counted)
        )
        out = call("divide", out, count) if exclusive else out
    return _as_given(call, out, data_format)


def max_pool2d_with_index(
    call: Add,
    x: Value,
    kernel_size: Any,
    strides: Any,
    paddings: Any,
    global_pooling: bool,
    adaptive: bool,
    ceil_mode: bool,
) -> list[Value]:
    kernel, step = _numbers(kernel_size, 2), _numbers(strides, 2)
    if global_pooling:
        return [call("max", x, [2, 3], True)]
    if adaptive:
        return [call("adaptive_max_pool2d", x, kernel)]
    padding = _numbers(paddings, 2)
    found = call("max_pool2d_with_indices", x, kernel, step, padding, [1, 1], ceil_mode)
    return [found[0], call("cast", found[1], "int32")]


def unfold(
    call: Add, x: Value, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any
) -> Value:
    """Paddings are of top, left, bottom and right."""
    margins = _numbers(paddings, 4)
    if len(margins) == 2:
        margins = margins * 2
    top, left, bottom, right = margins
    kernel, step, apart = (_numbers(each, 2) for each in (kernel_sizes, strides, dilations))
    padding = [top, left]
    if (top, left) != (bottom, right):
        x = call("pad", x, [0, 0, 0, 0, top, bottom, left, right], "constant", 0.0)
        padding = [0, 0]
    columns = call("im2col", x, kernel, stride=step, padding=padding, dilation=apart)
    return call("reshape", columns, [x.shape[0], columns.shape[1], -1])


def batch_norm(
    call: Add,
    x: Value,
    mean: Value,
    variance: Value,
    scale: Any,
    bias: Any,
    is_test: bool,
    momentum: float,
    epsilon: float,
    data_format: str,
    use_global_stats: bool,
    trainable_statistics: bool,
) -> list[Value]:
    if not is_test and not use_global_stats:
        raise Refused("it takes statistics of the batch; save the model after model.eval()")
    x = _channels_first(call, x, data_format)
    out = call("batch_norm_inference", x, mean, variance, scale, bias, epsilon)
    return [_as_given(call, out, data_format)]


def layer_norm(
    call: Add, x: Value, scale: Any, bias: Any, epsilon: float, begin_norm_axis: int
) -> list[Value]:
    """The weights of several axes are one list."""
    count = x.ndim - begin_norm_axis % x.ndim
    inner = list(x.shape)[x.ndim - count :]
    if count > 1:
        scale, bias = (
            None if each is None else call("reshape", each, inner) for each in (scale, bias)
        )
    return [call("layer_norm", x, scale, bias, count, epsilon)]


def dropout(
    call: Add,
    x: Value,
    seed_tensor: Any,
    p: Any,
    is_test: bool,
    mode: str,
    seed: int,
    fix_seed: bool,
) -> list[Value]:
    if not is_test:
        raise Refused("it draws random numbers; save the model after model.eval()")
    return [x if mode == "upscale_in_train" else call("multiply", x, 1.0 - float(p))]


# -- images -----------------------------------------------------------------------------------------------


def interpolate(
    call: Add,
    x: Value,
    out_size: Any,
    size_tensor: Any,
    scale_tensor: Any,
    data_format: str,
    out_d: int,
    out_h: int,
    out_w: int,
    scale: Any,
    interp_method: str,
    align_corners: bool,
    align_mode: int,
) -> Value:
    x = _channels_first(call, x, data_format)
    count = x.ndim - 2
    sizes = list(x.shape)[2:]
    factors: list[float] = [float(each) for each in scale or ()]
    given = [out_d, out_h, out_w][3 - count :] if count > 1 else [out_w]
    wanted: list[int] | None = [int(each) for each in given] if all(e > 0 for e in given) else None
    if scale_tensor is not None:
        factors = _known_floats(scale_tensor)
    for tensors in (out_size, size_tensor):
        if tensors is not None:
            wanted, factors = _known(tensors), []
    if factors:
        factors = factors * count if len(factors) == 1 else factors
        wanted = [int(size * factor) for size, factor in zip(sizes, factors, strict=True)]
    if wanted is None:
        raise Refused("it has neither sizes nor factors")
    mode = interp_method
    if mode in ("linear", "bilinear") and not align_corners and align_mode == 1:
        return _as_given(call, _from_the_corner(call, x, wanted, factors), data_format)
    if mode == "nearest" and align_corners:
        raise Refused("mode 'nearest' with align_corners=True")
    is_exact = not factors or all(
        size * factor == to for size, factor, to in zip(sizes, factors, wanted, strict=True)
    )
    if is_exact or align_corners:
        out = call("interpolate", x, wanted, None, mode, align_corners)
    else:
        out = call("interpolate", x, None, factors, mode, align_corners)
    return _as_given(call, out, data_format)


def _from_the_corner(call: Add, x: Value, wanted: Any, factors: Any) -> Value:
    """Element i of the result is at i times the ratio, in pixels from the first one (align_mode 1)."""
    for axis, length in enumerate(wanted, 2):
        size = x.shape[axis]
        ratio = 1.0 / factors[axis - 2] if factors else size / length
        low = [min(int(i * ratio), size - 1) for i in range(length)]
        part = [i * ratio - at for i, at in enumerate(low)]
        high = [min(at + 1, size - 1) for at in low]
        shape = [length if each == axis else 1 for each in range(x.ndim)]
        weight = call("reshape", call("cast", _constant(part, "float64"), x.dtype), shape)
        first, second = (
            call("index_select", x, _constant(rows, "int64"), axis) for rows in (low, high)
        )
        x = call("add", first, call("multiply", call("subtract", second, first), weight))
    return x


def _constant(values: Any, dtype: str) -> Tensor:
    import tenon  # named here alone, to keep the functions above free of data

    return tenon.tensor(values, dtype=dtype)


def _known(tensors: Any) -> list[int]:
    return [int(each) for each in _known_floats(tensors)]


def _known_floats(tensors: Any) -> list[float]:
    found: list[float] = []
    for each in tensors if isinstance(tensors, list) else [tensors]:
        if each.device.type == "meta":
            raise Refused("its size depends on data")
        found += [float(n) for n in each.reshape((-1,)).tolist()]
    return found


def grid_sample(
    call: Add, x: Value, grid: Value, mode: str, padding_mode: str, align_corners: bool
) -> Value:
    return call("grid_sample", x, grid, mode, padding_mode, align_corners)


def affine_grid(call: Add, input: Value, output_shape: Any, align_corners: bool) -> Value:
    return call("affine_grid", input, [int(each) for each in output_shape], align_corners)
