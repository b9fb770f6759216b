# SPDX-License-Identifier: Apache-2.0
"""Different elements and how many there are: unique, bincount and histograms. Sizes of results depend on
the elements, so that these functions wait for the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.array_api import _Groups, _groups
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors


def _as_rows(x):
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


def _starts(values):
    """Whether each row of `values` differs from the one before it."""
    rows = _as_rows(values)
    changed = (rows[1:] != rows[:-1]).any(1)
    first = _operator("ones")([min(1, values.shape[0])], dtype="bool", device=values.device)
    return _operator("concat")([first, changed])


def _row_groups(x):
    """The rows of `x` in lexicographic order, as _groups() has elements in theirs: by stable sorts, the
    first column last."""
    rows = _as_rows(x)
    order = _operator("arange")(x.shape[0], device=x.device)
    for column in range(rows.shape[1] - 1, -1, -1):
        key = rows[:, column][order]
        order = order[_operator("sort_with_indices")(key, 0).indices]
    values = _operator("index_select")(x, order, 0)
    is_first = _starts(values)
    return _Groups(values, order, is_first, _operator("nonzero")(is_first)[:, 0])


def _counts_up_to(first, total):
    end = _operator("full")([1], total, dtype="int64", device=first.device)
    return _operator("diff")(_operator("concat")([first, end]))


def _some(results, wanted):
    kept = [result for result, is_wanted in zip(results, wanted, strict=True) if is_wanted]
    return kept[0] if len(kept) == 1 else tuple(kept)


def unique(
    x: Tensor,
    /,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements of `x` in ascending order, or with `axis` the different slices along it in
    lexicographic order.

    After them, as far as requested: where each is first, which of them each element or slice of `x` is,
    and how many there are of each, as int64. Every NaN is different."""
    if axis is None:
        groups = _groups(x)
        inverse_shape = x.shape
    else:
        x = _operator("movedim")(x, axis, 0)
        groups = _row_groups(x)
        inverse_shape = x.shape[:1]
    values = _operator("index_select")(groups.values, groups.first, 0)
    if axis is not None:
        values = _operator("movedim")(values, 0, axis)
    index = groups.order[groups.first]
    inverse = _inverse_of_rows(groups, inverse_shape) if return_inverse else None
    counts = _counts_up_to(groups.first, groups.order.shape[0]) if return_counts else None
    return _some(
        (values, index, inverse, counts), (True, return_index, return_inverse, return_counts)
    )


def _inverse_of_rows(groups, shape):
    ranks = _operator("cumsum")(groups.is_first.to("int64"), 0) - 1
    return _operator("scatter")(_operator("zeros_like")(ranks), groups.order, ranks).reshape(shape)


