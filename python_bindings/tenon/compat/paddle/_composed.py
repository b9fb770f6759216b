# SPDX-License-Identifier: Apache-2.0
"""Paddle's functions that are operators of Tenon with other defaults, orders or further parameters."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator

Axes = builtins.int | Sequence[builtins.int] | None

__all__ = """add atan2 bernoulli cdist cross cummax cummin cumulative_trapezoid diff divide empty_like frexp
    grad is_complex is_floating_point is_integer is_tensor kthvalue load logcumsumexp logit
    logspace masked_fill matmul mean median mode nanmedian nanquantile nansum ones_like quantile
    randperm renorm round save set_printoptions shard_index subtract trapezoid tril_indices
    triu_indices vander zeros_like""".split()


def numbers(value: Any) -> Any:
    """Lengths or indices as Python's numbers; Paddle takes tensors for these, too."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [numbers(each) for each in value]
    return value


# -- elementwise -----------------------------------------------------------------------------------


def add(x: Tensor, y: Any, alpha: Any = 1) -> Tensor:
    """x + alpha * y."""
    return _operator("add")(x, y if alpha == 1 else y * alpha)


def subtract(x: Tensor, y: Any, alpha: Any = 1) -> Tensor:
    """x - alpha * y."""
    return _operator("subtract")(x, y if alpha == 1 else y * alpha)


def divide(x: Tensor, y: Any, rounding_mode: str | None = None) -> Tensor:
    """x / y, whole or of the floor with `rounding_mode` 'trunc' or 'floor'."""
    if rounding_mode is None:
        return _operator("divide")(x, y)
    if rounding_mode == "floor":
        return _operator("floor_divide")(x, y)
    if rounding_mode != "trunc":
        raise ValueError(
            f"divide(): expected rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}"
        )
    made = _operator("trunc")(_operator("divide")(x, y))
    dtype = x.dtype if not isinstance(y, Tensor) else tenon.result_type(x, y)
    return made.to(dtype=dtype)


def atan2(x: Tensor, y: Tensor) -> Tensor:
    """The angle of the points (y, x); of whole numbers in float64."""
    if x.dtype.is_integer:
        x, y = x.to(_core.float64), y.to(_core.float64)
    return _operator("atan2")(x, y)


def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent of two, both in the dtype of x."""
    mantissa, exponent = _operator("frexp")(x)
    return mantissa, exponent.to(dtype=mantissa.dtype)


def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with `value` where the mask holds."""
    return _operator("masked_fill")(x, mask, value).to(dtype=x.dtype)


def _of_dtype(name: str) -> Any:
    def function(x: Tensor) -> bool:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): expected a tensor, got {type(x).__name__}")
        return getattr(tenon, name)(x)

    function.__doc__ = f"tenon.{name}."
    return function


is_complex, is_floating_point, is_integer = map(
    _of_dtype, ("is_complex", "is_floating_point", "is_integer")
)


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(x, Tensor)


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)); with `eps` of x moved into [eps, 1 - eps]."""
    return _operator("logit")(x if eps is None else _operator("clip")(x, eps, 1 - eps))


def round(x: Tensor, decimals: builtins.int = 0) -> Tensor:
    """Elements rounded to decimals, halves to even ones."""
    if decimals == 0 or x.dtype.is_integer:  # whole numbers stay as they are
        return _operator("round")(x)
    scale = 10.0**decimals
    return (_operator("round")(x * scale) / scale).to(dtype=x.dtype)


def shard_index(
    input: Tensor,
    index_num: builtins.int,
    nshards: builtins.int,
    shard_id: builtins.int,
    ignore_value: builtins.int = -1,
) -> Tensor:
    """Indices [..., 1] counted from the start of a shard; `ignore_value` for those of others."""
    if input.ndim == 0 or input.shape[-1] != 1:
        raise ValueError(
            f"shard_index(): expected indices of shape [..., 1], got {tuple(input.shape)}"
        )
    if not 0 <= shard_id < nshards:
        raise ValueError(
            f"shard_index(): expected a shard_id from 0 to {nshards - 1}, got {shard_id}"
        )
    return _operator("shard_index")(input, index_num, nshards, shard_id, ignore_value)


# -- reductions and scans --------------------------------------------------------------------------


def mean(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The mean over `axis`, of the elements in `dtype`."""
    given = x if dtype is None else x.to(dtype=dtype)
    made = _operator("mean")(given, numbers(axis), keepdim)
    return made if dtype is None else made.to(dtype=dtype)


