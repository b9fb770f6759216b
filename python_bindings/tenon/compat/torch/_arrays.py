# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions on shapes, statistics, linear algebra and what is rarely typed."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.torch import _creation
from tenon.compat.torch._functions import ValuesAndIndices

__all__ = """adjoint as_strided_scatter atleast_1d atleast_2d atleast_3d bincount block_diag cartesian_prod
chain_matmul column_stack combinations dsplit dstack fliplr flipud gradient histc
histogram histogramdd hsplit i0 igamma igammac is_nonzero lu lu_solve lu_unpack median mvlgamma nanmedian nonzero_static
randint_like range resolve_conj resolve_neg row_stack svd t tensor_split trapezoid trapz triangular_solve
unique_consecutive vdot vsplit""".split()


def _list_of(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    return (
        tuple(tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        else tensors
    )


def _of_several(name: str) -> Callable[..., Any]:
    def function(*tensors: Any) -> Any:
        return getattr(tenon, name)(*_list_of(tensors))

    function.__doc__ = f"tenon.{name}, of several tensors or a list of them."
    return function


atleast_1d, atleast_2d, atleast_3d = map(_of_several, ("atleast_1d", "atleast_2d", "atleast_3d"))
block_diag, cartesian_prod = _of_several("block_diag"), _of_several("cartesian_prod")


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix."""
    return tenon.column_stack(tensors)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the third axis."""
    return tenon.dstack(tensors)


def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """vstack()."""
    return tenon.vstack(tensors)


def combinations(input: Tensor, r: builtins.int = 2, with_replacement: bool = False) -> Tensor:
    """Combinations of the elements of a vector; of none of them an empty vector."""
    if r == 0:
        return _operator("zeros")([0], dtype=input.dtype, device=input.device)
    return tenon.combinations(input, r, with_replacement)


def tensor_split(
    input: Tensor, indices_or_sections: Any, dim: builtins.int = 0
) -> tuple[Tensor, ...]:
    """Parts of about one length, or between indices."""
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    return tenon.tensor_split(input, indices_or_sections, axis=dim)


def _split(name: str) -> Callable[..., tuple[Tensor, ...]]:
    def function(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        return getattr(tenon, name)(input, indices_or_sections)

    function.__doc__ = f"tenon.{name}."
    return function


hsplit, vsplit, dsplit = _split("hsplit"), _split("vsplit"), _split("dsplit")


def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order, as a copy."""
    return tenon.fliplr(input).clone()


def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order, as a copy."""
    return tenon.flipud(input).clone()


def adjoint(input: Tensor) -> Tensor:
    """Matrices transposed and conjugated."""
    transposed = _operator("transpose")(input, -2, -1)
    return _operator("conj")(transposed) if tenon.is_complex(input) else transposed


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero."""
    return bool(input)


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix."""
    return input.t()


def resolve_conj(input: Tensor) -> Tensor:
    """`input`: conjugates are computed at once."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: Tenon has no lazy negation."""
    return input


def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[builtins.int],
    stride: Sequence[builtins.int],
    storage_offset: builtins.int = 0,
) -> Tensor:
    """A copy of `input` with `src` written where as_strided() looks."""
    flat = input.reshape(-1)
    indices = _operator("arange")(input.numel(), dtype=_core.int64, device=input.device)
    where = _operator("as_strided")(indices, list(size), list(stride), storage_offset)
    result = _operator("index_put")(flat, [where.reshape(-1)], src.reshape(-1))
    return result.reshape(tuple(input.shape))


def nonzero_static(input: Tensor, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor:
    """The first `size` rows of nonzero(), filled up."""
    found = _operator("nonzero")(input)[:size]
    missing = size - found.shape[0]
    filling = _operator("full")(
        [missing, input.ndim], fill_value, dtype=_core.int64, device=input.device
    )
    return _operator("concat")([found, filling], 0)


def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Numbers from `start` to `end`, which is one of them."""
    if end is None:
        start, end = 0, start
    count = math.floor((end - start) / step) + 1
    wanted = _core.get_default_dtype() if dtype is None else dtype
    return (_operator("arange")(count, device=device) * step + start).to(dtype=wanted)


def randint_like(
    input: Tensor,
    low: builtins.int = 0,
    high: builtins.int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Whole numbers from `low` (0 if there is one limit) to below `high`, in the shape of `input`."""
    low, high = (0, low) if high is None else (low, high)
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    return _creation.whole_numbers(low, high, tuple(input.shape), dtype, device)


# -- statistics -------------------------------------------------------------------------------------


def _lower_median(x: Tensor, dim: builtins.int, keepdim: bool, skips_nan: bool) -> ValuesAndIndices:
    """The lower of two middle elements; NaN where one is, or of the numbers alone."""
    if x.ndim == 0:
        if dim not in (-1, 0):
            raise IndexError(f"median(): expected dim in [-1, 1) for a 0-d tensor, got {dim!r}")
        return ValuesAndIndices(x.clone(), _operator("zeros_like")(x, dtype=_core.int64))
    # Stable order with NaN as the largest.
    values, order = _operator("sort_with_indices")(x, dim)
    unknown = x != x
    count = (~unknown).to(dtype=_core.int64).sum(dim, True)
    length = x.shape[dim]
    at = _operator("clip")(count - 1, 0, None) // 2 if skips_nan else count * 0 + (length - 1) // 2
    if not skips_nan:
        at = _operator("where")(count < length, count, at)  # the first NaN
    values = _operator("take_along_axis")(values, at, dim)
    indices = _operator("take_along_axis")(order, at, dim)
    if keepdim:
        return ValuesAndIndices(values, indices)
    return ValuesAndIndices(values.squeeze(dim), indices.squeeze(dim))


def _median(skips_nan: bool) -> Callable[..., Any]:
    def function(input: Tensor, dim: builtins.int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return _lower_median(input.reshape(-1), 0, False, skips_nan).values
        return _lower_median(input, dim, keepdim, skips_nan)

    return function


median, nanmedian = _median(False), _median(True)
median.__doc__ = "The lower median of all elements, or (values, indices) along an axis."
nanmedian.__doc__ = "median() of the elements that are numbers."


class Histogram(NamedTuple):
    """Counts, and the edges between them."""

    hist: Tensor
    bin_edges: Any


def histc(input: Tensor, bins: builtins.int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of the equal bins, as floats; of all elements where both limits are equal."""
    limits = (float(min), float(max))
    if min == max:
        limits = (float(input.min()), float(input.max()))
        if limits[0] == limits[1]:
            limits = (limits[0] - 1, limits[1] + 1)
    counts, _ = tenon.histogram(input, bins, range=limits)
    return counts.to(dtype=input.dtype)


def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Counts of `bins` equal bins, by default from the smallest to the largest element, or of bins between the edges of
    a tensor, in the dtype of `input`."""
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError(f"histogram(): expected no range beside edges, got {range!r}")
        bins = bins.clone()
    counts, edges = tenon.histogram(input, bins, range=range, weights=weight, density=density)
    return Histogram(counts.to(dtype=input.dtype), edges.to(dtype=input.dtype))


def histogramdd(
    input: Tensor,
    bins: Any,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """tenon.histogramdd; `range` is a flat list of limits."""
    pairs = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    counts, edges = tenon.histogramdd(input, bins, range=pairs, weights=weight, density=density)
    return Histogram(
        counts.to(dtype=input.dtype), tuple(each.to(dtype=input.dtype) for each in edges)
    )


def bincount(input: Tensor, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights."""
    if weights is not None and weights.dtype != tenon.float32:
        weights = weights.to(tenon.float64)
    return tenon.bincount(input, weights, minlength)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: builtins.int | None = None,
) -> Any:
    """Without elements that are equal to the one before."""
    return tenon.unique_consecutive(
        input, return_inverse=return_inverse, return_counts=return_counts, axis=dim
    )


def trapz(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: builtins.int = -1
) -> Tensor:
    """The integral by trapezoids over the points `x`, or over points `dx` apart, 1 by default."""
    if x is None:
        return _operator("trapezoid")(y, dx=1.0 if dx is None else float(dx), axis=dim)
    if dx is not None:
        raise TypeError(f"trapz(): expected x or dx, got both: dx={dx!r}")
    y = _operator("movedim")(y, dim, -1)
    x = x if x.ndim == 1 else _operator("movedim")(x, dim, -1)
    return ((x[..., 1:] - x[..., :-1]) * (y[..., 1:] + y[..., :-1])).sum(-1) / 2


trapezoid = trapz


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: builtins.int = 1
) -> tuple[Tensor, ...]:
    """Slopes along each axis by central differences, one-sided at the ends."""
    from tenon.compat import numpy  # for this function alone

    axes = list(builtins.range(input.ndim)) if dim is None else dim
    axes = [axes] if isinstance(axes, builtins.int) else list(axes)
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(axes)
    result = numpy.gradient(input, *steps, axis=axes, edge_order=edge_order)
    parts = result if isinstance(result, tuple) else (result,)
    inexact = input.dtype.is_floating_point or input.dtype.is_complex
    dtype = input.dtype if inexact else _core.get_default_dtype()
    # Complex distances make complex slopes of real numbers.
    return tuple(
        each.to(dtype=dtype) if each.dtype.is_complex == dtype.is_complex else each
        for each in parts
    )


# -- numbers and products ---------------------------------------------------------------------------


def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of order 0."""
    return _operator("i0")(input)


def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function."""
    return _operator("gammainc")(input, other)


def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The regularised upper incomplete gamma function."""
    return _operator("gammaincc")(input, other)


def mvlgamma(input: Tensor, p: builtins.int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    if bool((input <= (p - 1) / 2).any()):
        raise ValueError(f"mvlgamma(): expected numbers above (p - 1) / 2 = {(p - 1) / 2}")
    total = _operator("zeros_like")(input) + p * (p - 1) / 4 * math.log(math.pi)
    for j in builtins.range(p):
        total = total + _operator("lgamma")(input - j / 2)
    return total


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The product of two vectors, the first one conjugated."""
    left = _operator("conj")(input) if tenon.is_complex(input) else input
    return (left * other).sum()


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices."""
    return tenon.linalg.multi_dot(list(_list_of(matrices)))


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]:
    """L and U in one matrix and LAPACK's pivots, which count from 1, in int32; with `get_infos` also
    which pivot was the first to be 0, or 0."""
    result = tenon.compat.torch.linalg.lu_factor_ex(A, pivot=pivot)
    return result if get_infos else (result.LU, result.pivots)


def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solves by the factors and pivots of lu() or linalg.lu_factor()."""
    return tenon.compat.torch.linalg.lu_solve(LU_data, LU_pivots, input)


class LUFactors(NamedTuple):
    """A = P L U."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LUFactors:
    """P, L and U of what lu() or linalg.lu_factor() gives; what is not requested is an empty tensor."""
    pivots = LU_pivots.to(dtype=_core.int64) - 1  # Tenon's count from 0
    result = LUFactors(*_operator("lu_unpack")(LU_data, pivots))
    nothing = _operator("zeros")([0], dtype=LU_data.dtype, device=LU_data.device)
    if not unpack_data:
        result = result._replace(L=nothing, U=nothing)
    return result if unpack_pivots else result._replace(P=nothing)


class Solution(NamedTuple):
    """The solution, and the matrix as it was given."""

    solution: Tensor
    cloned_coefficient: Tensor


def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Solution:
    """Solves a triangular system."""
    matrix = _operator("transpose")(A, -2, -1) if transpose else A
    solution = _operator("triangular_solve")(
        matrix, input, upper=upper != transpose, unitriangular=unitriangular
    )
    return Solution(solution, A.clone())


class SVD(NamedTuple):
    """input = U diag(S) V^H."""

    U: Tensor
    S: Tensor
    V: Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """The singular value decomposition, with V instead of its adjoint."""
    if not compute_uv:
        values = _operator("svdvals")(input)
        rows, columns = input.shape[-2:]
        lead = list(input.shape[:-2])
        zeros = [
            _operator("zeros")([*lead, n, n], dtype=input.dtype, device=input.device)
            for n in (rows, columns)
        ]
        return SVD(zeros[0], values, zeros[1])
    u, s, vh = _operator("svd")(input, full_matrices=not some)
    return SVD(u, s, adjoint(vh))
