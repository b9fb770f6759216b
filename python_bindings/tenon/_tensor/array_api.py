# SPDX-License-Identifier: Apache-2.0
"""Functions of the array API standard that are made of operators, or are about dtypes.

docs/array_api.md says what of the standard is missing.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.dtypes import DTYPES, STORAGE, names_of
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors

_COMPONENTS = {"complex64": _core.float32, "complex128": _core.float64}
_KINDS = {
    "bool": names_of("bool"),
    "signed integer": names_of("signed"),
    "unsigned integer": names_of("unsigned"),
    "integral": names_of("signed", "unsigned"),
    "real floating": names_of("floating"),
    "complex floating": names_of("complex"),
    "numeric": names_of("signed", "unsigned", "floating", "complex"),
}


def _dtype_of(value):
    return value.dtype if isinstance(value, Tensor) else _core.dtype(value)


# -- dtypes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a floating dtype; of a complex one those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _core.dtype


@dataclass(frozen=True)
class IntegerInfo:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: _core.dtype


def finfo(type, /):
    """Limits of a floating dtype, or of a tensor's."""
    dtype = _dtype_of(type)
    row = DTYPES[_COMPONENTS.get(dtype.name, dtype).name]
    if row.limits is None:
        raise TypeError(f"finfo(): expected a floating or complex dtype, got {dtype}; use iinfo()")
    return FloatInfo(row.bits, *row.limits, row.dtype)


def iinfo(type, /):
    """Limits of an integer dtype, or of a tensor's."""
    dtype = _dtype_of(type)
    row = DTYPES[dtype.name]
    if row.limits or row.kind in ("bool", "complex"):
        raise TypeError(f"iinfo(): expected an integer dtype, got {dtype}; use finfo()")
    if dtype.is_signed:
        return IntegerInfo(row.bits, 2 ** (row.bits - 1) - 1, -(2 ** (row.bits - 1)), dtype)
    return IntegerInfo(row.bits, 2**row.bits - 1, 0, dtype)


def isdtype(dtype, kind):
    """Whether `dtype` is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real
    floating", "complex floating", "numeric", another dtype, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return _core.dtype(dtype).name in _KINDS[kind]
    if isinstance(kind, _core.dtype):
        return _core.dtype(dtype) == kind
    raise TypeError(
        f"isdtype(): expected a dtype, a tuple or one of {', '.join(_KINDS)}, got {kind!r}"
    )


def _with_number(dtype, number):
    """Numbers are weak: they change the kind of a dtype, and nothing else."""
    kinds = (bool, int, float, complex)
    wanted = next(i for i, kind in enumerate(kinds) if isinstance(number, kind))
    had = 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1 if dtype.is_integer else 0
    if wanted <= had:
        return dtype
    if wanted == 3:
        return _core.complex128 if dtype == _core.float64 else _core.complex64
    return _core.float32 if wanted == 2 else _core.int64


def result_type(*arrays_and_dtypes):
    """The dtype of what the arguments, tensors, dtypes and numbers, give together."""
    numbers = [each for each in arrays_and_dtypes if isinstance(each, (int, float, complex))]
    dtypes = [
        _dtype_of(each) for each in arrays_and_dtypes if not isinstance(each, (int, float, complex))
    ]
    if not dtypes:
        raise ValueError("result_type(): expected at least one tensor or dtype, got none")
    stored = next((each for each in dtypes if each.name in STORAGE), None)
    for each in (*dtypes, *numbers) if stored else ():
        if each != stored or not isinstance(each, _core.dtype):
            raise TypeError(
                f"result_type(): expected nothing but {stored}, which is stored only, beside it, got "
                f"{each}; convert one of them"
            )
    result = dtypes[0]
    for each in dtypes[1:]:
        result = _core._promote(result, each)
    for number in numbers:
        result = _with_number(result, number)
    return result


def can_cast(from_, to, /):
    """Whether promotion turns the dtype `from_`, or that of a tensor, into `to`."""
    source, to = _dtype_of(from_), _core.dtype(to)
    if source.name in STORAGE or to.name in STORAGE:
        return source == to
    return _core._promote(source, to) == to


def astype(x, dtype, /, *, copy=True, device=None):
    """`x` in another dtype; `x` itself if nothing changes and `copy` is false."""
    return x.to(dtype=dtype, device=device, copy=copy)


# -- shapes ----------------------------------------------------------------------------------------


def expand_dims(x, /, axis=0):
    """`x` with a new axis of length 1 at `axis` of the result."""
    return _operator("unsqueeze")(x, axis)


def permute_dims(x, /, axes):
    """`x` with its axes in another order."""
    return _operator("permute")(x, axes)


def matrix_transpose(x, /):
    """`x` with its last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): expected at least 2 axes, got {x.ndim}")
    return x.mT


def moveaxis(x, source, destination, /):
    """`x` with axes `source` moved to `destination`; the others keep their order."""
    return _operator("movedim")(x, source, destination)


def broadcast_to(x, /, shape):
    """`x` seen with a shape that it broadcasts to. Do not write to the result."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"broadcast_to(): expected extents that are not negative, got {shape}")
    return _operator("expand")(x, shape)


def broadcast_arrays(*arrays):
    """The arguments seen with the shape that they have together."""
    return tuple(_operator("broadcast_tensors")(arrays))


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes have together."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, rank - len(shape)):
            if extent != 1 and result[axis] not in (1, extent):
                raise ValueError(
                    f"broadcast_shapes(): expected shapes that broadcast, got "
                    f"{', '.join(map(str, shapes))}: extents {result[axis]} and {extent} differ, "
                    f"and neither is 1"
                )
            if extent != 1:
                result[axis] = extent
    return tuple(result)


def unstack(x, /, *, axis=0):
    """The parts of `x` along an axis, without that axis."""
    return tuple(_operator("unbind")(x, axis))


def take(x, indices, /, *, axis=None):
    """Elements of `x` along an axis, which only a vector may leave out."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): expected an axis for a tensor of {x.ndim} axes, got none")
        axis = 0
    return _operator("index_select")(x, indices, axis)


