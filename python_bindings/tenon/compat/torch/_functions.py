# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions whose order of arguments, defaults or results are not those of Tenon's
operators."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.arguments import one_sequence as _one_sequence
from tenon.compat.torch._indices import nonzero as _indices_of
from tenon.compat.torch._options import kind

Axes = builtins.int | Sequence[builtins.int] | None


class ValuesAndIndices(NamedTuple):
    """Results of max, min, sort, topk and others along an axis."""

    values: Tensor
    indices: Tensor


# -- reductions ------------------------------------------------------------------------------------


def _cast(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else x.to(dtype=dtype)


def _inexact(name: str, x: Tensor, dtype: Any) -> Tensor:
    """The tensor in `dtype`, which must not be one of whole numbers."""
    if dtype is not None and kind(_core.dtype(dtype)) < 2:
        raise TypeError(f"{name}(): expected a floating or complex dtype, got {dtype}")
    return _cast(x, dtype)


def softmax(input: Tensor, dim: builtins.int, dtype: Any = None) -> Tensor:
    """Shares of exp(x) along `dim`, computed in `dtype`."""
    return _operator("softmax")(_inexact("softmax", input, dtype), dim)


def log_softmax(input: Tensor, dim: builtins.int, dtype: Any = None) -> Tensor:
    """The logarithm of softmax()."""
    return _operator("log_softmax")(_inexact("log_softmax", input, dtype), dim)


def _axes(dim: Axes) -> Any:
    """None for no axis and for an empty list, which both mean all of them."""
    return dim if dim is None or isinstance(dim, builtins.int) else list(dim) or None


def _reduced(name: str, input: Tensor, dim: Axes, keepdim: bool, dtype: Any) -> Tensor:
    dim = _axes(dim)
    if dtype is None:
        return _operator(name)(input, dim, keepdim)
    return _operator(name)(input.to(dtype=dtype), dim, keepdim).to(dtype=dtype)


def sum(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over `dim`."""
    return _reduced("sum", input, dim, keepdim, dtype)


def mean(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over `dim`, of a floating tensor."""
    return _reduced("mean", _inexact("mean", input, dtype), dim, keepdim, dtype)


def prod(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over `dim`."""
    return _reduced("prod", input, dim, keepdim, dtype)


def nansum(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over `dim` of what is not NaN."""
    return _reduced("nansum", input, dim, keepdim, dtype)


def nanmean(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over `dim` of what is not NaN."""
    return _reduced("nanmean", _inexact("nanmean", input, dtype), dim, keepdim, dtype)


def all(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are not zero."""
    return _operator("all")(input, _axes(dim), keepdim)


def any(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not zero."""
    return _operator("any")(input, _axes(dim), keepdim)


def amax(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """The largest elements; equal ones share the gradient."""
    return _operator("max")(input, _axes(dim), keepdim)


def amin(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """The smallest elements; equal ones share the gradient."""
    return _operator("min")(input, _axes(dim), keepdim)


def count_nonzero(input: Tensor, dim: Axes = None) -> Tensor:
    """How many elements are not zero."""
    return _operator("count_nonzero")(input, _axes(dim))


def argmax(input: Tensor, dim: builtins.int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element is."""
    return _operator("argmax")(input, dim, keepdim)


def argmin(input: Tensor, dim: builtins.int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element is."""
    return _operator("argmin")(input, dim, keepdim)


def _extreme(
    name: str, binary: str, input: Tensor, dim: Any, keepdim: bool, other: Tensor | None
) -> Any:
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return _operator(binary)(input, other)
    if dim is None:
        return _operator(name)(input)
    indices = _operator(f"arg{name}")(input, dim, True)
    values = _operator("take_along_axis")(input, indices, dim)
    if keepdim:
        return ValuesAndIndices(values, indices)
    return ValuesAndIndices(values.squeeze([dim]), indices.squeeze([dim]))


def max(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The largest element; along `dim` (values, indices); of two tensors the larger elements."""
    return _extreme("max", "maximum", input, dim, keepdim, other)


def min(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The smallest element; along `dim` (values, indices); of two tensors the smaller elements."""
    return _extreme("min", "minimum", input, dim, keepdim, other)


def norm(
    input: Tensor, p: Any = "fro", dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The vector norm of order `p` over `dim`; 'fro' is of order 2, and 'nuc' the sum of the singular
    values of matrices."""
    input = _inexact("norm", input, dtype)
    dim = _axes(dim)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ValueError(f"norm(): expected p a number, 'fro' or 'nuc', got {p!r}")
    if p == "nuc":
        axes = tuple(builtins.range(input.ndim)) if dim is None else dim
        if isinstance(axes, builtins.int) or len(axes) != 2:
            raise ValueError(f"norm(): expected two axes of matrices for p='nuc', got {axes}")
        from tenon.compat.torch import linalg  # for this function alone

        return linalg.matrix_norm(input, "nuc", axes, keepdim)
    return _operator("norm")(input, 2.0 if p in ("fro", None) else p, dim, keepdim)


def cumsum(input: Tensor, dim: builtins.int, *, dtype: Any = None) -> Tensor:
    """Running sums along `dim`."""
    result = _operator("cumsum")(input if dtype is None else input.to(dtype=dtype), dim)
    return result if dtype is None else result.to(dtype=dtype)


def cumprod(input: Tensor, dim: builtins.int, *, dtype: Any = None) -> Tensor:
    """Running products along `dim`."""
    result = _operator("cumprod")(_cast(input, dtype), dim)
    return result if dtype is None else result.to(dtype=dtype)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements."""
    return tenon.array_equal(input, other)


def eq(input: Tensor, other: Any) -> Tensor:
    """Which elements are equal."""
    return _operator("equal")(input, other)


# -- parts and joins -------------------------------------------------------------------------------


def split(tensor: Tensor, split_size_or_sections: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of one size, of which the last may be smaller, or of the sizes of a list."""
    sizes = split_size_or_sections
    if isinstance(sizes, builtins.int):
        extent = tensor.shape[dim]
        sizes = [builtins.min(sizes, extent - i) for i in range(0, extent, sizes)] or [0]
    return tuple(_operator("split")(tensor, list(sizes), dim))


def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of one length, of which the last may be shorter; an empty axis has `chunks` of them."""
    if chunks > 0 and input.ndim and input.shape[dim] == 0:
        return (input.narrow(dim, 0, 0),) * chunks
    return tuple(tenon.chunk(input, chunks, dim))


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors, one by one or in a list."""
    given = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    vectors = [each.reshape(1) if each.ndim == 0 else each for each in given]
    return tuple(_operator("meshgrid")(vectors, indexing))


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, expanded to their common shape."""
    return tuple(_operator("broadcast_tensors")(list(tensors)))


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`input`, expanded."""
    return _operator("expand")(input, size)


def repeat_interleave(
    input: Tensor, repeats: Any, dim: builtins.int | None = None, *, output_size: Any = None
) -> Tensor:
    """Each element repeated. `output_size` is the length of the result along `dim`, if it is known."""
    result = tenon.array_api.repeat(input, repeats, axis=dim)
    length = result.shape[0 if dim is None else dim]
    if output_size is not None and output_size != length:
        raise ValueError(
            f"repeat_interleave(): expected output_size {length}, the sum of the repeats, got {output_size!r}"
        )
    return _own_memory(result, input)


def tile(input: Tensor, dims: Any) -> Tensor:
    """`input` repeated along its axes."""
    return _own_memory(_operator("tile")(input, dims), input)


def _own_memory(result: Tensor, input: Tensor) -> Tensor:
    """The result in memory of its own; repeating once gives the tensor itself."""
    return result.clone() if result.numel() == input.numel() or input.numel() == 1 else result


def diag(input: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """A matrix with the vector on its diagonal, or a copy of the diagonal of a matrix."""
    result = _operator("diag")(input, diagonal)
    return result.clone() if input.ndim == 2 else result


def roll(input: Tensor, shifts: Any, dims: Axes = None) -> Tensor:
    """Elements moved along the axes, those that leave one end to the other; without axes along the flat tensor."""
    every = [shifts] if isinstance(shifts, builtins.int) else shifts
    result = _operator("roll")(input, shifts, dims)
    return result if builtins.any(every) else result.clone()


def flip(input: Tensor, dims: Axes) -> Tensor:
    """Axes in reverse order, as a copy."""
    return _operator("flip")(input, dims).clone()


def flatten(input: Tensor, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
    """Several axes as one."""
    return _operator("flatten")(input, start_dim, end_dim)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: builtins.int | None = None,
) -> Any:
    """The different elements in ascending order, and what is wanted."""
    return tenon.unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)


# -- indices and order -----------------------------------------------------------------------------


def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat tensor."""
    return _operator("index_select")(input.reshape(-1), index, 0)


def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
    """Elements at `indices` along `dim`; of the flat tensor without one."""
    if dim is None:
        return take(input, indices.reshape(-1))
    return _operator("take_along_axis")(input, indices, dim)


def argwhere(input: Tensor) -> Tensor:
    """Indices of the elements that are not zero, as rows of a matrix."""
    return _operator("nonzero")(input)


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Elements of `input` or of `other`; with a condition alone, where it holds."""
    if input is None and other is None:
        return _indices_of(condition, as_tuple=True)
    return _operator("where")(condition, input, other)


def sort(
    input: Tensor, dim: builtins.int = -1, descending: bool = False, stable: bool = False
) -> ValuesAndIndices:
    """Elements in order, and where they were. Stable in any case."""
    return ValuesAndIndices(*_operator("sort_with_indices")(input, dim, descending))


def argsort(
    input: Tensor, dim: builtins.int = -1, descending: bool = False, stable: bool = False
) -> Tensor:
    """Where the elements in order are. Stable in any case."""
    return _operator("argsort")(input, dim, descending)


def topk(
    input: Tensor,
    k: builtins.int,
    dim: builtins.int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> ValuesAndIndices:
    """The k largest or smallest elements along `dim`, in order, and where they are."""
    return ValuesAndIndices(*_operator("topk")(input, k, dim, largest))


# -- mathematics -----------------------------------------------------------------------------------


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Elements moved into [min, max]."""
    return _operator("clip")(input, min, max)


clip = clamp


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """`input` + `alpha` * `other`."""
    return _operator("add")(input, other if alpha == 1 else other * alpha)


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """`input` - `alpha` * `other`."""
    return _operator("subtract")(input, other if alpha == 1 else other * alpha)


subtract = sub


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient; whole for rounding_mode 'floor' or 'trunc'."""
    if rounding_mode is None:
        return _operator("divide")(input, other)
    if rounding_mode == "floor":
        return _operator("floor_divide")(input, other)
    if rounding_mode != "trunc":
        raise ValueError(
            f"div(): expected rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}"
        )
    quotient = _operator("trunc")(_operator("divide")(input, other))
    return quotient.to(tenon.result_type(input, other))


divide = div


def round(input: Tensor, *, decimals: builtins.int = 0) -> Tensor:
    """Elements rounded to whole numbers, or to decimals."""
    scale = 10.0**decimals
    return _operator("round")(input) if decimals == 0 else _operator("round")(input * scale) / scale


def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; 0 for NaN."""
    result = _operator("sign")(input)
    if not input.dtype.is_floating_point:
        return result
    return _operator("nan_to_num")(result, 0.0)


sgn = sign


def nan_to_num(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Numbers instead of NaN, which is 0 by default, and of infinities, by default the largest numbers."""
    return _operator("nan_to_num")(input, 0.0 if nan is None else nan, posinf, neginf)


def real(input: Tensor) -> Tensor:
    """The real part: of real numbers the tensor itself, of complex ones a copy."""
    return _operator("real")(input) if input.dtype.is_complex else input


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype == tenon.bool:
        raise TypeError("positive(): expected numbers, got bool")
    return input


def conj(input: Tensor) -> Tensor:
    """The conjugate: of real numbers the tensor itself, of complex ones a copy."""
    return _operator("conj")(input) if input.dtype.is_complex else input


conj_physical = conj


class MinAndMax(NamedTuple):
    """Results of aminmax."""

    min: Tensor
    max: Tensor


def aminmax(input: Tensor, *, dim: builtins.int | None = None, keepdim: bool = False) -> MinAndMax:
    """The smallest and the largest elements."""
    return MinAndMax(*_operator("aminmax")(input, dim, keepdim))


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return _operator("matmul")(input, mat2)


bmm = mm


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    return _operator("matmul")(input, vec)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors."""
    return _operator("dot")(input, tensor)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The product summed over axes. Of a pair of axes one may have length 1, and counts for all of the other."""
    if not isinstance(dims, builtins.int):
        first, second = ([each] if isinstance(each, builtins.int) else each for each in dims)
        for i, k in zip(first, second, strict=True):
            if a.shape[i] == 1 != b.shape[k]:
                b = _operator("sum")(b, [k], True)
            elif b.shape[k] == 1 != a.shape[i]:
                a = _operator("sum")(a, [i], True)
    return tenon.linalg.tensordot(a, b, axes=dims)


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: builtins.float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Distances of all pairs of rows. `compute_mode` chooses an algorithm of PyTorch's, and changes nothing."""
    modes = [
        "use_mm_for_euclid_dist_if_necessary",
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    ]
    if compute_mode not in modes:
        raise ValueError(
            f"cdist(): expected compute_mode among {', '.join(modes)}, got {compute_mode!r}"
        )
    return _operator("cdist")(x1, x2, p)


def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input * 2**other, also of complex numbers."""
    if input.dtype.is_complex or other.dtype.is_complex:
        return input * _operator("pow")(2.0, other)
    return _operator("ldexp")(input, other)


def slice(
    input: Tensor,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> Tensor:
    """Every `step`-th element along `dim` from `start` to before `end`, as a view."""
    key: list[Any] = [builtins.slice(None)] * input.ndim
    key[dim] = builtins.slice(start, end, step)
    return input[tuple(key)]


def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> Tensor:
    """A copy of `input` with `src` written where slice() looks."""
    length = input.shape[dim]
    begin = 0 if start is None else start
    stop = length if end is None else builtins.min(end, length)
    return _operator("slice_scatter")(input, src, dim, begin, stop, step)


def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Groups of channels as pixels beside each other."""
    return _own_memory(tenon.nn.functional.pixel_shuffle(input, upscale_factor), input)


def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """Pixels beside each other as groups of channels."""
    return _own_memory(tenon.nn.functional.pixel_unshuffle(input, downscale_factor), input)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the axes along which `size` was broadcast to the shape of `input`."""
    wanted = list(_one_sequence(size))
    extra = input.ndim - len(wanted)
    fits = extra >= 0 and builtins.all(
        n in (1, m) for n, m in zip(wanted, input.shape[builtins.max(extra, 0) :], strict=False)
    )
    if not fits:
        raise ValueError(
            f"sum_to_size(): expected a shape that broadcasts to {tuple(input.shape)}, got {tuple(wanted)}"
        )
    axes = [
        *range(extra),
        *(extra + i for i, n in enumerate(wanted) if n != input.shape[extra + i]),
    ]
    return (_operator("sum")(input, axes, True) if axes else input).reshape(wanted)


def cross(input: Tensor, other: Tensor, dim: builtins.int | None = None) -> Tensor:
    """Cross products of vectors along `dim`; without one, along the first axis of length 3."""
    if dim is None:
        dim = next((i for i, extent in enumerate(input.shape) if extent == 3), -1)
    return _operator("cross")(input, other, dim)


def diff(
    input: Tensor,
    n: builtins.int = 1,
    dim: builtins.int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours, `n` times."""
    if not isinstance(dim, builtins.int):
        raise TypeError(f"diff(): expected dim to be a whole number, got {dim!r}")
    for each in (prepend, append):
        if each is not None and not isinstance(each, Tensor):
            raise TypeError(f"diff(): expected tensors to prepend and append, got {each!r}")
    if n == 0:
        return input.clone()
    return tenon.array_api.diff(input, axis=dim, n=n, prepend=prepend, append=append)


def diagonal(
    input: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
) -> Tensor:
    """A diagonal, as a view."""
    return _operator("diagonal")(input, offset, dim1, dim2)


def diag_embed(
    input: Tensor, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
) -> Tensor:
    """Vectors on a diagonal of matrices of zeros."""
    return _operator("diag_embed")(input, offset, dim1, dim2)


def rot90(input: Tensor, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
    """Quarter turns in the plane of two axes, as a copy."""
    if isinstance(dims, builtins.int) or len(dims) != 2:
        raise ValueError(f"rot90(): expected two axes, got {dims!r}")
    return _operator("rot90")(input, k, *dims).clone()


_OTHER = set("annotations builtins tenon kind Axes Any Callable NamedTuple Sequence Tensor".split())
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OTHER)
