# SPDX-License-Identifier: Apache-2.0
"""Constraints: which values a parameter or a sample may have."""

from __future__ import annotations

import tenon
from tenon import Tensor


class Constraint:
    """A set of values. `event_dim` axes at the end belong to one value."""

    event_dim: int = 0
    is_discrete: bool = False
    description: str = ""

    def check(self, value: Tensor) -> Tensor:
        """For each value whether it is in the set: booleans without the last `event_dim` axes."""
        raise NotImplementedError(f"{type(self).__name__} must define check()")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.description}>"


class _Real(Constraint):
    description = "numbers that are not NaN"

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _RealVector(Constraint):
    event_dim = 1
    description = "vectors without NaN"

    def check(self, value: Tensor) -> Tensor:
        return tenon.all(value == value, -1)


class GreaterThan(Constraint):
    """Numbers above `lower_bound`."""

    def __init__(self, lower_bound: float | Tensor) -> None:
        self.lower_bound = lower_bound
        self.description = f"numbers above {_text(lower_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class GreaterThanEq(Constraint):
    """Numbers of at least `lower_bound`."""

    def __init__(self, lower_bound: float | Tensor) -> None:
        self.lower_bound = lower_bound
        self.description = f"numbers of at least {_text(lower_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class LessThan(Constraint):
    """Numbers below `upper_bound`."""

    def __init__(self, upper_bound: float | Tensor) -> None:
        self.upper_bound = upper_bound
        self.description = f"numbers below {_text(upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Interval(Constraint):
    """Numbers from `lower_bound` to `upper_bound`."""

    def __init__(self, lower_bound: float | Tensor, upper_bound: float | Tensor) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.description = f"numbers from {_text(lower_bound)} to {_text(upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class IntegerInterval(Interval):
    """Whole numbers from `lower_bound` to `upper_bound`."""

    is_discrete = True

    def __init__(self, lower_bound: float | Tensor, upper_bound: float | Tensor) -> None:
        super().__init__(lower_bound, upper_bound)
        self.description = f"whole {self.description}"

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & _is_whole(value)


class IntegerGreaterThanEq(GreaterThanEq):
    """Whole numbers of at least `lower_bound`."""

    is_discrete = True

    def __init__(self, lower_bound: float | Tensor) -> None:
        super().__init__(lower_bound)
        self.description = f"whole {self.description}"

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & _is_whole(value)


class _Simplex(Constraint):
    event_dim = 1
    description = "vectors of numbers that are not negative and sum to 1"

    def check(self, value: Tensor) -> Tensor:
        return tenon.all(value >= 0, -1) & (tenon.abs(value.sum(axis=-1) - 1) < 1e-4)


class _OneHot(Constraint):
    event_dim = 1
    is_discrete = True
    description = "vectors of zeros and one 1"

    def check(self, value: Tensor) -> Tensor:
        return tenon.all((value == 0) | (value == 1), -1) & (value.sum(axis=-1) == 1)


class Multinomial(Constraint):
    """Vectors of counts that sum to `total_count`."""

    event_dim = 1
    is_discrete = True

    def __init__(self, total_count: int) -> None:
        self.total_count = total_count
        self.description = f"vectors of counts that sum to {total_count}"

    def check(self, value: Tensor) -> Tensor:
        counts = tenon.all((value >= 0) & _is_whole(value), -1)
        return counts & (value.sum(axis=-1) == self.total_count)


class _LowerCholesky(Constraint):
    event_dim = 2
    description = "lower triangular matrices with a positive diagonal"

    def check(self, value: Tensor) -> Tensor:
        lower = tenon.all(tenon.triu(value, 1) == 0, [-2, -1])
        return lower & tenon.all(tenon.diagonal(value, 0, -2, -1) > 0, -1)


class _CorrCholesky(Constraint):
    event_dim = 2
    description = "lower triangular matrices with a positive diagonal and rows of length 1"

    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * tenon.finfo(value.dtype).eps
        lengths = tenon.norm(value, 2, -1)
        unit = tenon.all(tenon.abs(lengths - 1) <= tolerance, -1)
        return lower_cholesky.check(value) & unit


class _PositiveDefinite(Constraint):
    event_dim = 2
    description = "symmetric positive definite matrices"

    def check(self, value: Tensor) -> Tensor:
        scale = tenon.max(tenon.abs(value), [-2, -1], keepdim=True)
        is_symmetric = tenon.all(tenon.abs(value - value.mT) <= 1e-6 * scale, [-2, -1])
        return is_symmetric & tenon.all(tenon.eigvalsh(value) > 0, -1)


class Independent(Constraint):
    """Values of `base` whose last axes, `reinterpreted_batch_ndims` more, belong to one value."""

    def __init__(self, base: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base = base
        self.event_dim = base.event_dim + reinterpreted_batch_ndims
        self.is_discrete = base.is_discrete
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.description = base.description

    def check(self, value: Tensor) -> Tensor:
        inside = self.base.check(value)
        if not self.reinterpreted_batch_ndims:
            return inside
        return tenon.all(inside, list(range(-self.reinterpreted_batch_ndims, 0)))


class _Joined(Constraint):
    """Values whose parts along `dim` are in one constraint each."""

    def __init__(self, cseq: list[Constraint], dim: int, parts: list[int] | None) -> None:
        self.cseq, self.dim, self.parts = list(cseq), dim, parts
        self.event_dim = max(each.event_dim for each in cseq)
        self.is_discrete = any(each.is_discrete for each in cseq)
        self.description = "; ".join(each.description for each in cseq) + f", along axis {dim}"

    def check(self, value: Tensor) -> Tensor:
        parts = (
            tenon.unbind(value, self.dim)
            if self.parts is None
            else tenon.split(value, self.parts, self.dim)
        )
        inside = []
        for each, part in zip(self.cseq, parts, strict=True):
            good = each.check(part)
            more = self.event_dim - each.event_dim
            inside.append(tenon.all(good, list(range(-more, 0))) if more else good)
        axis = self.dim if self.dim < 0 else self.dim - value.ndim
        if axis >= -self.event_dim and self.parts is not None:
            whole = inside[0]
            for each_inside in inside[1:]:
                whole = whole & each_inside
            return whole
        if self.parts is None:
            return tenon.stack(inside, self.dim)
        return tenon.concat(inside, axis + self.event_dim)


def cat(cseq: list[Constraint], dim: int = 0, lengths: list[int] | None = None) -> Constraint:
    """Parts of `lengths` along `dim`, 1 each if none are given."""
    return _Joined(cseq, dim, [1] * len(cseq) if lengths is None else list(lengths))


def stack(cseq: list[Constraint], dim: int = 0) -> Constraint:
    """Slices along `dim`."""
    return _Joined(cseq, dim, None)


def _is_whole(value: Tensor) -> Tensor:
    return tenon.floor(value) == value


def _text(bound: float | Tensor) -> str:
    if isinstance(bound, Tensor):
        return f"{bound.item():g}" if bound.numel() == 1 else "the bounds of each"
    return f"{bound:g}"


real = _Real()
real_vector = _RealVector()
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
boolean = IntegerInterval(0, 1)
nonnegative_integer = IntegerGreaterThanEq(0)
positive_integer = IntegerGreaterThanEq(1)
simplex = _Simplex()
one_hot = _OneHot()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
positive_definite = _PositiveDefinite()

greater_than = GreaterThan
greater_than_eq = GreaterThanEq
less_than = LessThan
interval = Interval
integer_interval = IntegerInterval
multinomial = Multinomial
independent = Independent