# -- scans -----------------------------------------------------------------------------------------


def _cumulative(function, scan, neutral, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim != 1:
            raise ValueError(
                f"{function}(): expected an axis for a tensor of {x.ndim} axes, got none"
            )
        axis = 0
    result = _operator(scan)(x if dtype is None else x.to(dtype=dtype), axis)
    if dtype is not None:
        result = result.to(dtype=dtype)  # small integers have added up in a wider dtype
    if not include_initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    initial = _operator("full")(shape, neutral, dtype=result.dtype, device=x.device)
    return _operator("concat")([initial, result], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Sums of the first elements of `x` along an axis, which only a vector may leave out. With
    `include_initial` the first result is 0, the sum of no elements."""
    return _cumulative("cumulative_sum", "cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Products of the first elements of `x` along an axis, which only a vector may leave out. With
    `include_initial` the first result is 1, the product of no elements."""
    return _cumulative("cumulative_prod", "cumprod", 1, x, axis, dtype, include_initial)


# -- sets ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Groups:
    """The elements of a tensor in order, and where the different ones among them begin."""

    values: Tensor  # sorted
    order: Tensor  # where they were in the flat tensor
    is_first: Tensor  # whether an element differs from the one before it
    first: Tensor  # where it does


def _sorted(flat):
    """Elements in ascending order, complex numbers by their real and then their imaginary parts,
    and where they were."""
    if not flat.dtype.is_complex:
        return _operator("sort_with_indices")(flat, 0)
    argsort = _operator("argsort")  # stable
    order = argsort(_operator("imag")(flat), 0)
    order = order[argsort(_operator("real")(flat)[order], 0)]
    return flat[order], order


def _groups(x):
    values, order = _sorted(x.reshape(-1))
    is_first = _operator("ones")(values.shape, dtype="bool", device=x.device)
    if values.numel() > 1:
        is_first[1:] = values[1:] != values[:-1]  # every NaN is different
    return _Groups(values, order, is_first, _operator("nonzero")(is_first)[:, 0])


def _counts_of(groups):
    end = _operator("full")((1,), groups.values.numel(), dtype="int64", device=groups.first.device)
    return _operator("diff")(_operator("concat")([groups.first, end]))


def _inverse_of(groups, shape):
    ranks = _operator("cumsum")(groups.is_first.to("int64"), 0) - 1
    return _operator("scatter")(_operator("zeros_like")(ranks), groups.order, ranks).reshape(shape)


class UniqueAll(NamedTuple):
    """Results of unique_all()."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Results of unique_counts()."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Results of unique_inverse()."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x, /):
    """The different elements of `x` in ascending order, where each is first in the flat tensor,
    which of them each element is, and how many there are of each."""
    groups = _groups(x)
    return UniqueAll(
        groups.values[groups.first],
        groups.order[groups.first],
        _inverse_of(groups, x.shape),
        _counts_of(groups),
    )


def unique_counts(x, /):
    """The different elements of `x` in ascending order, and how many there are of each."""
    groups = _groups(x)
    return UniqueCounts(groups.values[groups.first], _counts_of(groups))


def unique_inverse(x, /):
    """The different elements of `x` in ascending order, and which of them each element is."""
    groups = _groups(x)
    return UniqueInverse(groups.values[groups.first], _inverse_of(groups, x.shape))


def unique_values(x, /):
    """The different elements of `x` in ascending order."""
    groups = _groups(x)
    return groups.values[groups.first]


def isin(x1, x2, /, *, invert=False):
    """Whether each element of `x1` is among those of `x2`; with `invert`, whether it is not."""
    dtype = result_type(x1, x2)
    device = next(each.device for each in (x1, x2) if isinstance(each, Tensor))
    x1, x2 = (_core.asarray(each, dtype=dtype, device=device) for each in (x1, x2))
    if x2.numel() == 0:
        found = _operator("zeros")(x1.shape, dtype="bool", device=device)
    elif dtype.is_complex:  # there is no order to search by
        found = _operator("any")(x1.unsqueeze(-1) == x2.reshape(-1), -1)
    else:
        known = _operator("sort")(x2.reshape(-1), 0)
        at = _operator("clip")(_operator("searchsorted")(known, x1.reshape(-1)), 0, x2.numel() - 1)
        found = (known[at] == x1.reshape(-1)).reshape(x1.shape)
    return ~found if invert else found


# -- what there is -----------------------------------------------------------------------------------


class _Info:
    """What the namespace can do: the inspection interface of the standard."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self):
        return _core.tensor(0).device

    def devices(self):
        return list(_core.devices())

    def default_dtypes(self, *, device=None):
        return {
            "real floating": _core.float32,
            "complex floating": _core.complex64,
            "integral": _core.int64,
            "indexing": _core.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of the standard that are of a kind, by name."""
        integers = names_of("bool", "signed", "unsigned")
        standard = [*integers, "float32", "float64", *names_of("complex")]
        return {
            name: _core.dtype(name)
            for name in standard
            if kind is None or isdtype(_core.dtype(name), kind)
        }


def __array_namespace_info__():
    """What the namespace can do, as the array API standard asks for it."""
    return _Info()


__all__ = [
    "__array_namespace_info__",
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cumulative_prod",
    "cumulative_sum",
    "expand_dims",
    "finfo",
    "iinfo",
    "isdtype",
    "isin",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "result_type",
    "take",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
]


_expect_tensors(globals())
