# SPDX-License-Identifier: Apache-2.0
"""Distributions made of other distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import constraints
from ._stable import weighted
from .categorical import Categorical
from .constraints import Constraint
from .distribution import Distribution, sum_rightmost
from .transforms import ComposeTransform, Transform


class Independent(Distribution):
    """`base` with its last `reinterpreted_batch_ndims` batch axes as axes of one event."""

    def __init__(
        self,
        base: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        count = reinterpreted_batch_ndims
        if not 0 <= count <= len(base.batch_shape):
            raise ValueError(
                f"Independent: expected reinterpreted_batch_ndims from 0 to {len(base.batch_shape)}, "
                f"the batch axes of the base, got {count}"
            )
        self.base, self.reinterpreted_batch_ndims = base, count
        cut = len(base.batch_shape) - count
        event = (*base.batch_shape[cut:], *base.event_shape)
        super().__init__(base.batch_shape[:cut], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base.has_rsample

    @property
    def support(self) -> Constraint:
        return constraints.Independent(self.base.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base.mean

    @property
    def mode(self) -> Tensor:
        return self.base.mode

    @property
    def variance(self) -> Tensor:
        return self.base.variance

    def expand(self, batch_shape: Sequence[int]) -> Independent:
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        base = self.base.expand([*batch_shape, *inner])
        return self._checked_alike(Independent(base, self.reinterpreted_batch_ndims))

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        return self.base.sample(sample_shape)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        return self.base.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What `transforms`, one after another, make of samples of `base`."""

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not all(isinstance(each, Transform) for each in transforms):
            raise TypeError(
                "TransformedDistribution: expected a Transform or a list of them, got "
                f"{[type(each).__name__ for each in transforms]}"
            )
        self.transforms = list(transforms)
        transform = ComposeTransform(self.transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        # Axes of the batch that the transform needs become axes of the event.
        more = max(transform.domain.event_dim - len(base_distribution.event_shape), 0)
        self.base: Any = Independent(base_distribution, more) if more else base_distribution
        shape = transform.forward_shape(shape)
        event = transform.codomain.event_dim + max(
            len(self.base.event_shape) - transform.domain.event_dim, 0
        )
        cut = len(shape) - event
        self._transform = transform
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base.has_rsample

    @property
    def support(self) -> Constraint:
        constraint = self._transform.codomain
        more = len(self.event_shape) - constraint.event_dim
        return constraints.Independent(constraint, more) if more else constraint

    def expand(self, batch_shape: Sequence[int]) -> Any:
        if type(self).arg_constraints:
            return super().expand(batch_shape)
        base = self.base.expand(batch_shape)
        return self._checked_alike(TransformedDistribution(base, self.transforms))

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            return self._transform(self.base.sample(sample_shape))

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        return self._transform(self.base.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        x = self._transform.inv(value)
        size = self._transform.log_abs_det_jacobian(x, value)
        more = len(self.base.event_shape) - self._transform.domain.event_dim
        return self.base.log_prob(x) - sum_rightmost(size, max(more, 0))

    def _monotonic_sign(self, name: str) -> Any:
        sign = self._transform.sign
        return self._absent(name) if sign is None else sign

    def cdf(self, value: Tensor) -> Tensor:
        sign = self._monotonic_sign("cdf")
        self._validate_sample(value)
        below = self.base.cdf(self._transform.inv(value))
        return sign * (below - 0.5) + 0.5  # a falling map exchanges both sides

    def icdf(self, value: Tensor) -> Tensor:
        sign = self._monotonic_sign("icdf")
        return self._transform(self.base.icdf(sign * (value - 0.5) + 0.5))

    def __repr__(self) -> str:
        if type(self).arg_constraints:
            return super().__repr__()
        return f"{type(self).__name__}({self.base!r}, {self.transforms!r})"


class MixtureSameFamily(Distribution):
    """A mixture: `mixture_distribution` chooses one of the components, which are the last batch
    axis of `component_distribution`."""

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise TypeError(
                "MixtureSameFamily: expected a Categorical to choose components, got "
                f"{type(mixture_distribution).__name__}"
            )
        batch = component_distribution.batch_shape
        count = mixture_distribution.num_events
        if not batch or batch[-1] != count:
            raise ValueError(
                f"MixtureSameFamily: expected components in the last batch axis, of length {count}, "
                f"got batch shape {batch}"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        tenon.broadcast_shapes(mixture_distribution.batch_shape, batch[:-1])  # or an error
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def support(self) -> Constraint:
        return self.component_distribution.support

    def expand(self, batch_shape: Sequence[int]) -> MixtureSameFamily:
        count = self.mixture_distribution.num_events
        mixture = self.mixture_distribution.expand(batch_shape)
        components = self.component_distribution.expand([*batch_shape, count])
        return self._checked_alike(MixtureSameFamily(mixture, components))

    def _weights(self) -> Tensor:
        """Probabilities of the components, with an axis for each of an event."""
        probs = self.mixture_distribution.probs
        return probs.reshape([*probs.shape, *[1] * len(self.event_shape)])

    def _expected(self, value: Tensor) -> Tensor:
        return weighted(self._weights(), value).sum(axis=-1 - len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        return self._expected(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        within = self._expected(self.component_distribution.variance)
        means = self.component_distribution.mean
        offsets = means - self.mean.unsqueeze(-1 - len(self.event_shape))
        return within + self._expected(tenon.square(offsets))

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        with tenon.no_grad():
            events = len(self.event_shape)
            values = self.component_distribution.sample(sample_shape)
            axis = values.ndim - events - 1
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            chosen = chosen.reshape([*chosen.shape, 1, *[1] * events])
            shape = list(values.shape)
            shape[axis] = 1
            return tenon.gather(values, tenon.expand(chosen, shape), axis).squeeze(axis)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        parts = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return tenon.logsumexp(parts + self.mixture_distribution.logits, -1)

    def cdf(self, value: Tensor) -> Tensor:
        parts = self.component_distribution.cdf(value.unsqueeze(-1))
        return (parts * self.mixture_distribution.probs).sum(axis=-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution!r}, {self.component_distribution!r})"
