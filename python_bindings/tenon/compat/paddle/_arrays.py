# SPDX-License-Identifier: Apache-2.0
"""Paddle's functions on shapes, selection, counting and random numbers that others rarely share."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.arguments import one_sequence as _one_sequence
from tenon.compat.paddle._functions import floating

Axes = builtins.int | Sequence[builtins.int] | None

__all__ = """add_n allclose amax amin assign atleast_1d atleast_2d atleast_3d bincount binomial
bitwise_left_shift bitwise_right_shift block_diag broadcast_shape broadcast_tensors cartesian_prod
cat column_stack combinations copysign create_parameter cumprod dsplit dstack flip floor_mod gammaln
histogram histogram_bin_edges histogramdd hsplit hstack increment index_put index_sample is_empty
isin log_normal masked_scatter mv negative pdist permute polygamma positive randint_like reverse
row_stack searchsorted signbit slice standard_gamma strided_slice take tensor_split
tensordot tolist unfold unique_consecutive vecdot view_as vsplit vstack""".split()


def broadcast_shape(x_shape: Any, y_shape: Any) -> list[builtins.int]:
    """The shape that two have together."""
    return list(tenon.broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def _of_one(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor) -> Tensor:
        return _operator(name)(x)

    function.__doc__ = f"tenon.{name}."
    return function


negative, positive, signbit, gammaln = map(_of_one, ("negative", "positive", "signbit", "lgamma"))


def copysign(x: Tensor, y: Any) -> Tensor:
    """The size of x with the sign of y; of whole numbers in their dtype."""
    made = _operator("copysign")(x, y)
    return made.to(dtype=x.dtype) if x.dtype.is_integer else made


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """A copy with the elements of `value`, one after another, where the mask holds."""
    return _operator("masked_scatter")(x, mask, value)


def floor_mod(x: Tensor, y: Any) -> Tensor:
    """The remainder, of the sign of y."""
    return _operator("remainder")(x, y)


def mv(x: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    return _operator("matmul")(x, vec)


def _at_least(name: str) -> Callable[..., Any]:
    def function(*inputs: Any) -> Any:
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            return [getattr(tenon, name)(each) for each in inputs[0]]
        results = [getattr(tenon, name)(each) for each in inputs]
        return results[0] if len(results) == 1 else results

    function.__doc__ = f"tenon.{name}, of one tensor or of each."
    return function


atleast_1d, atleast_2d, atleast_3d = map(_at_least, ("atleast_1d", "atleast_2d", "atleast_3d"))


def _of_list(name: str) -> Callable[..., Tensor]:
    def function(x: Sequence[Tensor]) -> Tensor:
        return getattr(tenon, name)(list(x))

    function.__doc__ = f"tenon.{name}."
    return function


column_stack, dstack, hstack, vstack = map(_of_list, ("column_stack", "dstack", "hstack", "vstack"))
row_stack = vstack


def block_diag(inputs: Sequence[Tensor]) -> Tensor:
    """Matrices along a diagonal."""
    return tenon.block_diag(*inputs)


def cartesian_prod(x: Sequence[Tensor]) -> Tensor:
    """All tuples of elements of the vectors."""
    return tenon.cartesian_prod(*x)


def broadcast_tensors(input: Sequence[Tensor]) -> list[Tensor]:
    """The tensors seen with the shape that they have together."""
    return list(tenon.broadcast_tensors(list(input)))


def cat(x: Sequence[Tensor], axis: builtins.int = 0) -> Tensor:
    """Joined along an axis."""
    return _operator("concat")(list(x), axis)


def add_n(inputs: Any) -> Tensor:
    """The sum of tensors of one shape."""
    if isinstance(inputs, Tensor):
        return inputs.clone()
    total = inputs[0].clone()
    for each in inputs[1:]:
        total = total + each
    return total


def assign(x: Any, output: Tensor | None = None) -> Tensor:
    """A copy, in `output` if that is given."""
    value = x
    if not isinstance(x, Tensor):  # Python's floats are of double precision here
        value = _core.tensor(x)
        if value.dtype == _core.get_default_dtype():
            value = _core.tensor(x, dtype=_core.float64)
    if output is None:
        return value.clone()
    _operator("clone")(value.to(dtype=output.dtype), out=output)
    return output


def increment(x: Tensor, value: float = 1.0) -> Tensor:
    """Adds to the one element of `x`, in place."""
    if x.numel() != 1:
        raise ValueError(
            f"increment(): expected a tensor of one element, got shape {tuple(x.shape)}"
        )
    _operator("clone")((x + value).to(dtype=x.dtype), out=x)
    return x


def allclose(
    x: Tensor, y: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether all elements are close, as a tensor."""
    return _operator("isclose")(x, y, rtol, atol, equal_nan).all()


def amax(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The largest elements; equal ones share the gradient."""
    return _operator("max")(x, axis, keepdim)


def amin(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The smallest elements; equal ones share the gradient."""
    return _operator("min")(x, axis, keepdim)


def bitwise_left_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True) -> Tensor:
    """Bits moved to the left."""
    return _operator("bitwise_left_shift")(x, y)


