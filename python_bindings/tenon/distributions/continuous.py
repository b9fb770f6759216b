# SPDX-License-Identifier: Apache-2.0
"""Distributions of angles, of numbers from 0 to 1 with an exponential density, and of what lies above a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor

from . import constraints
from ._sampling import uniform_like
from .constraints import Constraint
from .distribution import Distribution, Number, broadcast_all


class VonMises(Distribution):
    """Angles from -pi to pi around `loc` with density in proportion to exp(concentration * cos(x - loc)). The variance
    is the circular one, 1 less the length of the mean vector."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    _support = constraints.real

    def __init__(
        self, loc: Number, concentration: Number, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 1 - tenon.i1e(self.concentration) / tenon.i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        # cos - 1 = -2 sin**2 of half the angle, which keeps the digits of large concentrations.
        height = -2 * tenon.square(tenon.sin((value - self.loc) / 2))
        norm = math.log(2 * math.pi) + tenon.log(tenon.i0e(self.concentration))
        return self.concentration * height - norm

    def entropy(self) -> Tensor:
        norm = math.log(2 * math.pi) + tenon.log(tenon.i0e(self.concentration))
        return norm + self.concentration * self.variance

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        """By rejection from a wrapped Cauchy distribution (Best and Fisher, 1979), in float64."""
        with tenon.no_grad():
            shape = self._extended(sample_shape)
            k = tenon.expand(self.concentration.to(tenon.float64), shape)
            tau = 1 + tenon.sqrt(1 + 4 * k * k)
            rho = (tau - tenon.sqrt(2 * tau)) / (2 * k)
            # Below, rho has lost its digits; the envelope of small concentrations is 1 / k.
            r = tenon.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
            angle = tenon.zeros_like(k)
            missing = tenon.ones_like(k, dtype=tenon.bool)
            while bool(tenon.any(missing)):
                first, second, third = (uniform_like(k) for _ in range(3))
                z = tenon.cos(math.pi * first)
                f = tenon.clip((1 + r * z) / (r + z), -1.0, 1.0)
                c = k * (r - f)
                fits = (c * (2 - c) > second) | (tenon.log(c / second) + 1 >= c)
                drawn = tenon.where(third < 0.5, -1.0, 1.0) * tenon.acos(f)
                angle = tenon.where(missing & fits, drawn, angle)
                missing = missing & ~fits
            moved = angle + math.pi + self.loc.to(tenon.float64)
            return (tenon.remainder(moved, 2 * math.pi) - math.pi).to(self.loc.dtype)


class ContinuousBernoulli(Distribution):
    """Numbers from 0 to 1 with density in proportion to probs ** x * (1 - probs) ** (1 - x) (Loaiza-Ganem and
    Cunningham, 2019)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("ContinuousBernoulli: expected one of probs and logits")
        if logits is None:
            assert probs is not None
            (self.probs,) = broadcast_all(probs)
            super().__init__(self.probs.shape, (), validate_args)
            self._odds = tenon.log(self.probs) - tenon.log1p(-self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
            super().__init__(self.logits.shape, (), validate_args)
            self._odds = self.logits

    def __getattr__(self, name: str) -> Tensor:
        # The form that was not given is computed when it is read.
        if name == "probs":
            return tenon.sigmoid(self._odds)
        if name == "logits":
            return self._odds
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def expand(self, batch_shape: Sequence[int]) -> ContinuousBernoulli:
        odds = tenon.expand(self._odds, batch_shape)
        return self._checked_alike(ContinuousBernoulli(logits=odds, validate_args=False))

    def _near(self) -> tuple[Tensor, Tensor]:
        """Where odds are so even that differences lose their digits, and odds that are not."""
        near = tenon.abs(self._odds) < 1e-2
        return near, tenon.where(near, 1.0, self._odds)

    def _log_norm(self) -> Tensor:
        """Of the density exp(odds * x): log(expm1(odds) / odds)."""
        near, odds = self._near()
        size = tenon.abs(odds)  # expm1(a) / a = exp(a) * (1 - exp(-a)) / a
        far = tenon.clip(odds, 0.0, None) + tenon.log(-tenon.expm1(-size) / size)
        square = tenon.square(self._odds)
        return tenon.where(near, self._odds / 2 + square / 24 - square * square / 2880, far)

    @property
    def mean(self) -> Tensor:
        near, odds = self._near()
        cube = self._odds * tenon.square(self._odds)
        return tenon.where(
            near,
            0.5 + self._odds / 12 - cube / 720,
            1 / (2 * tenon.tanh(odds / 2)) + 0.5 - 1 / odds,
        )

    @property
    def variance(self) -> Tensor:
        near, odds = self._near()
        square = tenon.square(self._odds)
        size = tenon.abs(odds)
        share = tenon.exp(-size) / tenon.square(tenon.expm1(-size))
        return tenon.where(
            near, 1 / 12 - square / 240 + square * square / 6048, 1 / tenon.square(odds) - share
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._odds * value - self._log_norm()

    def _size(self) -> tuple[Tensor, Tensor]:
        """Where the odds are even, and how uneven they are where not: expm1 keeps the digits of small ones."""
        even = tenon.abs(self._odds) < tenon.finfo(self._odds.dtype).smallest_normal
        return even, tenon.abs(tenon.where(even, 1.0, self._odds))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        even, size = self._size()
        rises = self._odds > 0  # the mirror image of what falls
        x = tenon.where(rises, 1 - value, value)
        share = tenon.expm1(-size * x) / tenon.expm1(-size)
        return tenon.where(even, value, tenon.where(rises, 1 - share, share))

    def icdf(self, value: Tensor) -> Tensor:
        even, size = self._size()
        rises = self._odds > 0
        u = tenon.where(rises, 1 - value, value)
        x = -tenon.log1p(u * tenon.expm1(-size)) / size
        return tenon.where(even, value, tenon.where(rises, 1 - x, x))

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        return self.icdf(
            uniform_like(tenon.expand(self._odds.detach(), self._extended(sample_shape)))
        )

    def entropy(self) -> Tensor:
        return self._log_norm() - self._odds * self.mean


class _AboveThreshold(Constraint):
    def __init__(self, loc: Tensor, scale: Tensor, concentration: Tensor) -> None:
        self.loc = loc
        falls = concentration < 0
        end = loc - scale / tenon.where(falls, concentration, -1.0)
        self.upper = tenon.where(falls, end, math.inf)
        self.description = (
            "numbers from loc on, and below loc - scale / concentration if that is negative"
        )

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.loc) & (value <= self.upper)


class GeneralizedPareto(Distribution):
    """What lies above a threshold `loc` (Pickands, 1975): 0 for `concentration` is the exponential distribution, and
    below 0 there is an upper end."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Number,
        scale: Number,
        concentration: Number,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def support(self) -> Constraint:
        return _AboveThreshold(self.loc, self.scale, self.concentration)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        below = self.loc + self.scale / (1 - tenon.where(c < 1, c, 0.0))
        return tenon.where(c < 1, below, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = tenon.where(self.concentration < 0.5, self.concentration, 0.0)
        value = tenon.square(self.scale / (1 - c)) / (1 - 2 * c)
        return tenon.where(self.concentration < 0.5, value, math.inf)

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where the distribution is exponential, and concentrations where it is not."""
        near = tenon.abs(self.concentration) < tenon.finfo(self.loc.dtype).eps
        return near, tenon.where(near, 1.0, self.concentration)

    def _log_above(self, value: Tensor) -> Tensor:
        """log P(x > value)."""
        near, c = self._shape()
        z = (value - self.loc) / self.scale
        return -tenon.where(near, z, tenon.log1p(tenon.where(near, 0.0, c * z)) / c)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (1 + self.concentration) * self._log_above(value) - tenon.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -tenon.expm1(self._log_above(value))

    def icdf(self, value: Tensor) -> Tensor:
        near, c = self._shape()
        rate = -tenon.log1p(-value)
        return self.loc + self.scale * tenon.where(near, rate, tenon.expm1(c * rate) / c)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        return self.icdf(
            uniform_like(tenon.expand(self.loc.detach(), self._extended(sample_shape)))
        )

    def entropy(self) -> Tensor:
        return tenon.log(self.scale) + self.concentration + 1
