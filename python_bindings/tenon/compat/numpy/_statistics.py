# SPDX-License-Identifier: Apache-2.0
"""NumPy's histograms, windows, convolutions, slopes and sets."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.numpy import _functions as base
from tenon.compat.numpy import _padding, _ufuncs
from tenon.compat.numpy import _reductions as reductions
from tenon.compat.numpy._convert import (
    as_float,
    as_tensor,
    common_dtype,
    dtype_of,
    kind_of,
    unified,
)

Axes = builtins.int | Sequence[builtins.int] | None

__all__ = """array_equiv bartlett bincount blackman convolve correlate cumulative_prod cumulative_sum
geomspace gradient hamming hanning histogram histogram2d histogram_bin_edges histogramdd interp
intersect1d kaiser setdiff1d setxor1d union1d unique_all unique_counts unique_inverse unique_values
unwrap""".split()

# -- numbers ----------------------------------------------------------------------------------------


def geomspace(
    start: Any,
    stop: Any,
    num: builtins.int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: builtins.int = 0,
) -> Tensor:
    """Numbers whose quotients are equal, from `start` to `stop` exactly."""
    low, high = base.broadcast_arrays(*unified([as_float(start), as_float(stop)]))
    if kind_of(low.dtype) == "c":
        raise TypeError(f"geomspace(): expected real numbers, got {low.dtype}")
    if bool(((low == 0) | (high == 0) | ((low < 0) != (high < 0))).any()):
        raise ValueError("geomspace(): expected ends of one sign that are not 0")
    sign, log10 = _core.operator("sign")(low), _core.operator("log10")
    result = sign * 10.0 ** base.linspace(log10(low.abs()), log10(high.abs()), num, endpoint)
    if num > 0:
        result[0] = low
        if num > 1 and endpoint:
            result[-1] = high
    result = base.moveaxis(result, 0, axis)
    return result if dtype is None else result.to(dtype=dtype_of(dtype))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether both have the same elements, broadcast."""
    x, y = unified([as_tensor(a1), as_tensor(a2)])
    try:
        return bool((x == y).all())
    except (ValueError, RuntimeError):
        return False


def unwrap(
    p: Any, discont: float | None = None, axis: builtins.int = -1, *, period: float = 2 * math.pi
) -> Tensor:
    """Angles without jumps of more than half a period."""
    given = as_tensor(p)
    is_whole = isinstance(period, builtins.int) and given.dtype.is_integer
    x = base.moveaxis(given if is_whole else as_float(given), axis, -1)
    limit = period / 2 if discont is None else discont
    step = base.diff(x)
    half = period // 2 if is_whole else period / 2
    wrapped = (step + half) % period - half
    if not is_whole or period % 2 == 0:  # both ends of the interval are the same angle
        wrapped = base.where((wrapped == -half) & (step > 0), half, wrapped)
    correction = base.where(step.abs() < limit, 0, wrapped - step)
    moved = base.concatenate([x[..., :1], x[..., 1:] + reductions.cumsum(correction, -1)], -1)
    moved = moved.to(dtype=given.dtype) if is_whole else moved
    return base.moveaxis(moved, -1, axis)


# -- products ---------------------------------------------------------------------------------------


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors."""
    x, y = (each.reshape(1) if each.ndim == 0 else each for each in map(as_tensor, (a, v)))
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"convolve(): expected vectors, got {x.ndim} and {y.ndim} axes")
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return correlate(x, base.flip(y).conj() if tenon.is_complex(y) else base.flip(y), mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The correlation of two vectors, the second one conjugated."""
    x, y = (each.reshape(1) if each.ndim == 0 else each for each in map(as_tensor, (a, v)))
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"correlate(): expected vectors, got {x.ndim} and {y.ndim} axes")
    y = y.conj() if tenon.is_complex(y) else y
    dtype = common_dtype([x, y])
    n, m = x.shape[0], y.shape[0]
    if n == 0 or m == 0:
        raise ValueError("correlate(): expected vectors with elements, got an empty one")
    padded = _padding.pad(x.to(dtype=dtype), (m - 1, m - 1))
    windows = base.arange(n + m - 1).reshape((-1, 1)) + base.arange(m).reshape((1, -1))
    full = base.take(padded, windows.reshape(-1)).reshape((n + m - 1, m)) @ y.to(dtype=dtype)
    if mode == "full":
        return full
    longer, shorter = builtins.max(n, m), builtins.min(n, m)
    if mode == "valid":
        return full[shorter - 1 : longer]
    if mode == "same":
        first = (shorter - 1) // 2 if n >= m else shorter // 2
        return full[first : first + longer]
    raise ValueError(f"expected mode 'full', 'same' or 'valid', got {mode!r}")