def bitwise_right_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True) -> Tensor:
    """Bits moved to the right; zeros follow where the shift is not arithmetic."""
    moved = _operator("bitwise_right_shift")(x, y)
    if is_arithmetic or not x.dtype.name.startswith("int"):
        return moved
    kept = (_operator("ones_like")(moved) << (8 * x.dtype.itemsize - y)) - 1
    return _operator("where")(y == 0, moved, moved & kept)


def combinations(x: Tensor, r: builtins.int = 2, with_replacement: bool = False) -> Tensor:
    """Combinations of the elements of a vector."""
    return tenon.combinations(x, r, with_replacement)


def cumprod(x: Tensor, dim: builtins.int | None = None, dtype: Any = None) -> Tensor:
    """Running products; of the flat tensor without an axis."""
    value = x if dtype is None else x.to(dtype=dtype)
    made = _operator("cumprod")(
        value.reshape(-1) if dim is None else value, 0 if dim is None else dim
    )
    return made.to(dtype=value.dtype) if dtype is not None or x.dtype.is_integer else made


def polygamma(x: Tensor, n: builtins.int) -> Tensor:
    """The derivative of order n of digamma."""
    return _operator("polygamma")(n, x)


def vecdot(x: Tensor, y: Tensor, axis: Any = -1) -> Tensor:
    """Products summed over an axis, or without one over all, the first factor conjugated."""
    return (_operator("conj")(x) * y).sum(axis)


def tensordot(x: Tensor, y: Tensor, axes: Any = 2) -> Tensor:
    """Products summed over axes."""
    return tenon.linalg.tensordot(x, y, axes=axes)


def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """Distances of every two rows."""
    return tenon.nn.functional.pdist(x, p)


# -- counting ---------------------------------------------------------------------------------------


def _limits(x: Tensor, low: float, high: float) -> tuple[float, float]:
    if low == high == 0:
        low, high = (float(x.min()), float(x.max())) if x.numel() else (0.0, 1.0)
    return (low - 0.5, high + 0.5) if low == high else (float(low), float(high))


