# SPDX-License-Identifier: Apache-2.0
"""Tensors joined, split and combined along axes that the names say, as in NumPy and PyTorch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors


def _each(function, tensors):
    """The function's result for one tensor, or for each of several."""
    results = tuple(function(each) for each in tensors)
    return results[0] if len(results) == 1 else results


def _as_1d(x):
    return x.reshape(1) if x.ndim == 0 else x


def _as_2d(x):
    return x.reshape(1, -1) if x.ndim < 2 else x


def _as_3d(x):
    return x.reshape(1, -1, 1) if x.ndim < 2 else x.unsqueeze(-1) if x.ndim == 2 else x


def atleast_1d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Tensors with one axis at least: a number becomes a vector of one element."""
    return _each(_as_1d, tensors)


def atleast_2d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Tensors with two axes at least: a vector becomes a row, of shape [1, n]."""
    return _each(_as_2d, tensors)


def atleast_3d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Tensors with three axes at least: a vector becomes [1, n, 1], and a matrix [m, n, 1]."""
    return _each(_as_3d, tensors)


def dstack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors one after the other along axis 2; vectors and matrices as atleast_3d() sees them."""
    return _operator("concat")([_as_3d(each) for each in tensors], 2)


def column_stack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors one after the other along axis 1; a vector or a number is one column."""
    return _operator("concat")(
        [each.reshape([-1, 1]) if each.ndim < 2 else each for each in tensors], 1
    )


def row_stack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors one after the other along axis 0; a vector is one row."""
    return _operator("concat")([_as_2d(each) for each in tensors], 0)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices along its diagonal and zeros elsewhere. A vector is a row, and a
    number a matrix of one element."""
    if not tensors:
        raise ValueError("block_diag: expected at least one tensor, got none")
    matrices = [_as_2d(each) for each in tensors]
    for each in matrices:
        if each.ndim != 2:
            raise ValueError(
                f"block_diag: expected tensors of at most two axes, got shape {list(each.shape)}"
            )
    width = sum(each.shape[1] for each in matrices)
    rows, before = [], 0
    for each in matrices:
        after = width - before - each.shape[1]
        rows.append(_operator("pad")(each, [0, 0, before, after]))
        before += each.shape[1]
    return _operator("concat")(rows, 0)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element of each vector, as the rows of a matrix in lexicographic order of their
    indices. Of one vector the vector itself."""
    for each in tensors:
        if each.ndim != 1:
            raise ValueError(f"cartesian_prod: expected vectors, got shape {list(each.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = _operator("meshgrid")(list(tensors), "ij")
    return _operator("stack")([each.reshape(-1) for each in grids], -1)


def combinations(x: Tensor, /, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of the vector `x`, as the rows of a matrix in the order of
    itertools.combinations(), or of itertools.combinations_with_replacement()."""
    if x.ndim != 1 or r < 0:
        raise ValueError(
            f"combinations: expected a vector and r of at least 0, got shape {list(x.shape)} and r {r}"
        )
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(x.shape[0]), r))
    flat = [index for row in rows for index in row]
    indices = _core.tensor(flat, dtype="int64", device=x.device).reshape([len(rows), r])
    return _operator("index_select")(x, indices, 0)


def tensor_split(
    x: Tensor, indices_or_sections: int | Sequence[int], /, axis: int = 0
) -> tuple[Tensor, ...]:
    """Parts of `x` along `axis`, views: so many of nearly equal length, the first ones longer by one, or those
    between the given indices, which count and are clamped as in slices."""
    if x.ndim == 0:
        raise ValueError("tensor_split: expected a tensor with an axis to split, got shape []")
    length = x.shape[axis]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections < 1:
            raise ValueError(f"tensor_split: expected at least one section, got {sections}")
        small, longer = divmod(length, sections)
        bounds = [index * small + min(index, longer) for index in range(sections + 1)]
    else:
        bounds = [0, *(int(index) for index in indices_or_sections), length]
    return tuple(
        _operator("slice")(x, [axis], [start], [stop]) for start, stop in itertools.pairwise(bounds)
    )


def hsplit(x: Tensor, indices_or_sections: int | Sequence[int], /) -> tuple[Tensor, ...]:
    """tensor_split() along axis 1; of a vector along its only axis. Sections must be of equal length."""
    return _split_evenly("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1, 1)


def vsplit(x: Tensor, indices_or_sections: int | Sequence[int], /) -> tuple[Tensor, ...]:
    """tensor_split() along axis 0 of a tensor with two axes at least. Sections must be of equal length."""
    return _split_evenly("vsplit", x, indices_or_sections, 0, 2)


def dsplit(x: Tensor, indices_or_sections: int | Sequence[int], /) -> tuple[Tensor, ...]:
    """tensor_split() along axis 2 of a tensor with three axes at least. Sections must be of equal length."""
    return _split_evenly("dsplit", x, indices_or_sections, 2, 3)


def _split_evenly(name, x, indices_or_sections, axis, ndim):
    if x.ndim < ndim:
        raise ValueError(f"{name}: expected at least {ndim} axes, got shape {list(x.shape)}")
    length = x.shape[axis]
    if isinstance(indices_or_sections, int) and (
        indices_or_sections < 1 or length % indices_or_sections
    ):
        raise ValueError(
            f"{name}: expected a number of sections that divides {length}, got {indices_or_sections}; "
            "tensor_split makes unequal ones"
        )
    return tensor_split(x, indices_or_sections, axis)


def fliplr(x: Tensor, /) -> Tensor:
    """`x`, which has two axes at least, in reverse along axis 1."""
    if x.ndim < 2:
        raise ValueError(f"fliplr: expected at least 2 axes, got shape {list(x.shape)}")
    return _operator("flip")(x, [1])


def flipud(x: Tensor, /) -> Tensor:
    """`x`, which has an axis at least, in reverse along axis 0."""
    if x.ndim < 1:
        raise ValueError("flipud: expected at least 1 axis, got shape []")
    return _operator("flip")(x, [0])


def unravel_index(indices: Tensor, /, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Coordinates, one tensor for each axis, of the elements of a tensor of `shape` at flat indices.
    Negative indices count from the end."""
    size = math.prod(shape)
    at = _operator("where")(indices < 0, indices + size, indices)
    if at.numel() and not ((at >= 0) & (at < size)).all().item():
        raise IndexError(
            f"unravel_index: expected indices from {-size} to {size - 1} for shape {list(shape)}, "
            f"got {indices.min().item()} to {indices.max().item()}"
        )
    coordinates: list[Tensor] = []
    for extent in reversed(shape):
        coordinates.insert(0, at % extent)
        at = at // extent
    return tuple(coordinates)


_expect_tensors(globals())