# -- windows ----------------------------------------------------------------------------------------


def _cosines(*weights: float) -> Callable[[builtins.int], Tensor]:
    def function(M: builtins.int) -> Tensor:
        if M <= 1:
            return base.ones((builtins.max(M, 0),))
        angle = base.arange(M, dtype=float) * (2 * math.pi / (M - 1))
        total = base.zeros((M,))
        for k, weight in enumerate(weights):
            total = total + weight * _ufuncs.FUNCTIONS["cos"](k * angle)
        return total

    function.__doc__ = "A window of cosines."
    return function


hanning, hamming = _cosines(0.5, -0.5), _cosines(0.54, -0.46)
blackman = _cosines(0.42, -0.5, 0.08)


def bartlett(M: builtins.int) -> Tensor:
    """A triangular window."""
    if M <= 1:
        return base.ones((builtins.max(M, 0),))
    return 1 - (base.arange(M, dtype=float) * (2 / (M - 1)) - 1).abs()


def kaiser(M: builtins.int, beta: float) -> Tensor:
    """Kaiser's window."""
    if M <= 1:
        return base.ones((builtins.max(M, 0),))
    ratio = base.arange(M, dtype=float) * (2 / (M - 1)) - 1
    bessel = _core.operator("i0")
    return bessel(
        beta * _ufuncs.FUNCTIONS["sqrt"](_core.operator("maximum")(1 - ratio * ratio, 0.0))
    ) / bessel(as_tensor(float(beta)))


# -- counting ---------------------------------------------------------------------------------------