def histogram(
    input: Tensor,
    bins: builtins.int = 100,
    min: float = 0,
    max: float = 0,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    """The counts in equal bins; of all elements where both limits are 0."""
    limits = _limits(input, min, max)
    counts = tenon.histogram(input, bins, range=limits, weights=weight, density=density)[0]
    return counts.to(dtype=_core.float32) if density else counts


def histogram_bin_edges(
    input: Tensor, bins: builtins.int = 100, min: float = 0, max: float = 0
) -> Tensor:
    """The edges of histogram()."""
    return _operator("linspace")(*_limits(input, min, max), bins + 1)


def histogramdd(
    x: Tensor,
    bins: Any = 10,
    ranges: Any = None,
    density: bool = False,
    weights: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """The histogram of points [n, d]; `ranges` is a flat list of limits."""
    floating("histogramdd", x)
    pairs = None if ranges is None else list(zip(ranges[::2], ranges[1::2], strict=True))
    counts, edges = tenon.histogramdd(x, bins, range=pairs, weights=weights, density=density)
    return counts.to(dtype=x.dtype), [each.to(dtype=x.dtype) for each in edges]


def bincount(x: Tensor, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights."""
    return tenon.bincount(x, weights, minlength)


def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: builtins.int | None = None,
    dtype: Any = "int64",
) -> Any:
    """Without elements that are equal to the one before."""
    wanted = _core.dtype(dtype)
    if wanted not in (_core.int32, _core.int64):
        raise TypeError(f"unique_consecutive(): expected dtype int32 or int64, got {dtype}")
    found = tenon.unique_consecutive(
        x, return_inverse=return_inverse, return_counts=return_counts, axis=axis
    )
    if isinstance(found, Tensor):
        return found
    values, *rest = found
    # The inverse is a vector.
    return (values, *(each.reshape(-1).to(dtype=wanted) for each in rest))


# -- selection --------------------------------------------------------------------------------------


def slice(input: Tensor, axes: Any, starts: Any, ends: Any) -> Tensor:
    """A part along some axes; limits beyond an axis end there."""
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


def strided_slice(x: Tensor, axes: Any, starts: Any, ends: Any, strides: Any) -> Tensor:
    """A part along some axes, in steps, which may go backwards."""
    selected: list[Any] = [builtins.slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, strides, strict=True):
        # Backwards, an end before the first element is none: -1 would be the last element.
        stop = None if step < 0 and end < -x.shape[axis] else end
        selected[axis] = builtins.slice(start, stop, step)
    return x[tuple(selected)]


def take(x: Tensor, index: Tensor, mode: str = "raise") -> Tensor:
    """Elements of the flat tensor; indices beyond it are an error, wrap, or end at its ends."""
    flat, size = x.reshape(-1), x.numel()
    if mode == "wrap":
        index = index % size
    elif mode == "clip":
        index = _operator("clip")(index, 0, size - 1)
    elif mode != "raise":
        raise ValueError(f"take(): expected mode 'raise', 'wrap' or 'clip', got {mode!r}")
    return _operator("index_select")(flat, index.reshape(-1), 0).reshape(tuple(index.shape))


def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """From each row the elements at the indices of that row."""
    return _operator("gather")(x, index.to(dtype=_core.int64), 1)


def index_put(
    x: Tensor, indices: Sequence[Tensor], value: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy with values at indices."""
    return _operator("index_put")(x, list(indices), value, accumulate=accumulate)


def isin(x: Tensor, test_x: Tensor, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Which elements are among others."""
    return tenon.isin(x, test_x, invert=invert)


def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where elements would go in ascending sequences; `side` 'right' is right=True."""
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted(): expected side 'left' or 'right', got {side!r}")
    if side == "left" and right:
        raise ValueError("searchsorted(): expected side 'right' beside right=True, got 'left'")
    right = right or side == "right"
    if sorter is not None:
        sorted_sequence = _operator("gather")(sorted_sequence, sorter, -1)
    found = _operator("searchsorted")(sorted_sequence, values, right)
    return found.to(dtype=_core.int32) if out_int32 else found


def is_empty(x: Tensor) -> Tensor:
    """Whether there is no element, as a tensor."""
    return _core.tensor(x.numel() == 0)


def tolist(x: Tensor) -> Any:
    """The elements as nested lists."""
    return x.tolist()


# -- shapes -----------------------------------------------------------------------------------------


def permute(input: Tensor, *given: Any, dims: Any = None) -> Tensor:
    """The axes in another order, as numbers, or a list of them."""
    if (dims is None) != bool(given):
        raise TypeError(f"permute(): expected an order of the axes, got {given} and dims={dims}")
    order = _one_sequence(given if dims is None else dims)
    return _operator("permute")(input, list(order))


def reverse(x: Tensor, axis: Axes) -> Tensor:
    """Elements in reverse order, as a copy."""
    return _operator("flip")(x, axis).clone()


flip = reverse


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return x.reshape(tuple(other.shape))


def unfold(x: Tensor, axis: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
    """Windows along an axis, as a view with one axis more."""
    axis %= x.ndim
    if not 0 < size <= x.shape[axis] or step < 1:
        raise ValueError(
            f"unfold(): expected a size from 1 to {x.shape[axis]} and a step from 1, got {size} and {step}"
        )
    lengths, strides = list(x.shape), list(x.stride())
    lengths[axis] = (lengths[axis] - size) // step + 1
    return _operator("as_strided")(
        x,
        [*lengths, size],
        [*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis]],
    )


def tensor_split(x: Tensor, num_or_indices: Any, axis: builtins.int = 0) -> list[Tensor]:
    """Parts of about one length, or between indices."""
    return list(tenon.tensor_split(x, num_or_indices, axis=axis))


def hsplit(x: Tensor, num_or_indices: Any) -> list[Tensor]:
    """Parts along the second axis, of vectors along the first."""
    return tensor_split(x, num_or_indices, 1 if x.ndim > 1 else 0)


def vsplit(x: Tensor, num_or_indices: Any) -> list[Tensor]:
    """Parts along the first axis."""
    return tensor_split(x, num_or_indices, 0)


def dsplit(x: Tensor, num_or_indices: Any) -> list[Tensor]:
    """Parts along the third axis."""
    return tensor_split(x, num_or_indices, 2)


# -- random numbers, parameters ---------------------------------------------------------------------


def randint_like(
    x: Tensor, low: builtins.int = 0, high: builtins.int | None = None, dtype: Any = None
) -> Tensor:
    """Whole numbers from `low` (0 if there is one limit) to below `high`, in the shape of `x`."""
    low, high = (0, low) if high is None else (low, high)
    wanted = x.dtype if dtype is None else dtype
    return _operator("randint")(low, high, list(x.shape), dtype=wanted, device=x.device)


def binomial(count: Tensor, prob: Tensor) -> Tensor:
    """Numbers of successes, as int64."""
    return tenon.random.binomial(count, prob).to(dtype=_core.int64)


def standard_gamma(x: Tensor) -> Tensor:
    """Numbers of the gamma distributions of shape `x`."""
    return tenon.random.gamma(x)


def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Any = None) -> Tensor:
    """Exponentials of normal numbers."""
    if shape is None:
        like = mean if isinstance(mean, Tensor) else std
        shape = list(like.shape) if isinstance(like, Tensor) else [1]
    return _operator("exp")(_operator("normal")(list(shape)) * std + mean)


def create_parameter(
    shape: Any,
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Callable[[Tensor], Any] | None = None,
) -> Tensor:
    """A trainable tensor: zeros for a bias, else by Xavier's rule unless an initialiser is given."""
    if attr is not None:
        raise NotImplementedError(
            f"create_parameter(): expected attr=None, got {attr!r}; pass default_initializer"
        )
    value = _operator("zeros")(list(shape), dtype=dtype)
    if default_initializer is not None:
        default_initializer(value)
    elif not is_bias:
        tenon.nn.init.xavier_uniform_(value)
    return tenon.nn.Parameter(value)
