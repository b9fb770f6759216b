# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on shapes: parts, joints, blocks, what an array is."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.numpy import _functions as base
from tenon.compat.numpy._convert import as_tensor

__all__ = """append asanyarray atleast_1d atleast_2d atleast_3d block column_stack delete dsplit dstack
ediff1d fliplr flipud from_dlpack frombuffer hsplit insert iscomplex iscomplexobj isrealobj isscalar
ndim real_if_close resize rollaxis row_stack shape size trim_zeros vsplit tri matrix_transpose
can_cast isdtype get_printoptions set_printoptions printoptions load save copyto""".split()

asanyarray = base.asarray
from_dlpack, frombuffer, can_cast = tenon.from_dlpack, tenon.frombuffer, tenon.can_cast
isdtype, load, save = tenon.isdtype, tenon.load, tenon.save
get_printoptions, set_printoptions = tenon.get_printoptions, tenon.set_printoptions
printoptions = tenon.printoptions


def _at_least(name: str) -> Callable[..., Any]:
    def function(*arys: Any) -> Any:
        results = tuple(getattr(tenon, name)(as_tensor(each)) for each in arys)
        return results[0] if len(results) == 1 else results

    function.__doc__ = f"tenon.{name}, of one array or of each."
    return function


atleast_1d, atleast_2d = _at_least("atleast_1d"), _at_least("atleast_2d")
atleast_3d = _at_least("atleast_3d")


def _of_list(name: str) -> Callable[..., Tensor]:
    def function(tup: Sequence[Any]) -> Tensor:
        return getattr(tenon, name)([as_tensor(each) for each in tup])

    function.__doc__ = f"tenon.{name}."
    return function


column_stack, dstack, row_stack = _of_list("column_stack"), _of_list("dstack"), base.vstack