def bincount(x: Any, weights: Any = None, minlength: builtins.int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights in float64."""
    wanted = None if weights is None else as_float(weights).to(dtype=_core.float64)
    numbers = as_tensor(x)
    if numbers.dtype == tenon.bool or numbers.numel() == 0:
        numbers = numbers.to(dtype=_core.int64)
    return tenon.bincount(numbers, wanted, minlength)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None) -> Tensor:
    """The edges of histogram()."""
    if isinstance(bins, str):
        raise NotImplementedError(
            f"histogram_bin_edges(): expected a number of bins or their edges, got the rule {bins!r}"
        )
    if not isinstance(bins, builtins.int):
        edges = as_tensor(bins)
        if bool((edges[1:] < edges[:-1]).any()):
            raise ValueError("histogram_bin_edges(): expected edges in ascending order")
        return edges
    if bins < 1:
        raise ValueError(f"histogram_bin_edges(): expected at least one bin, got {bins}")
    x = as_float(a)
    empty = 0 in tuple(x.shape)
    low, high = (
        range if range is not None else (0.0, 1.0) if empty else (float(x.min()), float(x.max()))
    )
    if low > high:
        raise ValueError(f"histogram_bin_edges(): expected an ascending range, got {range}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return base.linspace(low, high, bins + 1, dtype=x.dtype)


def _counts(values: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each value and whether it is in one; the last bin holds its right edge."""
    edges, values = unified([edges, values])
    bins = base.searchsorted(edges, values, "right") - 1
    bins = base.where(values == edges[-1], edges.shape[0] - 2, bins)
    return bins, (bins >= 0) & (bins < edges.shape[0] - 1)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """How many elements are between each two edges; (counts, edges)."""
    x = base.ravel(a)
    edges = histogram_bin_edges(x, bins, range)
    chosen, is_inside = _counts(x, edges)
    selected = base.take(chosen, base.nonzero(is_inside)[0])
    weight = None if weights is None else base.take(base.ravel(weights), base.nonzero(is_inside)[0])
    counts = bincount(selected, weight, edges.shape[0] - 1)
    if density:
        counts = as_float(counts)
        counts = counts / base.diff(as_float(edges)) / reductions.sum(counts)
    return counts, edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """The histogram of points [n, d]; (counts, edges of each axis)."""
    # A list holds the coordinates of each axis; an array, a point in each row.
    points = as_tensor(sample)
    if not hasattr(sample, "shape"):
        points = points.reshape((1, -1)) if points.ndim < 2 else points
        points = points.T
    d = points.shape[1]
    each = [bins] * d if isinstance(bins, builtins.int) else list(bins)
    limits = [None] * d if range is None else list(range)
    edges = [histogram_bin_edges(points[:, i], each[i], limits[i]) for i in builtins.range(d)]
    flat, inside = as_tensor(0), as_tensor(True)
    lengths = [edge.shape[0] - 1 for edge in edges]
    for i, edge in enumerate(edges):
        chosen, is_inside = _counts(points[:, i], edge)
        flat, inside = flat * lengths[i] + chosen, inside & is_inside
    where = base.nonzero(inside)[0]
    weight = None if weights is None else base.take(base.ravel(weights), where)
    counts = bincount(base.take(flat, where), weight, math.prod(lengths)).reshape(lengths)
    counts = counts.to(dtype=_core.float64)
    if density:
        volume = as_tensor(1.0)
        for i, edge in enumerate(edges):
            volume = volume * base.diff(edge).reshape((1,) * i + (-1,) + (1,) * (d - i - 1))
        counts = counts / volume / reductions.sum(counts)
    return counts, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The histogram of points; (counts, edges of x, edges of y)."""
    points = base.stack([base.ravel(x), base.ravel(y)], 1)
    if not isinstance(bins, builtins.int) and len(bins) != 2:
        bins = [bins, bins]
    counts, edges = histogramdd(points, bins, range, density, weights)
    return counts, edges[0], edges[1]


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """Values between points with ascending `xp`, on straight lines, in float64. With a `period` the
    points go on beyond both ends."""
    at, knots, values = (as_float(each) for each in (x, xp, fp))
    at, knots = at.to(dtype=_core.float64), knots.to(dtype=_core.float64)
    if kind_of(values.dtype) == "c":
        raise TypeError(f"interp(): expected real numbers, got {values.dtype}")
    values = values.to(dtype=_core.float64)
    if period is not None:
        if period == 0:
            raise ValueError("interp(): expected a period that is not 0")
        period = abs(period)
        at, knots = at % period, knots % period
        order = base.argsort(knots)
        knots, values = base.take(knots, order), base.take(values, order)
        knots = base.concatenate([knots[-1:] - period, knots, knots[:1] + period])
        values = base.concatenate([values[-1:], values, values[:1]])
        left = right = None
    last = knots.shape[0] - 1
    if last == 0:
        inside = at * 0 + values[0]
    else:
        low = _core.operator("clip")(
            base.searchsorted(knots, base.ravel(at), "right") - 1, 0, last - 1
        )
        x0, y0 = base.take(knots, low), base.take(values, low)
        slope = (base.take(values, low + 1) - y0) / (base.take(knots, low + 1) - x0)
        inside = (y0 + slope * (base.ravel(at) - x0)).reshape(tuple(at.shape))
    inside = base.where(at >= knots[last], values[last], inside)
    inside = base.where(at < knots[0], values[0] if left is None else float(left), inside)
    return base.where(at > knots[last], values[last] if right is None else float(right), inside)


def _end_slope(end: Tensor, second: Tensor, third: Tensor, h: Any, k: Any) -> Tensor:
    """The slope at `end` of the parabola through three points, `h` and then `k` apart."""
    return (
        -(2 * h + k) / (h * (h + k)) * end + (h + k) / (h * k) * second - h / (k * (h + k)) * third
    )


def gradient(f: Any, *varargs: Any, axis: Axes = None, edge_order: builtins.int = 1) -> Any:
    """Slopes by central differences, one-sided at the ends: a tensor for each axis. With `edge_order` 2
    the ends are those of a parabola through three points."""
    x = as_float(f)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient(): expected edge_order 1 or 2, got {edge_order}")
    axes = (
        list(range(x.ndim))
        if axis is None
        else [axis]
        if isinstance(axis, builtins.int)
        else list(axis)
    )
    steps = list(varargs) or [1.0] * len(axes)
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError(
            f"gradient(): expected a distance for each of {len(axes)} axes, got {len(steps)}"
        )
    results = []
    for each, step in zip(axes, steps, strict=True):
        y = base.moveaxis(x, each, -1)
        spacing = as_float(step)
        is_number = type(step) in (builtins.int, float)
        dtype = y.dtype if is_number else common_dtype([y, spacing])
        y, spacing = y.to(dtype=dtype), spacing.to(dtype=dtype)
        if spacing.ndim == 0:
            inner = (y[..., 2:] - y[..., :-2]) / (2 * spacing)
            first = (y[..., 1:2] - y[..., :1]) / spacing
            last = (y[..., -1:] - y[..., -2:-1]) / spacing
        else:
            h = base.diff(spacing)
            before, after = h[:-1], h[1:]
            inner = (
                -after / (before * (before + after)) * y[..., :-2]
                + (after - before) / (before * after) * y[..., 1:-1]
                + before / (after * (before + after)) * y[..., 2:]
            )
            first = (y[..., 1:2] - y[..., :1]) / h[0]
            last = (y[..., -1:] - y[..., -2:-1]) / h[-1]
        if edge_order == 2:
            if y.shape[-1] < 3:
                raise ValueError(
                    f"gradient(): expected at least 3 elements along axis {each} for edge_order=2, got "
                    f"{y.shape[-1]}"
                )
            steps_of = (spacing, spacing) if spacing.ndim == 0 else (h[0], h[1])
            first = _end_slope(y[..., :1], y[..., 1:2], y[..., 2:3], *steps_of)
            steps_of = (spacing, spacing) if spacing.ndim == 0 else (h[-1], h[-2])
            last = -_end_slope(y[..., -1:], y[..., -2:-1], y[..., -3:-2], *steps_of)
        results.append(base.moveaxis(base.concatenate([first, inner, last], -1), -1, each))
    return results[0] if len(results) == 1 else tuple(results)


def _cumulative(name: str) -> Callable[..., Tensor]:
    def function(
        x: Any, axis: builtins.int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Tensor:
        value = as_tensor(x)
        if axis is None:
            if value.ndim != 1:
                raise ValueError(f"{name}(): expected an axis for an array of {value.ndim} axes")
            axis = 0
        scan = reductions.cumsum if name == "cumulative_sum" else reductions.cumprod
        result = scan(value, axis, dtype)
        if not include_initial:
            return result
        lengths = list(result.shape)
        lengths[axis] = 1
        first = base.full(lengths, 0 if name == "cumulative_sum" else 1, result.dtype)
        return base.concatenate([first, result], axis)

    function.__doc__ = f"tenon.{name}."
    return function


cumulative_sum, cumulative_prod = _cumulative("cumulative_sum"), _cumulative("cumulative_prod")

# -- sets -------------------------------------------------------------------------------------------


def _of_one(name: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return getattr(tenon, name)(as_tensor(x))

    function.__doc__ = f"tenon.{name}."
    return function


unique_all, unique_counts = _of_one("unique_all"), _of_one("unique_counts")
unique_inverse, unique_values = _of_one("unique_inverse"), _of_one("unique_values")


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The different elements of both."""
    return base.unique(base.concatenate([base.ravel(ar1), base.ravel(ar2)]))


def _kept(values: Tensor, mask: Tensor) -> Tensor:
    return base.take(values, base.nonzero(mask)[0])


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The different elements that are in both, and where each is first if that is requested."""
    x, y = unified([as_tensor(ar1), as_tensor(ar2)])
    values, first = base.unique(x, return_index=True)
    mask = base.isin(values, y)
    values = _kept(values, mask)
    if not return_indices:
        return values
    others, second = base.unique(y, return_index=True)
    return values, _kept(first, mask), _kept(second, base.isin(others, values))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The different elements that are in the first one alone; with `assume_unique` in its order."""
    x = as_tensor(ar1)
    values = x.reshape(-1) if assume_unique else base.unique(x)
    return _kept(values, base.isin(values, ar2, invert=True))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The different elements that are in one of both."""
    ar1, ar2 = unified([as_tensor(ar1), as_tensor(ar2)])
    return union1d(setdiff1d(ar1, ar2), setdiff1d(ar2, ar1))