def nansum(x: Tensor, axis: Axes = None, dtype: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the elements that are numbers."""
    given = x
    if dtype is not None:
        missing = _operator("isnan")(x) if x.dtype.is_floating_point else x != x
        given = _operator("where")(missing, _operator("zeros_like")(x), x).to(dtype=dtype)
    made = _operator("nansum")(given, numbers(axis), keepdim)
    return made if dtype is None else made.to(dtype=dtype)


def _last(x: Tensor, axis: Axes, keepdim: bool) -> tuple[Tensor, list[builtins.int]]:
    """`x` with the elements of `axis` in its last one, and the shape of a result."""
    axes = (
        list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, builtins.int) else axis
    )
    axes = [each % builtins.max(x.ndim, 1) for each in axes]
    rest = [i for i in range(x.ndim) if i not in axes]
    count = 1
    for each in axes[: x.ndim]:
        count *= x.shape[each]
    lengths = [x.shape[i] for i in rest]
    shape = [1 if i in axes else x.shape[i] for i in range(x.ndim)] if keepdim else lengths
    moved = _operator("permute")(x, [*rest, *axes]) if x.ndim else x
    return moved.reshape([*lengths, count]), shape


def _median(x: Tensor, axis: Any, keepdim: bool, mode: str, ignores_nan: bool) -> Any:
    name = "nanmedian" if ignores_nan else "median"
    if mode == "avg":
        flat, shape = _last(x, axis, keepdim)
        function = tenon.nanquantile if ignores_nan else tenon.quantile
        wide = flat if flat.dtype.is_floating_point else flat.to(_core.float32)
        return function(wide, 0.5, -1).to(dtype=wide.dtype).reshape(shape)
    if mode != "min":
        raise ValueError(f"{name}(): expected mode 'avg' or 'min', got {mode!r}")
    raise NotImplementedError(
        f"{name}(): expected mode 'avg', got 'min', whose indices of equal elements Paddle leaves open; "
        f"use kthvalue()"
    )


def median(x: Tensor, axis: Any = None, keepdim: bool = False, mode: str = "avg") -> Any:
    """The element in the middle, or the mean of the two in the middle."""
    return _median(x, axis, keepdim, mode, False)


def nanmedian(x: Tensor, axis: Any = None, keepdim: bool = False, mode: str = "avg") -> Any:
    """median() of the elements that are numbers."""
    if not x.dtype.is_floating_point:
        raise TypeError(f"nanmedian(): expected a tensor of floats, got {x.dtype}; use median()")
    return _median(x, axis, keepdim, mode, True)


def _quantile(
    function: Any, x: Tensor, q: Any, axis: Any, keepdim: bool, interpolation: str
) -> Tensor:
    is_one = not isinstance(q, (list, tuple, Tensor)) or (isinstance(q, Tensor) and q.ndim == 0)
    methods = ("linear", "lower", "higher", "nearest", "midpoint")
    if interpolation not in methods:
        raise ValueError(
            f"quantile(): expected interpolation of {', '.join(methods)}, got {interpolation!r}"
        )
    # Paddle's fractions are of double precision, and so are its results.
    at = numbers(q)
    at = _core.tensor([at] if is_one else at, dtype=_core.float64)
    flat, shape = _last(x.to(dtype=_core.float64), axis, keepdim)
    made = function(flat, at, -1, method=interpolation)
    made = made.reshape(shape if is_one else [at.shape[0], *shape])
    return made if x.dtype == _core.float64 else made.to(dtype=_core.float32)


def quantile(
    x: Tensor, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Tensor:
    """The elements below which are fractions `q` of those along `axis`; for a list one for each."""
    return _quantile(tenon.quantile, x, q, axis, keepdim, interpolation)


def nanquantile(
    x: Tensor, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Tensor:
    """quantile() of the elements that are numbers."""
    return _quantile(tenon.nanquantile, x, q, axis, keepdim, interpolation)


def kthvalue(
    x: Tensor, k: builtins.int, axis: builtins.int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The k-th smallest elements along an axis, the last by default, and where they are."""
    return tuple(_operator("kthvalue")(x, k, -1 if axis is None else axis, keepdim))


def mode(x: Tensor, axis: builtins.int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The elements that occur most often along an axis, and where they are last."""
    return tuple(_operator("mode")(x, axis, keepdim))


def flat(x: Tensor, axis: builtins.int | None) -> tuple[Tensor, builtins.int]:
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def _extremes(name: str, x: Tensor, axis: Any, dtype: Any) -> tuple[Tensor, Tensor]:
    wanted = _core.dtype(dtype)
    if wanted not in (_core.int32, _core.int64):
        raise TypeError(f"{name}(): expected dtype int32 or int64 of the indices, got {dtype}")
    values, indices = _operator(name)(*flat(x, axis))
    return values, indices.to(dtype=wanted)


def cummax(
    x: Tensor, axis: builtins.int | None = None, dtype: Any = "int64"
) -> tuple[Tensor, Tensor]:
    """Running largest elements and where they are; of the flat tensor without an axis."""
    return _extremes("cummax", x, axis, dtype)


def cummin(
    x: Tensor, axis: builtins.int | None = None, dtype: Any = "int64"
) -> tuple[Tensor, Tensor]:
    """Running smallest elements and where they are; of the flat tensor without an axis."""
    return _extremes("cummin", x, axis, dtype)


def logcumsumexp(x: Tensor, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
    """Logarithms of the running sums of exponentials; of the flat tensor without an axis."""
    return _operator("logcumsumexp")(*flat(x if dtype is None else x.to(dtype=dtype), axis))


def _trapezoids(y: Tensor, x: Tensor | None, dx: Any, axis: builtins.int) -> Tensor:
    if x is not None and dx is not None:
        raise ValueError("trapezoid(): expected one of `x` and `dx`, got both")
    y = _operator("movedim")(y, axis, -1)
    if x is not None:
        x = x if x.ndim == 1 else _operator("movedim")(x, axis, -1)
        step: Any = x[..., 1:] - x[..., :-1]
    else:
        step = 1.0 if dx is None else dx
    return step * (y[..., 1:] + y[..., :-1]) / 2.0


def trapezoid(
    y: Tensor, x: Tensor | None = None, dx: Any = None, axis: builtins.int = -1
) -> Tensor:
    """The integral along an axis by the trapezoidal rule."""
    return _trapezoids(y, x, dx, axis).sum(-1)


def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, dx: Any = None, axis: builtins.int = -1
) -> Tensor:
    """The running integral along an axis by the trapezoidal rule."""
    return _operator("movedim")(_operator("cumsum")(_trapezoids(y, x, dx, axis), -1), -1, axis)


def diff(
    x: Tensor,
    n: builtins.int = 1,
    axis: builtins.int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours, `n` times; of bools whether they differ."""
    if n < 1:
        raise ValueError(f"diff(): expected n of at least 1, got {n}")
    parts = [each for each in (prepend, x, append) if each is not None]
    y = _operator("concat")(parts, axis) if len(parts) > 1 else x
    y = _operator("movedim")(y, axis, -1)
    for _ in range(n):
        later, earlier = y[..., 1:], y[..., :-1]
        y = later != earlier if y.dtype == tenon.bool else later - earlier
    return _operator("movedim")(y, -1, axis)


# -- products and norms ----------------------------------------------------------------------------

COMPUTE_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(
    x: Tensor,
    y: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Distances of every two rows. The mode says how they are computed, which is Tenon's own choice."""
    if compute_mode not in COMPUTE_MODES:
        raise ValueError(
            f"cdist(): expected compute_mode of {', '.join(COMPUTE_MODES)}, got {compute_mode!r}"
        )
    return _operator("cdist")(x, y, float(p))


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The product of matrices, of which each may be transposed first."""
    x = x.mT if transpose_x and x.ndim > 1 else x
    y = y.mT if transpose_y and y.ndim > 1 else y
    return _operator("matmul")(x, y)


def cross(x: Tensor, y: Tensor, axis: builtins.int | None = 9) -> Tensor:
    """Cross products of vectors along an axis, by default (9) the first one of length 3."""
    if axis in (9, None):
        axis = next((i for i, n in enumerate(x.shape) if n == 3), None)
        if axis is None:
            raise ValueError(f"cross(): expected an axis of length 3, got shape {tuple(x.shape)}")
    return _operator("cross")(x, y, axis)


def renorm(x: Tensor, p: float, axis: builtins.int, max_norm: float) -> Tensor:
    """Slices along an axis, those of a larger p-norm made smaller."""
    return _operator("renorm")(x, float(p), axis, float(max_norm))


def vander(x: Tensor, n: builtins.int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector as columns, falling unless `increasing`."""
    return _operator("vander")(x, n, increasing)


# -- creation --------------------------------------------------------------------------------------


def _filled_like(name: str, x: Tensor, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    made = _operator(name)(x, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def empty_like(
    x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Unspecified elements, in the shape of `x`."""
    return _filled_like("empty_like", x, dtype, device, requires_grad)


def ones_like(
    x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones, in the shape of `x`."""
    return _filled_like("ones_like", x, dtype, device, requires_grad)


def zeros_like(
    x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros, in the shape of `x`."""
    return _filled_like("zeros_like", x, dtype, device, requires_grad)


def logspace(start: Any, stop: Any, num: Any, base: Any = 10.0, dtype: Any = None) -> Tensor:
    """Numbers whose logarithms are evenly spaced."""
    start, stop, num, base = map(numbers, (start, stop, num, base))
    wanted = _core.get_default_dtype() if dtype is None else dtype
    return _operator("logspace")(float(start), float(stop), num, base=float(base), dtype=wanted)


def _indices(name: str, row: builtins.int, col: Any, offset: builtins.int, dtype: Any) -> Tensor:
    for each in (row, row if col is None else col):
        if not isinstance(each, builtins.int) or each < 0:
            raise TypeError(f"{name}(): expected whole numbers of at least 0, got {each!r}")
    return _operator(name)(row, col, offset).to(dtype=dtype)


def tril_indices(
    row: builtins.int, col: builtins.int, offset: builtins.int = 0, dtype: Any = "int64"
) -> Tensor:
    """The indices [2, n] of the lower triangle."""
    return _indices("tril_indices", row, col, offset, dtype)


def triu_indices(
    row: builtins.int, col: Any = None, offset: builtins.int = 0, dtype: Any = "int64"
) -> Tensor:
    """The indices [2, n] of the upper triangle."""
    return _indices("triu_indices", row, col, offset, dtype)


def randperm(
    n: builtins.int, dtype: Any = "int64", device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The numbers below n in random order."""
    made = _operator("randperm")(n, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def bernoulli(x: Tensor, p: float | None = None) -> Tensor:
    """1 with the probabilities `x`, or all with `p`, and else 0."""
    return _operator("bernoulli")(x if p is None else _operator("full_like")(x, p))


# -- the rest --------------------------------------------------------------------------------------


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list[Tensor | None]:
    """The gradients of `outputs` by `inputs`, as a list."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    found = tenon.grad(
        outputs,
        given,
        grad_outputs,
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        allow_unused=allow_unused,
    )
    return list(found) if isinstance(found, (list, tuple)) else [found]


def save(obj: Any, path: Any) -> None:
    """Writes what tenon.save() writes: a file of safetensors."""
    tenon.save(obj, path)


def load(path: Any) -> Any:
    """Reads what tenon.load() reads, .pdparams among it."""
    return tenon.load(path)


def set_printoptions(
    precision: builtins.int | None = None,
    threshold: builtins.int | None = None,
    edgeitems: builtins.int | None = None,
    sci_mode: bool | None = None,
    linewidth: builtins.int | None = None,
) -> None:
    """How tensors are printed from now on."""
    names = ("precision", "threshold", "edgeitems", "sci_mode", "linewidth")
    values = (precision, threshold, edgeitems, sci_mode, linewidth)
    given: dict[str, Any] = {
        name: value for name, value in zip(names, values, strict=True) if value is not None
    }
    tenon.set_printoptions(**given)
