# SPDX-License-Identifier: Apache-2.0
"""Distributions of counts and of yes or no."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import constraints
from ._sampling import exponential_like, log_standard_gamma
from ._special import betainc
from ._stable import lgamma_difference, log_poisson, weighted, xlog1py, xlogy
from .constraints import Constraint
from .distribution import Distribution, Number, broadcast_all

_MANY = 64.0  # trials, from which on the terms of a logarithm of a probability nearly cancel


class _ProbsOrLogits(Distribution):
    """Distributions of one probability, given as itself or as its log-odds; the other follows."""

    probs: Tensor
    logits: Tensor

    def _take(self, probs: Number | None, logits: Number | None, *others: Number) -> list[Tensor]:
        """Keeps the one that was given, and returns the `others` broadcast to it."""
        if (probs is None) == (logits is None):
            raise ValueError(
                f"{type(self).__name__}: expected one of probs and logits, got "
                + ("neither" if probs is None else "both")
            )
        given = probs if probs is not None else logits
        assert given is not None
        value, *rest = broadcast_all(given, *others)
        if probs is not None:
            self.probs = value
        else:
            self.logits = value
        return rest

    def __getattr__(self, name: str) -> Any:
        # The form that was not given is computed when it is read.
        if name == "probs" and "logits" in vars(self):
            return tenon.sigmoid(self.logits)
        if name == "logits" and "probs" in vars(self):
            eps = tenon.finfo(self.probs.dtype).eps  # keeps log-odds of 0 and 1 finite
            return tenon.logit(tenon.clip(self.probs, eps, 1 - eps))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def _given(self) -> Tensor:
        return vars(self)["probs" if "probs" in vars(self) else "logits"]

    def _log_probs(self) -> tuple[Tensor, Tensor]:
        """Logarithms of the probability and of its complement."""
        if "logits" in vars(self):
            return -tenon.softplus(-self.logits), -tenon.softplus(self.logits)
        return tenon.log(self.probs), tenon.log1p(-self.probs)

    def _both(self) -> tuple[Tensor, Tensor]:
        """The probability and its complement."""
        if "logits" in vars(self):
            return tenon.sigmoid(self.logits), tenon.sigmoid(-self.logits)
        return self.probs, 1 - self.probs

    def _log_likelihood(self, ones: Tensor, zeros: Tensor) -> Tensor:
        """The logarithm of the probability of so many successes and failures in an order; 0 of a
        probability of 0 are certain."""
        if "logits" in vars(self):
            log_one, log_zero = self._log_probs()
            return weighted(ones, log_one) + weighted(zeros, log_zero)
        return xlogy(ones, self.probs) + xlog1py(zeros, -self.probs)

    def _trial_entropy(self) -> Tensor:
        """The entropy of one trial."""
        p, q = self._both()
        if "logits" in vars(self):
            log_one, log_zero = self._log_probs()
            return -weighted(p, log_one) - weighted(q, log_zero)
        # 1 - p has lost the digits of a small p.
        is_small = p < 0.5
        rest = tenon.log1p(-tenon.where(is_small, p, 0.0))
        return tenon.entr(p) + tenon.where(is_small, -q * rest, tenon.entr(q))


class Bernoulli(_ProbsOrLogits):
    """1 with probability `probs`, else 0; `logits` are log-odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._given.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """NaN where both values are equally probable."""
        likely = (self.probs > 0.5).to(self.probs.dtype)
        return tenon.where(self.probs == 0.5, math.nan, likely)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            return tenon.bernoulli(tenon.expand(self.probs, self._extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._log_likelihood(value, 1 - value)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.where(value < 1, 1 - self.probs, tenon.ones_like(self.probs))

    def entropy(self) -> Tensor:
        return self._trial_entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        given = self._given
        values = tenon.arange(2, device=given.device).to(given.dtype)
        values = values.reshape([2, *[1] * len(self.batch_shape)])
        return tenon.expand(values, [2, *self.batch_shape]) if expand else values


class Geometric(_ProbsOrLogits):
    """Failures before the first success of probability `probs`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._given.shape, (), validate_args)
        if self._validates and probs is not None:
            self._check("parameter probs", constraints.positive, self.probs)

    @property
    def mean(self) -> Tensor:
        return (1 - self.probs) / self.probs

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 - self.probs) / tenon.square(self.probs)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            _, log_failure = self._log_probs()
            log_failure = tenon.expand(log_failure, self._extended(sample_shape))
            return tenon.floor(-exponential_like(log_failure) / log_failure)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._log_likelihood(tenon.ones_like(value), value)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        _, log_failure = self._log_probs()
        return -tenon.expm1((value + 1) * log_failure)

    def entropy(self) -> Tensor:
        return self._trial_entropy() / self.probs


class Poisson(Distribution):
    """Counts of events that are independent of each other and number `rate` in the mean."""

    arg_constraints = {"rate": constraints.nonnegative}
    _support = constraints.nonnegative_integer

    def __init__(self, rate: Number, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return tenon.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        return tenon.random.poisson(tenon.expand(self.rate.detach(), self._extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return log_poisson(value, self.rate)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.gammaincc(value + 1, self.rate)


class Binomial(_ProbsOrLogits):
    """Successes of probability `probs` in `total_count` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self,
        total_count: Number = 1,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._given.shape, (), validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.IntegerInterval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return tenon.minimum(tenon.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        shape = self._extended(sample_shape)
        return tenon.random.binomial(
            tenon.expand(self.total_count, shape), tenon.expand(self.probs, shape)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        rest = n - value
        choices = tenon.lgamma(n + 1) - tenon.lgamma(value + 1) - tenon.lgamma(rest + 1)
        few = choices + self._log_likelihood(value, rest)
        p, q = self._both()
        many = log_poisson(value, n * p) + log_poisson(rest, n * q) - log_poisson(n, n)
        return tenon.where(n < _MANY, few, many)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = value < self.total_count
        rest = tenon.where(inside, self.total_count - value, tenon.ones_like(value))
        return tenon.where(inside, betainc(rest, value + 1, 1 - self.probs), 1.0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        counts = set(self.total_count.reshape([-1]).tolist())
        if len(counts) != 1:
            raise NotImplementedError(
                f"Binomial: expected one total_count to enumerate, got {sorted(counts)}"
            )
        count = int(counts.pop()) + 1
        values = tenon.arange(count, device=self.total_count.device).to(self.total_count.dtype)
        values = values.reshape([count, *[1] * len(self.batch_shape)])
        return tenon.expand(values, [count, *self.batch_shape]) if expand else values

    def entropy(self) -> Tensor:
        """By the sum over all counts; all elements need the same `total_count`."""
        log_prob = self.log_prob(self.enumerate_support())
        finite = tenon.where(log_prob == -math.inf, tenon.zeros_like(log_prob), log_prob)
        return -(tenon.exp(log_prob) * finite).sum(axis=0)


class NegativeBinomial(_ProbsOrLogits):
    """Successes of probability `probs` before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.nonnegative,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    _support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Number,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._given.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs / (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        scaled = (self.total_count - 1) * self.probs / (1 - self.probs)
        return tenon.clip(tenon.floor(scaled), 0.0, None)

    @property
    def variance(self) -> Tensor:
        return self.mean / (1 - self.probs)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            shape = self._extended(sample_shape)
            log_rate = log_standard_gamma(tenon.expand(self.total_count, shape)) + self.logits
            return tenon.random.poisson(tenon.exp(log_rate))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        # Before no success there is nothing to choose, also with a count of 0, where lgamma is
        # infinite.
        some = tenon.where(value == 0, 1.0, n)
        choices = lgamma_difference(some, value) - tenon.lgamma(value + 1)
        few = choices + self._log_likelihood(value, n)
        p, q = self._both()
        enough = tenon.where(n > 0, n, 1.0)
        total = enough + value
        many = log_poisson(value, total * p) + log_poisson(enough, total * q)
        many = many - log_poisson(total, total) + tenon.log(enough / total)
        return tenon.where((n > 0) & (total >= _MANY), many, few)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        below = betainc(tenon.where(n > 0, n, 1.0), value + 1, 1 - self.probs)
        return tenon.where(n > 0, below, 1.0)  # a count of 0: no success is certain
