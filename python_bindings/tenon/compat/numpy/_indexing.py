# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that make indices, select by them, and write by them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.numpy import _functions as base
from tenon.compat.numpy._convert import as_tensor, common_dtype, dtype_of

__all__ = """argpartition choose compress diag_indices diag_indices_from extract flatnonzero indices ix_ lexsort
partition piecewise place putmask ravel_multi_index select tril_indices tril_indices_from triu_indices
triu_indices_from unravel_index digitize""".split()


def flatnonzero(a: Any) -> Tensor:
    """The indices of the elements that are not zero in the flat array."""
    return base.nonzero(base.ravel(a))[0]


def extract(condition: Any, arr: Any) -> Tensor:
    """The elements where the condition holds, in a vector."""
    return base.take(arr, flatnonzero(condition))


def compress(condition: Any, a: Any, axis: builtins.int | None = None) -> Tensor:
    """The slices along an axis for which the condition holds; of the flat array without one."""
    return base.take(a, flatnonzero(condition), axis)


def indices(dimensions: Sequence[builtins.int], dtype: Any = int, sparse: bool = False) -> Any:
    """The indices of a grid, axis by axis; with `sparse` as an open grid."""
    ranges = [base.arange(each, dtype=dtype) for each in dimensions]
    if sparse:
        return base.meshgrid(*ranges, sparse=True, indexing="ij")
    if not ranges:
        return base.zeros((0,), dtype_of(dtype))
    return base.stack(base.meshgrid(*ranges, indexing="ij"))


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Vectors as an open grid; masks become indices."""
    results = []
    for i, each in enumerate(args):
        x = as_tensor(each)
        x = flatnonzero(x) if x.dtype == tenon.bool else x
        results.append(x.reshape((1,) * i + (-1,) + (1,) * (len(args) - i - 1)))
    return tuple(results)


def diag_indices(n: builtins.int, ndim: builtins.int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal."""
    return (base.arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    """The same for an array whose axes have one length."""
    x = as_tensor(arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ValueError(f"expected at least two axes of one length, got shape {tuple(x.shape)}")
    return diag_indices(x.shape[0], x.ndim)


def _triangle(name: str) -> Callable[..., tuple[Tensor, ...]]:
    def function(
        n: builtins.int, k: builtins.int = 0, m: builtins.int | None = None
    ) -> tuple[Tensor, ...]:
        return base.nonzero(_core.operator(name)(base.ones((n, n if m is None else m)), k))

    function.__doc__ = f"The indices of the triangle that {name} keeps."
    return function


tril_indices, triu_indices = _triangle("tril"), _triangle("triu")


def tril_indices_from(arr: Any, k: builtins.int = 0) -> tuple[Tensor, ...]:
    """The indices of the lower triangle of a matrix."""
    return tril_indices(arr.shape[0], k, arr.shape[1])


def triu_indices_from(arr: Any, k: builtins.int = 0) -> tuple[Tensor, ...]:
    """The indices of the upper triangle of a matrix."""
    return triu_indices(arr.shape[0], k, arr.shape[1])


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """Flat indices as one index for each axis; with order 'F' the first axis is the fastest."""
    if order == "F":
        given = (shape,) if isinstance(shape, builtins.int) else tuple(shape)
        return unravel_index(indices, given[::-1])[::-1]
    if order != "C":
        raise ValueError(f"unravel_index(): expected order 'C' or 'F', got {order!r}")
    lengths = (shape,) if isinstance(shape, builtins.int) else tuple(shape)
    flat = as_tensor(indices)
    if bool(((flat < 0) | (flat >= math.prod(lengths))).any()):
        raise ValueError(f"expected indices within an array of shape {lengths}")
    parts = []
    for length in reversed(lengths):
        parts.append(flat % length)
        flat = flat // length
    return tuple(reversed(parts))


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Sequence[builtins.int], mode: Any = "raise", order: str = "C"
) -> Tensor:
    """One index for each axis as flat indices. What is beyond an axis is an error, wraps, or ends there."""
    lengths = [dims] if isinstance(dims, builtins.int) else list(dims)
    parts, modes = list(multi_index), [mode] * len(lengths) if isinstance(mode, str) else list(mode)
    if order == "F":
        parts, lengths, modes = parts[::-1], lengths[::-1], modes[::-1]
    elif order != "C":
        raise ValueError(f"ravel_multi_index(): expected order 'C' or 'F', got {order!r}")
    flat = as_tensor(0)
    for index, length, each in zip(parts, lengths, modes, strict=True):
        x = as_tensor(index)
        if each == "raise" and bool(((x < 0) | (x >= length)).any()):
            raise ValueError(f"expected indices within an axis of size {length}")
        flat = flat * length + base.indices_within("ravel_multi_index", x, length, each)
    return flat


def choose(a: Any, choices: Sequence[Any], mode: str = "raise") -> Tensor:
    """Each element from the choice that `a` names there."""
    x = as_tensor(a)
    if mode != "raise":
        x = base.indices_within("choose", x, len(choices), mode)
    options = base.broadcast_arrays(x, *choices)
    stacked = base.stack(options[1:])
    if bool(((x < 0) | (x >= len(choices))).any()):
        raise ValueError(f"expected numbers of one of {len(choices)} choices")
    index = base.expand_dims(options[0].to(dtype=_core.int64), 0)
    return _core.operator("gather")(stacked, index, 0)[0]


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Each element from the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"expected as many choices as conditions, got {len(choicelist)} and {len(condlist)}"
        )
    result = as_tensor(default)
    dtype = common_dtype([*choicelist, default])
    result = result.to(dtype=dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = base.where(condition, as_tensor(choice).to(dtype=dtype), result.to(dtype=dtype))
    return result


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """A function of the elements for each condition; the last one holds where none does, if there is one more.
    Further arguments go to the functions."""
    value = as_tensor(x)
    results = [
        as_tensor(each(value, *args, **kw)) if callable(each) else as_tensor(each)
        for each in funclist
    ]
    extra = results.pop() if len(results) == len(condlist) + 1 else as_tensor(0)
    result = base.broadcast_to(as_tensor(extra).to(dtype=value.dtype), tuple(value.shape))
    for condition, piece in zip(condlist, results, strict=True):
        result = base.where(condition, piece.to(dtype=value.dtype), result)
    return result


def place(arr: Tensor, mask: Any, vals: Any) -> None:
    """Writes values, one after another and from the start again, where the mask holds."""
    where = flatnonzero(mask)
    values = as_tensor(vals).reshape(-1).to(dtype=arr.dtype)
    if where.shape[0] == 0:
        return
    cycled = base.take(values, base.arange(where.shape[0]) % values.shape[0])
    arr[base.broadcast_to(mask, tuple(arr.shape))] = cycled


def putmask(a: Tensor, mask: Any, values: Any) -> None:
    """Writes where the mask holds, from the same index of the values, which are repeated."""
    chosen = as_tensor(values).reshape(-1).to(dtype=a.dtype)
    cycled = base.take(chosen, base.arange(math.prod(a.shape)) % chosen.shape[0])
    value = base.where(mask, cycled.reshape(tuple(a.shape)), a)
    _core.operator("clone")(value, out=a)


def lexsort(keys: Any, axis: builtins.int = -1) -> Tensor:
    """The order by several keys, of which the last one counts most."""
    parts = [as_tensor(each) for each in keys]
    order = None
    for key in parts:
        if order is not None:
            key = _core.operator("take_along_axis")(key, order, axis)
        step = _core.operator("argsort")(key, axis)
        order = step if order is None else _core.operator("take_along_axis")(order, step, axis)
    if order is None:
        raise TypeError("lexsort(): expected at least one key, got none")
    return order


def partition(
    a: Any, kth: Any, axis: builtins.int | None = -1, kind: str = "introselect"
) -> Tensor:
    """The elements, those below the k-th before it: sorted, which is one such order."""
    _check_kth("partition", a, kth, axis, kind)
    return base.sort(a, axis)


def argpartition(
    a: Any, kth: Any, axis: builtins.int | None = -1, kind: str = "introselect"
) -> Tensor:
    """The order of partition()."""
    _check_kth("argpartition", a, kth, axis, kind)
    return base.argsort(a, axis)


def _check_kth(name: str, a: Any, kth: Any, axis: Any, kind: str) -> None:
    if kind != "introselect":
        raise ValueError(f"{name}(): expected kind 'introselect', got {kind!r}")
    x = as_tensor(a)
    extent = x.numel() if axis is None else x.shape[axis]
    for each in as_tensor(kth).reshape(-1).tolist():
        if not isinstance(each, builtins.int) or not -extent <= each < extent:
            raise ValueError(f"{name}(): expected kth within an axis of size {extent}, got {each}")


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The bin of each element, between ascending or descending edges."""
    edges = as_tensor(bins)
    descending = edges.shape[0] > 1 and bool((edges[1:] < edges[:-1]).any())
    if not descending:
        return base.searchsorted(edges, x, "left" if right else "right")
    return edges.shape[0] - base.searchsorted(base.flip(edges), x, "left" if right else "right")
