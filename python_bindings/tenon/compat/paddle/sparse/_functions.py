# SPDX-License-Identifier: Apache-2.0
"""The functions of paddle.sparse."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon import sparse as _sparse
from tenon._core import Tensor
from tenon.compat.torch.sparse import sum as _sum_along

_AT_ZERO = (
    "sin tan asin atan sinh tanh asinh atanh sqrt square log1p abs expm1 deg2rad rad2deg isnan"
)
__all__ = (
    _AT_ZERO.split()
    + """add addmm cast coalesce divide is_same_shape mask_as masked_matmul matmul multiply mv neg
    pca_lowrank pow reshape slice sparse_coo_tensor sparse_csr_tensor subtract sum transpose""".split()
)


def expect_sparse(name: str, x: Tensor, *layouts: str) -> None:
    """An error that names the function, where the tensor is dense or has another layout."""
    wanted = layouts or ("coo", "csr")
    if x.layout not in wanted:
        raise TypeError(
            f"sparse.{name}(): expected a tensor of layout {' or '.join(wanted)}, got {x.layout}"
        )


def _made(given: Any, dtype: Any, place: Any) -> Tensor:
    made = given if isinstance(given, Tensor) else tenon.tensor(given)
    made = made if dtype is None else made.to(dtype)
    return made if place is None else made.to(place)


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool = True,
) -> Tensor:
    """sparse.coo. Without a shape the largest indices give it."""
    values, indices = _made(values, dtype, place), _made(indices, None, place)
    if shape is None:
        if indices.shape[1] == 0:
            raise ValueError("sparse_coo_tensor(): expected a shape where there are no indices")
        shape = [int(most) + 1 for most in tenon.max(indices, 1).tolist()] + list(values.shape[1:])
    made = _sparse.coo(indices, values, list(shape))
    return made if stop_gradient else made.requires_grad_()


def sparse_csr_tensor(
    crows: Any,
    cols: Any,
    values: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool = True,
) -> Tensor:
    """sparse.csr of one matrix."""
    values = _made(values, dtype, place)
    crows, cols = _made(crows, None, place), _made(cols, None, place)
    if shape is None:
        most = int(cols.max().item()) + 1 if cols.shape[0] else 0
        shape = [crows.shape[0] - 1, most]
    if len(shape) != 2:
        raise NotImplementedError(
            f"sparse_csr_tensor(): expected the shape of one matrix, got {list(shape)}; batches are not "
            "there, use sparse_coo_tensor()"
        )
    made = _sparse.csr(crows, cols, values, list(shape))
    return made if stop_gradient else made.requires_grad_()


def _of_stored(name: str) -> Callable[..., Tensor]:
    """An operator that is 0 at 0, of the sums of equal indices."""

    def function(x: Tensor, name: Any = None) -> Tensor:
        expect_sparse(function.__name__, x)
        return _core.operator(function.__name__)(x)

    function.__name__, function.__doc__ = name, f"tenon.{name} of the stored elements."
    return function


globals().update({name: _of_stored(name) for name in _AT_ZERO.split()})


def neg(x: Tensor, name: Any = None) -> Tensor:
    """The stored elements with the other sign."""
    expect_sparse("neg", x)
    return _core.operator("negative")(x)


def pow(x: Tensor, factor: float, name: Any = None) -> Tensor:
    """The stored elements to this power."""
    expect_sparse("pow", x)
    return _core.operator("pow")(x, factor)


def cast(x: Tensor, index_dtype: Any = None, value_dtype: Any = None, name: Any = None) -> Tensor:
    """Indices and stored elements in other dtypes."""
    expect_sparse("cast", x)
    *where, values = _core.parts_of(x)
    where = where if index_dtype is None else [part.to(index_dtype) for part in where]
    values = values if value_dtype is None else values.to(value_dtype)
    return _core.compose(x.layout, list(x.shape), [*where, values])


def coalesce(x: Tensor, name: Any = None) -> Tensor:
    """Sorted, with the elements of equal indices added up."""
    expect_sparse("coalesce", x, "coo")
    return x.coalesce()


def is_same_shape(x: Tensor, y: Tensor) -> builtins.bool:
    """Whether the shapes are equal."""
    return tuple(x.shape) == tuple(y.shape)


def _of_two(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, y: Any, name: Any = None) -> Tensor:
        if isinstance(y, Tensor) and y.layout != x.layout:
            raise TypeError(
                f"sparse.{function.__name__}(): expected tensors of one layout, got {x.layout} and "
                f"{y.layout}"
            )
        expect_sparse(function.__name__, x)
        return _core.operator(function.__name__)(x, y)

    function.__name__, function.__doc__ = name, f"tenon.{name}."
    return function


add, subtract, multiply = map(_of_two, ("add", "subtract", "multiply"))


def divide(x: Tensor, y: Any, name: Any = None) -> Tensor:
    """By a number. By a sparse tensor, 0 / 0 would be NaN wherever nothing is stored, which is refused."""
    expect_sparse("divide", x)
    if isinstance(y, Tensor):
        raise NotImplementedError(
            "sparse.divide(): expected a number, got a tensor: 0 / 0 is NaN where nothing is stored; use "
            "to_dense(), or divide the values() of tensors of one structure"
        )
    return _core.operator("divide")(x, y)


def matmul(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The product of matrices of which the first one, or both, are sparse."""
    expect_sparse("matmul", x)
    return _core.operator("matmul")(x, y)


