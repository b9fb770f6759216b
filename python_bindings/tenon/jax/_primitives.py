# SPDX-License-Identifier: Apache-2.0
"""Primitives of JAX in terms of operators: elementwise ones, shapes, reductions, products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import tenon
from tenon._core import Tensor
from tenon.jit.foreign_calls import Refused

# By one operator: those of one array, and of two.
_PLAIN: Final = (
    "abs acos acosh asin asinh atan atanh cbrt ceil cos cosh digamma erf erfc exp exp2 expm1 floor lgamma log log1p rsqrt sign sin "
    "sinh sqrt square tan tanh real imag conj"
).split()
_RENAMED: Final = {
    "neg": "negative",
    "logistic": "sigmoid",
    "erf_inv": "erfinv",
    "is_finite": "isfinite",
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "add": "add",
    "add_any": "add",
    "sub": "subtract",
    "mul": "multiply",
    "max": "maximum",
    "min": "minimum",
    "pow": "pow",
    "rem": "fmod",
    "atan2": "atan2",
    "nextafter": "nextafter",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "shift_left": "bitwise_left_shift",
    "complex": "complex",
}
_SAME: Final = "copy copy_p stop_gradient name sharding_constraint device_put reduce_precision optimization_barrier pvary".split()

Told = Callable[..., Any]


def _operator(name: str) -> Told:
    def told(walk: Any, equation: Any, *values: Any) -> Any:
        return walk.call(name, *_numbers(walk, equation, values))

    return told


def _numbers(walk: Any, equation: Any, values: Any) -> list[Any]:
    """Literals stay numbers beside a tensor."""
    if any(isinstance(each, Tensor) for each in values):
        return list(values)
    return [
        walk.tensor(each, str(v.aval.dtype))
        for each, v in zip(values, equation.invars, strict=True)
    ]


def _is_whole(equation: Any) -> bool:
    return str(equation.invars[0].aval.dtype).startswith(("int", "uint"))


def div(walk: Any, equation: Any, x: Any, y: Any) -> Any:
    """Of whole numbers the quotient without its fraction, exactly."""
    x, y = _numbers(walk, equation, (x, y))
    if not _is_whole(equation):
        return walk.call("divide", x, y)
    return walk.call("floor_divide", walk.call("subtract", x, walk.call("fmod", x, y)), y)


def integer_pow(walk: Any, equation: Any, x: Any) -> Any:
    y = equation.params["y"]
    return walk.call("square", x) if y == 2 else walk.call("pow", x, y)


def round(walk: Any, equation: Any, x: Any) -> Any:
    if int(equation.params["rounding_method"]) == 1:
        return walk.call("round", x)
    away = walk.call("floor", walk.call("add", walk.call("abs", x), 0.5))
    return walk.call("copysign", away, x)


def logical(word: str) -> Told:
    def told(walk: Any, equation: Any, *values: Any) -> Any:
        is_bool = str(equation.invars[0].aval.dtype) == "bool"
        name = {"not": "invert"}.get(word, word) if not is_bool else word
        prefix = "logical" if is_bool else "bitwise"
        return walk.call(f"{prefix}_{name}", *_numbers(walk, equation, values))

    return told


def shift_right(is_logical: bool) -> Told:
    def told(walk: Any, equation: Any, x: Any, y: Any) -> Any:
        dtype = str(equation.invars[0].aval.dtype)
        if dtype.startswith("uint") != is_logical:
            raise Refused(f"of {dtype}")
        return walk.call("bitwise_right_shift", *_numbers(walk, equation, (x, y)))

    return told


def select_n(walk: Any, equation: Any, which: Tensor, *cases: Any) -> Any:
    dtype = str(equation.outvars[0].aval.dtype)
    cases = tuple(walk.tensor(each, dtype) for each in cases)
    if which.dtype == tenon.bool:
        return walk.call("where", which, cases[1], cases[0])
    chosen = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        chosen = walk.call("where", walk.call("equal", which, number), cases[number], chosen)
    return chosen


def clamp(walk: Any, equation: Any, low: Any, x: Any, high: Any) -> Any:
    return walk.call("clip", x, low, high)


def convert_element_type(walk: Any, equation: Any, x: Any) -> Any:
    wanted = getattr(tenon, str(equation.params["new_dtype"]))
    return walk.call("cast", *_numbers(walk, equation, (x,)), wanted)


def bitcast_convert_type(walk: Any, equation: Any, x: Any) -> Any:
    return walk.call("bitcast", x, getattr(tenon, str(equation.params["new_dtype"])))


def same(walk: Any, equation: Any, *values: Any) -> Any:
    params = equation.params
    if "exponent_bits" in params:
        bits = params["exponent_bits"], params["mantissa_bits"]
        own = {(8, 23): None, (8, 7): tenon.bfloat16, (5, 10): tenon.float16, (11, 52): None}
        if bits not in own:
            raise Refused(f"to {bits[0]} and {bits[1]} bits")
        small = own[bits]
        if small is not None:
            (x,) = values
            return walk.call("cast", walk.call("cast", x, small), x.dtype)
    return list(values)


# -- shapes -----------------------------------------------------------------------------------------------


def more(equation: Any, extra: list[Any]) -> list[Any]:
    """What the axis with the data of a key adds to a list of numbers of axes."""
    return extra if str(equation.outvars[0].aval.dtype).startswith("key<") else []


def broadcast_in_dim(walk: Any, equation: Any, x: Any, *_: Any) -> Any:
    shape = list(equation.params["shape"]) + more(equation, [2])
    (x,) = _numbers(walk, equation, (x,)) if not isinstance(x, Tensor) else (x,)
    axes = list(equation.params["broadcast_dimensions"]) + more(equation, [len(shape) - 1])
    if x.ndim == 0:
        return walk.call("expand", x, shape)
    inner = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        inner[axis] = size
    if inner != list(x.shape):
        x = walk.call("reshape", x, inner)
    return x if inner == shape else walk.call("expand", x, shape)


def reshape(walk: Any, equation: Any, x: Tensor, *_: Any) -> Any:
    return walk.call("reshape", x, list(equation.params["new_sizes"]) + more(equation, [2]))


def transpose(walk: Any, equation: Any, x: Tensor) -> Any:
    axes = list(equation.params["permutation"])
    return walk.call("permute", x, axes + more(equation, [len(axes)]))


def squeeze(walk: Any, equation: Any, x: Tensor) -> Any:
    axes = list(equation.params["dimensions"])
    return walk.call("squeeze", x, axes) if axes else x


def concatenate(walk: Any, equation: Any, *values: Any) -> Any:
    return walk.call("concat", list(values), equation.params["dimension"])


def stack(walk: Any, equation: Any, *values: Any) -> Any:
    return walk.call("stack", list(values), equation.params["axis"])


def tile(walk: Any, equation: Any, x: Tensor) -> Any:
    return walk.call("tile", x, list(equation.params["reps"]))


def slice_(walk: Any, equation: Any, x: Tensor) -> Any:
    params = equation.params
    axes = list(range(len(params["start_indices"])))
    steps = list(params["strides"] or [1] * len(axes))
    return walk.call(
        "slice", x, axes, list(params["start_indices"]), list(params["limit_indices"]), steps
    )


def split(walk: Any, equation: Any, x: Tensor) -> Any:
    pieces, start = [], 0
    for size in equation.params["sizes"]:
        pieces.append(walk.call("narrow", x, equation.params["axis"], start, size))
        start += size
    return pieces


def rev(walk: Any, equation: Any, x: Tensor) -> Any:
    return walk.call("flip", x, list(equation.params["dimensions"]))


def iota(walk: Any, equation: Any, *_: Any) -> Any:
    params = equation.params
    shape, axis = list(params["shape"]), params["dimension"]
    dtype = getattr(tenon, str(params["dtype"]))
    numbers = walk.call("arange", 0, shape[axis], 1, dtype=dtype)
    inner = [shape[axis] if at == axis else 1 for at in range(len(shape))]
    return walk.call("expand", walk.call("reshape", numbers, inner), shape)


def pad(walk: Any, equation: Any, x: Tensor, value: Any) -> Any:
    if isinstance(value, Tensor):
        inside = walk.call("full", list(x.shape), True, dtype=tenon.bool)
        inside = pad(walk, equation, inside, False)
        return walk.call("where", inside, pad(walk, equation, x, 0), value)
    config = equation.params["padding_config"]
    for axis, (_, _, inside) in enumerate(config):
        if inside and x.shape[axis] > 1:
            x = stretched(walk, x, axis, inside + 1, value)
    return padded(walk, x, [number for low, high, _ in config for number in (low, high)], value)


def padded(walk: Any, x: Tensor, margins: list[int], value: Any) -> Tensor:
    """Two numbers for each axis; those below zero cut off."""
    for axis in range(x.ndim):
        before, after = (max(0, -number) for number in margins[2 * axis : 2 * axis + 2])
        if before or after:
            x = walk.call("narrow", x, axis, before, x.shape[axis] - before - after)
    margins = [max(0, number) for number in margins]
    return walk.call("pad", x, margins, "constant", value) if any(margins) else x


def stretched(walk: Any, x: Tensor, axis: int, step: int, value: Any) -> Tensor:
    """Elements `step` apart along an axis, with `value` between them."""
    shape = list(x.shape)
    inner = walk.call("reshape", x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    margins = [0] * (2 * (x.ndim + 1))
    margins[2 * (axis + 1) + 1] = step - 1
    inner = padded(walk, inner, margins, value)
    long = walk.call("reshape", inner, [*shape[:axis], shape[axis] * step, *shape[axis + 1 :]])
    return walk.call("narrow", long, axis, 0, (shape[axis] - 1) * step + 1)


# -- reductions, scans, sorting ---------------------------------------------------------------------------


def reduction(name: str) -> Told:
    def told(walk: Any, equation: Any, x: Tensor) -> Any:
        axes = list(equation.params["axes"])
        return walk.call(name, x, axes, False) if axes else x

    return told


def arg(name: str) -> Told:
    def told(walk: Any, equation: Any, x: Tensor) -> Any:
        (axis,) = equation.params["axes"]
        return walk.call(name, x, axis, False)

    return told


def cumulative(name: str) -> Told:
    def told(walk: Any, equation: Any, x: Tensor) -> Any:
        axis = equation.params["axis"]
        is_reverse = equation.params["reverse"]
        x = walk.call("flip", x, [axis]) if is_reverse else x
        found = walk.call(name, x, axis)
        found = found[0] if isinstance(found, list) else found
        return walk.call("flip", found, [axis]) if is_reverse else found

    return told


def sort(walk: Any, equation: Any, *values: Tensor) -> Any:
    """By the last key first: sorting keeps the order of what is equal."""
    axis, count = equation.params["dimension"], equation.params["num_keys"]
    first, order = walk.call("sort_with_indices", values[count - 1], axis, False)
    for key in reversed(values[: count - 1]):
        arranged = walk.call("take_along_axis", key, order, axis)
        first, step = walk.call("sort_with_indices", arranged, axis, False)
        order = walk.call("take_along_axis", order, step, axis)
    return [first, *(walk.call("take_along_axis", each, order, axis) for each in values[1:])]


def top_k(walk: Any, equation: Any, x: Tensor) -> Any:
    axis = equation.params.get("axis", -1)
    return list(walk.call("topk", x, equation.params["k"], axis, True))


# -- products ---------------------------------------------------------------------------------------------


def dot_general(walk: Any, equation: Any, x: Tensor, y: Tensor, *_: Any) -> Any:
    (xc, yc), (xb, yb) = equation.params["dimension_numbers"]
    xf = [axis for axis in range(x.ndim) if axis not in (*xc, *xb)]
    yf = [axis for axis in range(y.ndim) if axis not in (*yc, *yb)]
    wanted = getattr(tenon, str(equation.outvars[0].aval.dtype))
    x, y = (each if each.dtype == wanted else walk.call("cast", each, wanted) for each in (x, y))
    batch = [x.shape[axis] for axis in xb]
    rows, columns = [x.shape[axis] for axis in xf], [y.shape[axis] for axis in yf]
    count = math.prod(x.shape[axis] for axis in xc)
    left = _arranged(walk, x, [*xb, *xf, *xc], [*batch, math.prod(rows), count])
    right = _arranged(walk, y, [*yb, *yc, *yf], [*batch, count, math.prod(columns)])
    out = walk.call("matmul", left, right)
    shape = [*batch, *rows, *columns]
    return out if list(out.shape) == shape else walk.call("reshape", out, shape)


def _arranged(walk: Any, x: Tensor, axes: list[int], shape: list[int]) -> Tensor:
    if axes != list(range(x.ndim)):
        x = walk.call("permute", x, axes)
    return x if list(x.shape) == shape else walk.call("reshape", x, shape)


def conv_general_dilated(walk: Any, equation: Any, x: Tensor, weight: Tensor) -> Any:
    params = equation.params
    if params["batch_group_count"] != 1:
        raise Refused("with batch_group_count")
    numbers = params["dimension_numbers"]
    x, weight = (
        walk.call("permute", x, list(numbers.lhs_spec)),
        walk.call("permute", weight, list(numbers.rhs_spec)),
    )
    spatial = x.ndim - 2
    if spatial not in (1, 2, 3):
        raise Refused(f"with {spatial} spatial axes")
    for axis, apart in enumerate(params["lhs_dilation"], 2):
        if apart > 1 and x.shape[axis] > 1:
            x = stretched(walk, x, axis, apart, 0)
    margins = [0, 0, 0, 0] + [number for pair in params["padding"] for number in pair]
    if any(margins):
        x = padded(walk, x, margins, 0)
    step, apart = list(params["window_strides"]), list(params["rhs_dilation"])
    if spatial == 1:
        x, weight = walk.call("unsqueeze", x, [2]), walk.call("unsqueeze", weight, [2])
        step, apart = [1, *step], [1, *apart]
    groups = params["feature_group_count"]
    name, none = ("conv3d", [0] * 3) if spatial == 3 else ("conv2d", [0] * 2)
    out = walk.call(name, x, weight, None, step, none, apart, groups)
    out = walk.call("squeeze", out, [2]) if spatial == 1 else out
    order = list(numbers.out_spec)
    return walk.call("permute", out, [order.index(axis) for axis in range(len(order))])


TABLE: Final[dict[str, Told]] = {
    **{name: _operator(name) for name in _PLAIN},
    **{name: _operator(ours) for name, ours in _RENAMED.items()},
    **dict.fromkeys(_SAME, same),
    **{f"reduce_{name}": reduction(name) for name in ("sum", "max", "min", "prod")},
    **{name: cumulative(name) for name in ("cumsum", "cumprod", "cummax", "cummin")},
    **{name: logical(name) for name in ("and", "or", "xor", "not")},
    "cumlogsumexp": cumulative("logcumsumexp"),
    "reduce_and": reduction("all"),
    "reduce_or": reduction("any"),
    "argmax": arg("argmax"),
    "argmin": arg("argmin"),
    "shift_right_logical": shift_right(True),
    "shift_right_arithmetic": shift_right(False),
    "div": div,
    "integer_pow": integer_pow,
    "round": round,
    "select_n": select_n,
    "clamp": clamp,
    "convert_element_type": convert_element_type,
    "bitcast_convert_type": bitcast_convert_type,
    "broadcast_in_dim": broadcast_in_dim,
    "reshape": reshape,
    "transpose": transpose,
    "squeeze": squeeze,
    "concatenate": concatenate,
    "stack": stack,
    "tile": tile,
    "slice": slice_,
    "split": split,
    "rev": rev,
    "iota": iota,
    "pad": pad,
    "sort": sort,
    "top_k": top_k,
    "dot_general": dot_general,
    "conv_general_dilated": conv_general_dilated,
}