def _split_along(axis: builtins.int) -> Callable[..., tuple[Tensor, ...]]:
    def function(ary: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
        x = as_tensor(ary)
        return base.split(x, indices_or_sections, builtins.min(axis, x.ndim - 1))

    function.__doc__ = f"Parts along axis {axis}."
    return function


hsplit, vsplit, dsplit = _split_along(1), _split_along(0), _split_along(2)


def _flipped(axis: builtins.int) -> Callable[[Any], Tensor]:
    def function(m: Any) -> Tensor:
        return base.flip(m, axis)

    function.__doc__ = f"Axis {axis} in reverse order."
    return function


fliplr, flipud = _flipped(1), _flipped(0)


def ndim(a: Any) -> builtins.int:
    """The number of axes."""
    return as_tensor(a).ndim


def shape(a: Any) -> tuple[builtins.int, ...]:
    """The lengths of the axes."""
    return tuple(as_tensor(a).shape)


def size(a: Any, axis: builtins.int | None = None) -> builtins.int:
    """The number of elements, in all or along an axis."""
    lengths = as_tensor(a).shape
    return math.prod(lengths) if axis is None else lengths[axis]


def isscalar(element: Any) -> bool:
    """Whether it is a number or a text, and no array."""
    return isinstance(element, (bool, int, float, complex, str, bytes))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return tenon.is_complex(as_tensor(x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Tensor:
    """Where the imaginary part is not zero."""
    value = as_tensor(x)
    if not iscomplexobj(value):
        return _core.operator("zeros_like")(value, dtype=tenon.bool)
    return _core.operator("imag")(value) != 0


def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """The real part, where all imaginary parts are below `tol` times the dtype's epsilon (or `tol` itself if it is
    at most 1)."""
    x = as_tensor(a)
    if not iscomplexobj(x):
        return x
    limit = tol * float(tenon.finfo(x.dtype).eps) if tol > 1 else tol
    return _core.operator("real")(x) if bool((_core.operator("imag")(x).abs() < limit).all()) else x


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged."""
    return tenon.matrix_transpose(as_tensor(x))


def rollaxis(a: Any, axis: builtins.int, start: builtins.int = 0) -> Tensor:
    """An axis moved before the axis `start`."""
    x = as_tensor(a)
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return base.moveaxis(x, axis, start - 1 if axis < start else start)


def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements in another shape, repeated as often as it takes."""
    lengths = (new_shape,) if isinstance(new_shape, builtins.int) else tuple(new_shape)
    flat, wanted = as_tensor(a).reshape(-1), math.prod(lengths)
    if flat.shape[0] == 0:
        return _core.operator("zeros")(lengths, dtype=flat.dtype)
    times = -(-wanted // flat.shape[0])
    return base.tile(flat, (builtins.max(times, 1),))[:wanted].reshape(lengths)


def append(arr: Any, values: Any, axis: builtins.int | None = None) -> Tensor:
    """Values behind those of `arr`; both flat without an axis."""
    if axis is None:
        return base.concatenate([base.ravel(arr), base.ravel(values)])
    return base.concatenate([arr, values], axis)


def _positions(obj: Any, extent: builtins.int) -> list[builtins.int]:
    """What an index object selects along an axis, as indices that are not negative."""
    if isinstance(obj, slice):
        return list(range(*obj.indices(extent)))
    if isinstance(obj, builtins.int):
        obj = [obj]
    x = as_tensor(obj)
    if x.dtype == tenon.bool:
        return [i for i, each in enumerate(x.tolist()) if each]
    positions = [builtins.int(each) for each in x.reshape(-1).tolist()]
    for each in positions:
        if not -extent <= each <= extent:
            raise IndexError(f"expected an index within axis of size {extent}, got {each}")
    return [each + extent if each < 0 else each for each in positions]


def delete(arr: Any, obj: Any, axis: builtins.int | None = None) -> Tensor:
    """Without the elements at indices along an axis; of the flat tensor without one."""
    x = as_tensor(arr)
    if axis is None:
        x, axis = x.reshape(-1), 0
    gone = set(_positions(obj, x.shape[axis]))
    kept = [i for i in range(x.shape[axis]) if i not in gone]
    return base.take(x, _core.tensor(kept, dtype=_core.int64), axis)


def insert(arr: Any, obj: Any, values: Any, axis: builtins.int | None = None) -> Tensor:
    """With values before the elements at indices along an axis; of the flat tensor without one."""
    x = as_tensor(arr)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis %= x.ndim
    before = _positions(obj, x.shape[axis])
    new = as_tensor(values).to(dtype=x.dtype)
    if isinstance(obj, builtins.int) and new.ndim == x.ndim - 1 and x.ndim > 1:
        new = base.expand_dims(new, axis)
    lengths = list(x.shape)
    lengths[axis] = len(before) if not isinstance(obj, builtins.int) or new.ndim < x.ndim else -1
    if lengths[axis] == -1:
        lengths[axis] = new.shape[axis]
    if isinstance(obj, builtins.int) and x.ndim == 1 and new.ndim == 1:
        lengths[0] = new.shape[0]
    new = base.broadcast_to(new, lengths)
    if len(before) == 1:
        before = before * lengths[axis]
    # Where the new ones and the old ones end up: equal positions keep the order of `obj`.
    order = sorted(range(len(before)), key=before.__getitem__)
    source: list[builtins.int] = []
    following = iter(order)
    pending = next(following, None)
    for i in range(x.shape[axis] + 1):
        while pending is not None and before[pending] == i:
            source.append(x.shape[axis] + pending)
            pending = next(following, None)
        if i < x.shape[axis]:
            source.append(i)
    both = base.concatenate([x, new], axis)
    return base.take(both, _core.tensor(source, dtype=_core.int64), axis)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Differences of neighbours in the flat array, between what is given for the ends."""
    parts = [base.diff(base.ravel(ary))]
    if to_begin is not None:
        parts.insert(0, base.ravel(to_begin).to(dtype=parts[0].dtype))
    if to_end is not None:
        parts.append(base.ravel(to_end).to(dtype=parts[0].dtype))
    return base.concatenate(parts)


def trim_zeros(filt: Any, trim: str = "fb") -> Tensor:
    """A vector without the zeros in front and behind."""
    x = as_tensor(filt)
    found = (x != 0).tolist()
    first = found.index(True) if True in found else len(found)
    last = len(found) - found[::-1].index(True) if True in found else first
    return x[first if "f" in trim.lower() else 0 : last if "b" in trim.lower() else len(found)]


def tri(
    N: builtins.int, M: builtins.int | None = None, k: builtins.int = 0, dtype: Any = float
) -> Tensor:
    """Ones at and below a diagonal."""
    return _core.operator("tril")(base.ones((N, N if M is None else M), dtype), k)


def block(arrays: Any) -> Tensor:
    """Nested lists of blocks, joined along the last axis, then along the one before, and so on."""

    def depth_of(value: Any) -> builtins.int:
        return 1 + builtins.max(map(depth_of, value)) if isinstance(value, list) else 0

    def widest(value: Any) -> builtins.int:
        return (
            builtins.max(map(widest, value)) if isinstance(value, list) else as_tensor(value).ndim
        )

    depth = depth_of(arrays)
    axes = builtins.max(depth, widest(arrays))

    def join(value: Any, level: builtins.int) -> Tensor:
        if level == depth:
            x = as_tensor(value)
            return x.reshape((1,) * (axes - x.ndim) + tuple(x.shape))
        return base.concatenate([join(each, level + 1) for each in value], level - depth)

    return join(arrays, 0)


def copyto(dst: Tensor, src: Any, where: Any = True) -> None:
    """Writes `src` into `dst`, where the mask holds."""
    value = base.broadcast_to(as_tensor(src).to(dtype=dst.dtype), tuple(dst.shape))
    if where is not True:
        value = _core.operator("where")(as_tensor(where), value, dst)
    _core.operator("clone")(value, out=dst)