def mv(x: Tensor, vec: Tensor, name: Any = None) -> Tensor:
    """A sparse matrix times a vector."""
    expect_sparse("mv", x)
    if vec.ndim != 1:
        raise ValueError(f"sparse.mv(): expected a vector, got shape {tuple(vec.shape)}")
    return _core.operator("matmul")(x, vec)


def addmm(
    input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0, name: Any = None
) -> Tensor:
    """beta * input + alpha * (x @ y)."""
    expect_sparse("addmm", x)
    return input * beta + _core.operator("matmul")(x, y) * alpha


def masked_matmul(x: Tensor, y: Tensor, mask: Tensor, name: Any = None) -> Tensor:
    """The elements of the product of two dense matrices where `mask` has stored elements."""
    expect_sparse("masked_matmul", mask)
    pattern = _core.convert_layout(mask, "csr")
    product = _sparse.sddmm(pattern, x, _core.operator("transpose")(y, 0, 1).contiguous())
    return _core.convert_layout(product, mask.layout)


def mask_as(x: Tensor, mask: Tensor, name: Any = None) -> Tensor:
    """The elements of the dense `x` where `mask` has stored elements."""
    expect_sparse("mask_as", mask)
    if tuple(x.shape) != tuple(mask.shape):
        raise ValueError(
            f"sparse.mask_as(): expected a mask of the shape {tuple(x.shape)}, got {tuple(mask.shape)}"
        )
    ones = _core.with_values(mask, tenon.ones_like(mask.values()).to(x.dtype))
    return ones * x


def transpose(x: Tensor, perm: Sequence[int], name: Any = None) -> Tensor:
    """The axes in another order. Of layout csr those of a matrix."""
    expect_sparse("transpose", x)
    axes = [axis % x.ndim for axis in perm]
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(
            f"sparse.transpose(): expected an order of {x.ndim} axes, got {list(perm)}"
        )
    if x.layout == "csr":
        transposed = _core.operator("permute")(x, axes)
        return _core.convert_layout(transposed, "csr")
    indices, values = x.indices(), x.values()
    indexed = indices.shape[0]
    if any((axis < indexed) != (place < indexed) for place, axis in enumerate(axes)):
        raise NotImplementedError(
            f"sparse.transpose(): expected the {indexed} axes with indices to stay the first ones, got "
            f"{list(perm)}"
        )
    rows = tenon.stack([indices[axis] for axis in axes[:indexed]])
    inner = [0, *(axis - indexed + 1 for axis in axes[indexed:])]
    shape = [x.shape[axis] for axis in axes]
    transposed = _core.operator("permute")(values, inner)
    return _core.compose("coo", shape, [rows, transposed]).coalesce()


def reshape(x: Tensor, shape: Sequence[int], name: Any = None) -> Tensor:
    """The axes with indices in another shape; 0 keeps a size, -1 is what is left."""
    expect_sparse("reshape", x)
    whole = x if x.layout == "coo" else _core.convert_layout(x, "coo")
    indices, values = whole.indices().to(tenon.int64), whole.values()
    if values.ndim != 1:
        raise NotImplementedError(
            "sparse.reshape(): expected a tensor with indices along all axes, got some without"
        )
    sizes = [whole.shape[place] if size == 0 else size for place, size in enumerate(shape)]
    known = 1
    for size in sizes:
        known *= size if size != -1 else 1
    sizes = [whole.numel() // known if size == -1 and known else size for size in sizes]
    total = 1
    for size in sizes:
        total *= size
    if total != whole.numel() or builtins.sum(size == -1 for size in shape) > 1:
        raise ValueError(
            f"sparse.reshape(): expected a shape of {whole.numel()} elements, got {list(shape)}"
        )
    number = indices[0]
    for axis in range(1, whole.ndim):
        number = number * whole.shape[axis] + indices[axis]
    found = []
    for size in reversed(sizes):
        found.append(number % max(size, 1))
        number = number // max(size, 1)
    made = _core.compose("coo", sizes, [tenon.stack(found[::-1]), values])
    return made if x.layout == "coo" else _core.convert_layout(made, "csr")


def slice(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], name: Any = None
) -> Tensor:
    """A part of some axes."""
    expect_sparse("slice", x)
    return _core.operator("slice")(x, list(axes), list(starts), list(ends))


def sum(
    x: Tensor,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    keepdim: builtins.bool = False,
    name: Any = None,
) -> Tensor:
    """The sum along axes, of the layout of `x` where axes with indices are left."""
    expect_sparse("sum", x)
    x = x if dtype is None else _core.with_values(x, x.values().to(dtype))
    given = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    result = _sum_along(x, None if axis is None else given)
    if not keepdim:
        return result
    kept = [
        1 if place in {a % x.ndim for a in given} else size for place, size in enumerate(x.shape)
    ]
    if result.layout == "strided":
        return result.reshape(kept)
    made = reshape(result, kept)
    return made if x.layout == "coo" else _core.convert_layout(made, "csr")


def pca_lowrank(
    x: Tensor, q: int | None = None, center: builtins.bool = True, niter: int = 2, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Not there."""
    raise NotImplementedError(
        "sparse.pca_lowrank(): expected a dense matrix; use tenon.linalg.svd(x.to_dense()) of the "
        "centred matrix, there is no factorisation of sparse ones"
    )
