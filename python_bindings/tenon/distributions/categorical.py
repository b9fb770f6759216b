# SPDX-License-Identifier: Apache-2.0
"""Distributions over a finite number of categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional as F

from . import constraints
from ._sampling import gumbel_like, inside_unit
from ._stable import weighted
from .constraints import Constraint
from .discrete import Bernoulli, Binomial
from .distribution import Distribution, Number, broadcast_all


class Categorical(Distribution):
    """Indices 0 to n - 1 with `probs` [..., n], which are normalised, or with logarithms
    `logits`."""

    arg_constraints = {
        "probs": constraints.Independent(constraints.nonnegative, 1),
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    probs: Tensor
    logits: Tensor

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name = type(self).__name__
        if (probs is None) == (logits is None):
            got = "neither" if probs is None else "both"
            raise ValueError(f"{name}: expected one of probs and logits, got {got}")
        given = probs if probs is not None else logits
        assert given is not None
        if given.ndim < 1:
            raise ValueError(f"{name}: expected one axis or more, got a number")
        (given,) = broadcast_all(given)
        self.num_events = given.shape[-1]
        self._parameter = "logits" if probs is None else "probs"
        if probs is None:
            self.logits = given - tenon.logsumexp(given, -1, keepdim=True)
        else:
            self.probs = given
        super().__init__(given.shape[:-1], self._event_shape(), validate_args)
        if probs is not None:
            total = given.sum(axis=-1, keepdim=True)
            if self._validates:
                self._check("sum of probs", constraints.positive, total.squeeze(-1))
            self.probs = given / total

    def _event_shape(self) -> tuple[int, ...]:
        return ()

    def __getattr__(self, name: str) -> Any:
        # The form that was not given is computed when it is read.
        if name == "probs" and "logits" in vars(self):
            return F.softmax(self.logits, -1)
        if name == "logits" and "probs" in vars(self):
            tiny = tenon.finfo(self.probs.dtype).smallest_normal  # keeps the logarithm finite
            return tenon.log(tenon.clip(self.probs, tiny, None))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def support(self) -> Constraint:
        return constraints.IntegerInterval(0, self.num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN: indices of categories have no mean."""
        return tenon.full_like(self.probs[..., 0], math.nan)

    @property
    def mode(self) -> Tensor:
        return tenon.argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        """NaN: indices of categories have no variance."""
        return tenon.full_like(self.probs[..., 0], math.nan)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        """Indices [*sample_shape, *batch_shape], int64."""
        return self._indices(sample_shape)

    def _indices(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            rows = self.probs.detach().reshape([-1, self.num_events])
            count = math.prod(sample_shape)
            shape = [*sample_shape, *self.batch_shape]
            if not count or not rows.shape[0]:
                return tenon.zeros(shape, dtype=tenon.int64, device=rows.device)
            drawn = tenon.multinomial(rows, count, True)
            return drawn.T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        index = value.to(tenon.int64)
        batch = tenon.broadcast_shapes(index.shape, self.batch_shape)
        logits = tenon.expand(self.logits, [*batch, self.num_events])
        index = tenon.expand(index, batch).unsqueeze(-1)
        return tenon.gather(logits, index, -1).squeeze(-1)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        index = value.to(tenon.int64)
        batch = tenon.broadcast_shapes(index.shape, self.batch_shape)
        below = tenon.expand(tenon.cumsum(self.probs, -1), [*batch, self.num_events])
        return tenon.gather(below, tenon.expand(index, batch).unsqueeze(-1), -1).squeeze(-1)

    def entropy(self) -> Tensor:
        return -weighted(self.probs, self.logits).sum(axis=-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = tenon.arange(self.num_events, device=self.probs.device)
        values = values.reshape([self.num_events, *[1] * len(self.batch_shape)])
        return tenon.expand(values, [self.num_events, *self.batch_shape]) if expand else values


class OneHotCategorical(Categorical):
    """Categorical whose samples are vectors with a 1 at the index."""

    def _event_shape(self) -> tuple[int, ...]:
        return (self.num_events,)

    @property
    def support(self) -> Constraint:
        return constraints.one_hot

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(tenon.argmax(self.probs, -1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return tenon.one_hot(index, self.num_events).to(self.probs.dtype)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        return self._one_hot(self._indices(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return weighted(value, self.logits).sum(axis=-1)

    def cdf(self, value: Tensor) -> Tensor:
        return self._absent("cdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.num_events
        values = tenon.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape([n, *[1] * len(self.batch_shape), n])
        return tenon.expand(values, [n, *self.batch_shape, n]) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose rsample() passes gradients on as if it returned the probabilities
    (Bengio et al., 2013)."""

    has_rsample = True

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """Counts of `total_count` draws from categories of `probs` or `logits` [..., n]."""

    arg_constraints = Categorical.arg_constraints
    probs: Tensor
    logits: Tensor

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ValueError(
                f"Multinomial: expected total_count to be a whole number of at least 0, got "
                f"{total_count!r}"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        name = self._categorical._parameter
        vars(self)[name] = getattr(self._categorical, name)
        n = self._categorical.num_events
        super().__init__(self._categorical.batch_shape, (n,), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name in ("probs", "logits") and "_categorical" in vars(self):
            return getattr(self._categorical, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _settings(self) -> dict[str, Any]:
        return {"total_count": self.total_count}

    @property
    def support(self) -> Constraint:
        return constraints.Multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            drawn = self._categorical.sample([self.total_count, *sample_shape])
            counts = tenon.zeros(
                self._extended(sample_shape), dtype=self.probs.dtype, device=self.probs.device
            )
            index = tenon.movedim(drawn, [0], [drawn.ndim - 1])
            return tenon.scatter_add(counts, index, tenon.ones_like(index, dtype=counts.dtype), -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        draws = weighted(value, self.logits)  # 0 draws of a category of probability 0 are certain
        choices = math.lgamma(self.total_count + 1) - tenon.lgamma(value + 1).sum(axis=-1)
        return choices + draws.sum(axis=-1)

    def entropy(self) -> Tensor:
        n, p = self.total_count, self.probs
        # Every count is binomial; its expected log factorial is a finite sum.
        counts = tenon.arange(n + 1, device=p.device).to(p.dtype)
        counts = counts.reshape([n + 1, *[1] * p.ndim])
        weights = tenon.exp(Binomial(n, p, validate_args=False).log_prob(counts))
        factorials = (weights * tenon.lgamma(counts + 1)).sum(axis=[0, -1])
        return n * self._categorical.entropy() - math.lgamma(n + 1) + factorials


class RelaxedBernoulli(Distribution):
    """sigmoid of a logistic variate around the log-odds, divided by `temperature`: a differentiable
    sample near 0 or 1 (Maddison et al., 2017)."""

    arg_constraints = {
        "temperature": constraints.positive,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    _support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Number,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = Bernoulli(probs, logits, validate_args)
        self.temperature, self.logits = broadcast_all(temperature, base.logits)
        super().__init__(self.logits.shape, (), validate_args)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.logits.detach(), self._extended(sample_shape))
        noise = gumbel_like(like) - gumbel_like(like)
        return inside_unit(tenon.sigmoid((self.logits + noise) / self.temperature))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        odds = tenon.log(value) - tenon.log1p(-value)
        z = self.logits - odds * self.temperature
        inner = tenon.log(self.temperature) + z - 2 * tenon.softplus(z)
        return inner - tenon.log(value) - tenon.log1p(-value)


class RelaxedOneHotCategorical(Distribution):
    """softmax of Gumbel variates around `logits`, divided by `temperature`: a differentiable sample
    near a vector with one 1 (Jang et al., 2017; Maddison et al., 2017)."""

    arg_constraints = {"temperature": constraints.positive, **Categorical.arg_constraints}
    _support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Number,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = Categorical(probs, logits, validate_args)
        # One temperature for each vector.
        self.temperature, first = broadcast_all(temperature, base.logits[..., 0])
        shape = [*first.shape, base.num_events]
        self.logits = tenon.expand(base.logits.to(first.dtype), shape)
        super().__init__(first.shape, (base.num_events,), validate_args)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.logits.detach(), self._extended(sample_shape))
        scores = (self.logits + gumbel_like(like)) / self.temperature.unsqueeze(-1)
        return inside_unit(F.softmax(scores, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.event_shape[0]
        log_value = tenon.log(value)
        score = self.logits - self.temperature.unsqueeze(-1) * log_value
        score = (score - tenon.logsumexp(score, -1, keepdim=True)).sum(axis=-1)
        scale = math.lgamma(n) + (n - 1) * tenon.log(self.temperature)
        return score + scale - log_value.sum(axis=-1)