def unique_consecutive(
    x: Tensor,
    /,
    *,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements of `x`, in row-major order, that differ from the one before, or with `axis` the slices
    along it that do.

    After them, as far as requested: which of them each element or slice is, and how many there are of
    each, as int64."""
    rows = x.reshape(-1) if axis is None else _operator("movedim")(x, axis, 0)
    is_first = _starts(rows)
    first = _operator("nonzero")(is_first)[:, 0]
    values = _operator("index_select")(rows, first, 0)
    if axis is not None:
        values = _operator("movedim")(values, 0, axis)
    inverse = _operator("cumsum")(is_first.to("int64"), 0) - 1
    inverse = inverse.reshape(x.shape) if axis is None else inverse
    counts = _counts_up_to(first, rows.shape[0])
    return _some((values, inverse, counts), (True, return_inverse, return_counts))


def bincount(x: Tensor, /, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number from 0 on is in the vector `x`, as int64, or the sums of the `weights` of
    its elements; for `minlength` numbers at least."""
    if x.ndim != 1 or not x.dtype.is_integer:
        raise ValueError(
            f"bincount: expected a vector of integers, got shape {list(x.shape)} and {x.dtype}"
        )
    if minlength < 0:
        raise ValueError(f"bincount: expected a minlength of at least 0, got {minlength}")
    if weights is not None and tuple(weights.shape) != tuple(x.shape):
        raise ValueError(
            f"bincount: expected weights of shape {list(x.shape)}, got {list(weights.shape)}"
        )
    if x.numel() and x.min().item() < 0:
        raise ValueError(f"bincount: expected numbers of at least 0, got {x.min().item()}")
    length = max(minlength, int(x.max().item()) + 1 if x.numel() else 0)
    if weights is None:
        weights = _operator("ones")([], dtype="int64", device=x.device).expand(x.shape)
    zeros = _operator("zeros")([length], dtype=weights.dtype, device=x.device)
    return _operator("index_add")(zeros, x, weights, 0)


def histogram_bin_edges(
    x: Tensor, /, bins: int = 10, range: tuple[float, float] | None = None
) -> Tensor:
    """The bounds of `bins` intervals of equal length from range[0] to range[1], by default from the smallest
    to the largest element. Where the two are equal, from 1/2 below to 1/2 above."""
    low, high = _bounds(x, bins, range)
    return _operator("linspace")(low, high, bins + 1, dtype=_float_of(x), device=x.device)


def _float_of(x):
    return x.dtype if x.dtype.is_floating_point else _core.float32


def _bounds(x, bins, range):
    if bins < 1:
        raise ValueError(f"histogram: expected at least one bin, got {bins}")
    if range is None:
        low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
    else:
        low, high = range
    if not (low <= high and abs(low) < float("inf") and abs(high) < float("inf")):
        raise ValueError(f"histogram: expected a finite range, got {low} to {high}")
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _bin_of(x, edges):
    """The bin of each element of the vector `x`, and whether it lies in one. The last bin holds its upper
    bound, too."""
    last = edges.shape[0] - 2
    at = _operator("searchsorted")(edges, x, right=True) - 1
    return _operator("clip")(at, 0, last), (x >= edges[0]) & (x <= edges[last + 1])


def histogram(
    x: Tensor,
    /,
    bins: int | Tensor = 10,
    *,
    range: tuple[float, float] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """How many elements of `x` lie in each bin, and the bounds of the bins.

    `bins` is a number of bins of equal length, as histogram_bin_edges() makes them, or a vector of
    ascending bounds. A bin holds its lower bound, and the last one its upper bound as well; what lies
    outside is left out. Counts are int64; with `weights`, of the shape of `x`, sums of those. With
    `density` they are divided by their sum and by the lengths of the bins."""
    edges = bins if isinstance(bins, Tensor) else histogram_bin_edges(x, bins, range)
    counts, all_edges = histogramdd(x.reshape([-1, 1]), [edges], weights=weights, density=density)
    return counts, all_edges[0]


def histogramdd(
    x: Tensor,
    /,
    bins: int | Sequence[int | Tensor] = 10,
    *,
    range: Sequence[tuple[float, float]] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """How many of the points that are the rows of `x` lie in each box of a grid, and the bounds of the grid
    along each column; otherwise as histogram()."""
    if x.ndim != 2:
        raise ValueError(f"histogramdd: expected points of shape [n, d], got shape {list(x.shape)}")
    columns = x.shape[1]
    each = [bins] * columns if isinstance(bins, int) else list(bins)
    if len(each) != columns or (range is not None and len(range) != columns):
        raise ValueError(
            f"histogramdd: expected bins and ranges for {columns} columns, got {len(each)} and "
            f"{len(range) if range is not None else 'no'}"
        )
    place = _operator("zeros")([x.shape[0]], dtype="int64", device=x.device)
    is_inside = _operator("ones")([x.shape[0]], dtype="bool", device=x.device)
    edges, shape = [], []
    for column, wanted in enumerate(each):
        values = x[:, column]
        bounds = range[column] if range is not None else None
        edges.append(
            wanted if isinstance(wanted, Tensor) else histogram_bin_edges(values, wanted, bounds)
        )
        if edges[-1].ndim != 1 or edges[-1].shape[0] < 2:
            raise ValueError(
                f"histogramdd: expected a vector of at least two bounds, got shape {list(edges[-1].shape)}"
            )
        at, lies_inside = _bin_of(values, edges[-1])
        shape.append(edges[-1].shape[0] - 1)
        place = place * shape[-1] + at
        is_inside = is_inside & lies_inside
    size = math.prod(shape)
    place = _operator("where")(is_inside, place, size)  # behind the last box
    flat_weights = None if weights is None else weights.reshape(-1)
    counts = bincount(place, flat_weights, size + 1)[:size].reshape(shape)
    if density:
        # Whole counts have no digits of their own: the result has those of the bounds.
        if not counts.dtype.is_floating_point:
            counts = counts.to(functools.reduce(_core._promote, map(_float_of, edges)))
        counts = counts / counts.sum()
        for axis, bound in enumerate(edges):
            lengths = _operator("diff")(bound)
            along = [1] * columns
            along[axis] = -1
            counts = counts / lengths.reshape(along)
    return counts, edges


_expect_tensors(globals())
