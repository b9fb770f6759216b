# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of indices, and joins and ranges. A 0-d tensor counts as a vector of one
element wherever PyTorch takes it for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator

__all__ = """cat eye gather index_add index_copy index_fill index_put index_reduce index_select linspace
logspace narrow nonzero put scatter scatter_add transpose""".split()


def _vector(x: Any) -> Any:
    return x.reshape(1) if isinstance(x, Tensor) and x.ndim == 0 else x


def _of_vectors(name: str, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The operator `name`, which gets a vector for a 0-d `input`, and whose result is 0-d then."""
    if input.ndim:
        return _operator(name)(input, *args, **kwargs)
    return _operator(name)(_vector(input), *args, **kwargs).reshape([])


def _positions(index: Tensor) -> Tensor:
    return index.to(dtype=_core.int64)


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements at `index` along `dim`."""
    if sparse_grad:
        raise NotImplementedError(
            "gather(): expected sparse_grad=False, got True; gradients are dense"
        )
    if index.numel() == 0:  # PyTorch leaves the axes of an empty index unchecked
        return _operator("empty")(list(index.shape), dtype=input.dtype, device=input.device)
    if input.ndim == 0:
        result = _operator("gather")(_vector(input), _positions(_vector(index)), 0)
        return result.reshape(list(index.shape))
    if index.ndim == 0:
        return _operator("gather")(input, _positions(_vector(index)), dim).reshape([])
    return _operator("gather")(input, _positions(index), dim)


def _scattered(name: str, input: Tensor, dim: int, index: Tensor, src: Any, **named: Any) -> Tensor:
    if index.numel() == 0:
        return input.clone()
    if not isinstance(src, Tensor):
        src = _operator("full")([], src, dtype=input.dtype, device=input.device)
        src = _operator("expand")(src, list(index.shape))
    x, where, source = _vector(input), _positions(_vector(index)), _vector(src)
    # PyTorch's source may be larger than the index; what is beyond it does not count.
    for axis, extent in enumerate(where.shape):
        if axis < source.ndim and source.shape[axis] > extent:
            source = _operator("narrow")(source, axis, 0, extent)
    return _operator(name)(x, where, source, dim, **named).reshape(list(input.shape))


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """`input` with the elements of `src` at `index` along `dim`; `reduce` 'add' or 'multiply' combines
    them with what is there."""
    src = value if src is None else src
    if src is None:
        raise TypeError("scatter(): expected src or value, got neither")
    if reduce is None:
        return _scattered("scatter", input, dim, index, src)
    if reduce == "add":
        return _scattered("scatter_add", input, dim, index, src)
    if reduce != "multiply":
        raise ValueError(
            f"scatter(): expected reduce None, 'add' or 'multiply', got {reduce!r}; scatter_reduce() has others"
        )
    return _scattered("scatter_reduce", input, dim, index, src, reduce="prod", include_self=True)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with the elements of `src` added at `index` along `dim`."""
    return _scattered("scatter_add", input, dim, index, src)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Slices at `index` along `dim`."""
    return _of_vectors("index_select", input, _vector(index), dim)


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """`input` with slices of `source`, times `alpha`, added at `index` along `dim`."""
    source = source if alpha == 1 else source * alpha
    return _of_vectors("index_add", input, _vector(index), _source(input, source), dim)


def _source(input: Tensor, source: Tensor) -> Tensor:
    """A 0-d source for one slice of a vector."""
    return _vector(source) if input.ndim <= 1 else source


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with slices of `source` at `index` along `dim`."""
    return _of_vectors("index_copy", input, dim, _vector(index), _source(input, source))


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with the number `value` at `index` along `dim`."""
    value = value.item() if isinstance(value, Tensor) and not value.requires_grad else value
    if isinstance(value, Tensor):  # a 0-d tensor keeps its gradient
        vector = _vector(input)
        filled = _operator("index_put")(vector, [_vector(index)], value, axis=dim)
        return filled.reshape(input.shape)
    return _of_vectors("index_fill", input, dim, _vector(index), value)


def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Reduces the slices of `source` that `index` sends to one slice."""
    return _of_vectors(
        "index_reduce",
        input,
        dim,
        _vector(index),
        _source(input, source),
        reduce=reduce,
        include_self=include_self,
    )


def index_put(
    input: Tensor, indices: Sequence[Tensor], values: Any, accumulate: bool = False
) -> Tensor:
    """`input` with `values` at `indices`, of which a boolean one stands for where it is True."""
    positions: list[Tensor] = []
    for each in indices:
        if each.dtype == tenon.bool:
            found = _operator("nonzero")(each)
            positions.extend(found[:, axis] for axis in range(each.ndim))
        else:
            positions.append(each)
    return _operator("index_put")(input, positions, values, accumulate=accumulate)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with the elements of `source` at positions in the flat tensor, or added there."""
    flat, at = input.reshape(-1), _positions(index).reshape(-1)
    result = _operator("index_put")(flat, [at], source.reshape(-1), accumulate=accumulate)
    return result.reshape(list(input.shape))


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` slices along `dim` from `start` on, as a view; `start` may be a 0-d tensor."""
    start = int(start.item()) if isinstance(start, Tensor) else start
    return _operator("narrow")(input, dim, start, length)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged, as a view."""
    if input.ndim == 0:
        for dim in (dim0, dim1):
            if dim not in (-1, 0):
                raise IndexError(
                    f"transpose(): expected dim in [-1, 1) for a 0-d tensor, got {dim}"
                )
        return input
    return _operator("transpose")(input, dim0, dim1)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero: rows of a matrix, or a vector for each axis."""
    if as_tuple:
        return tenon.array_api.nonzero(_vector(input))
    return _operator("nonzero")(input)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along `dim`. An empty vector joins anything, and adds its dtype alone."""
    given = list(tensors)
    shaped = [each for each in given if tuple(each.shape) != (0,)]
    if not shaped or len(shaped) == len(given):
        return _operator("concat")(given, dim)
    dtype = given[0].dtype
    for each in given[1:]:
        dtype = tenon.promote_types(dtype, each.dtype)
    return _operator("concat")([each.to(dtype=dtype) for each in shaped], dim)


# -- ranges ----------------------------------------------------------------------------------------


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on its diagonal."""
    result = _operator("eye")(n, m, dtype=dtype, device=device)
    return result.requires_grad_() if requires_grad else result


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Evenly spaced numbers, both ends included; ends may be 0-d tensors."""
    return _operator("linspace")(_number(start), _number(end), steps, dtype=dtype, device=device)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Powers of `base` whose exponents are evenly spaced, both ends included."""
    return _operator("logspace")(
        _number(start), _number(end), steps, base=float(base), dtype=dtype, device=device
    )
