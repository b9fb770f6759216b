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
from tenon.compat.numpy._convert import (
    as_tensor,
    common_dtype,
    dtype_of,
    kind_of,
    promote,
    unified,
)

__all__ = """append asanyarray atleast_1d atleast_2d atleast_3d block column_stack delete dsplit dstack
ediff1d fliplr flipud from_dlpack frombuffer hsplit insert iscomplex iscomplexobj isrealobj isscalar
ndim isreal real_if_close resize rollaxis row_stack shape size trim_zeros vsplit tri matrix_transpose
can_cast result_type promote_types copyto""".split()

asanyarray = base.asarray


def from_dlpack(x: Any, device: Any = None, copy: Any = None) -> Tensor:
    """The array of another library, sharing its memory where that is possible."""
    return tenon.from_dlpack(x, device=device, copy=copy)


def frombuffer(
    buffer: Any, dtype: Any = None, count: builtins.int = -1, offset: builtins.int = 0
) -> Tensor:
    """The bytes of a buffer as a vector."""
    wanted = _core.float64 if dtype is None else dtype_of(dtype)
    shape = None if count == -1 else (count,)
    return tenon.frombuffer(buffer, dtype=wanted, shape=shape, offset=offset)


def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype that holds both."""
    return promote(dtype_of(type1), dtype_of(type2))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of arrays, dtypes and numbers together."""
    given = []
    for each in arrays_and_dtypes:
        is_dtype = isinstance(each, (type, str)) or type(each).__name__.lower().endswith("dtype")
        given.append(_core.operator("zeros")([], dtype=dtype_of(each)) if is_dtype else each)
    return common_dtype(given)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether one dtype may become another: "no" or "equiv" only the same, "safe" where nothing is lost,
    "same_kind" within a kind or to a wider one, "unsafe" always."""
    if type(from_) in (bool, builtins.int, float, complex):
        raise TypeError("can_cast(): expected a dtype or an array, got one of Python's numbers")
    a = from_.dtype if isinstance(from_, Tensor) else None
    a = dtype_of(getattr(from_, "dtype", from_)) if a is None else a
    b = dtype_of(to)
    if casting in ("no", "equiv"):
        return a == b
    if casting == "safe":
        return promote(a, b) == b
    if casting == "same_kind":
        kinds = [("u" if each.name.startswith("uint") else kind_of(each)) for each in (a, b)]
        return "buifc".index(kinds[0]) <= "buifc".index(kinds[1])
    if casting == "unsafe":
        return True
    raise ValueError(
        f"can_cast(): expected casting 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got {casting!r}"
    )


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
        return getattr(tenon, name)(unified([as_tensor(each) for each in tup]))

    function.__doc__ = f"tenon.{name}."
    return function


column_stack, dstack, row_stack = _of_list("column_stack"), _of_list("dstack"), base.vstack


def _split_along(axis: builtins.int) -> Callable[..., list[Tensor]]:
    def function(ary: Any, indices_or_sections: Any) -> list[Tensor]:
        x = as_tensor(ary)
        if x.ndim <= (axis if axis == 2 else 0) or (axis == 0 and x.ndim < 2):
            raise ValueError(
                f"expected at least {builtins.max(axis + 1, 2) if axis != 1 else 1} axes, got {x.ndim}"
            )
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


def size(a: Any, axis: Any = None) -> builtins.int:
    """The number of elements, in all or along axes."""
    lengths = as_tensor(a).shape
    if axis is None:
        return math.prod(lengths)
    axes = [axis] if isinstance(axis, builtins.int) else axis
    return math.prod(lengths[each] for each in axes)


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


def isreal(x: Any) -> Tensor:
    """Where the imaginary part is zero."""
    return ~iscomplex(x)


def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """The real part, where all imaginary parts are below `tol` times the dtype's epsilon (or `tol` itself if it is
    at most 1)."""
    x = as_tensor(a)
    if not iscomplexobj(x):
        return x
    limit = tol * float(tenon.finfo(x.dtype).eps) if tol > 1 else tol
    return base.real(x) if bool((_core.operator("imag")(x).abs() < limit).all()) else x


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


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """Without the zeros in front and behind, along all axes or some."""
    x = as_tensor(filt)
    trim = trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros(): expected trim 'f', 'b' or 'fb', got {trim!r}")
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, builtins.int) else axis
    chosen = [each % x.ndim for each in axes]
    kept: list[Any] = [slice(None)] * x.ndim
    for each in chosen:
        others = [i for i in range(x.ndim) if i != each]
        line = (x != 0).any(others) if others else x != 0
        found = line.tolist()
        first = found.index(True) if True in found else len(found)
        last = len(found) - found[::-1].index(True) if True in found else first
        kept[each] = slice(first if "f" in trim else 0, last if "b" in trim else len(found))
    return x[tuple(kept)]


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


def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Writes `src` into `dst`, where the mask holds."""
    can_cast(tenon.bool, tenon.bool, casting)
    if not isinstance(dst, Tensor):
        raise TypeError(f"copyto(): expected a tensor to write to, got {type(dst).__name__}")
    if type(src) in (bool, builtins.int, float, complex):
        common = common_dtype([dst, src])
        is_allowed = casting == "unsafe" or kind_of(common) == kind_of(dst.dtype)
    else:
        is_allowed = can_cast(as_tensor(src).dtype, dst.dtype, casting)
    if not is_allowed:
        raise TypeError(f"copyto(): expected values that {dst.dtype} holds by casting={casting!r}")
    value = base.broadcast_to(as_tensor(src).to(dtype=dst.dtype), tuple(dst.shape))
    if where is not True:
        value = _core.operator("where")(as_tensor(where), value, dst)
    _core.operator("clone")(value, out=dst)
