# SPDX-License-Identifier: Apache-2.0
"""Distributions that say their natural parameters: entropy and divergence follow by differentiation (Nielsen and Nock,
Entropies and cross-entropies of exponential families, 2010)."""

from __future__ import annotations

import tenon
from tenon import Tensor

from .distribution import Distribution, sum_rightmost
from .kl import register_kl


class ExponentialFamily(Distribution):
    """Distributions with density exp(sum(t(x) * parameters) - log_normalizer(parameters) + k(x)).

    Subclasses define `_natural_params`, tensors [*batch_shape, *event_shape], `_log_normalizer` of them, [*batch_shape],
    and `_mean_carrier_measure`, the mean of k(x). Tenon's own families have closed forms and do not derive from it.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self._absent("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return self._absent("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        return self._absent("_mean_carrier_measure")

    def _with_means(self) -> tuple[list[Tensor], Tensor, list[Tensor]]:
        """The natural parameters, the normaliser, and its gradients: the means of t(x)."""
        with tenon.enable_grad():
            given = list(self._natural_params)
            # Parameters that record no gradient are differentiated all the same.
            parameters = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
            normalizer = self._log_normalizer(*parameters)
            means = tenon.grad(normalizer.sum(), parameters, create_graph=True)
        if not any(p.requires_grad for p in given):
            parameters = [p.detach() for p in parameters]
            normalizer, means = normalizer.detach(), [mean.detach() for mean in means]
        return parameters, normalizer, list(means)

    def entropy(self) -> Tensor:
        parameters, normalizer, means = self._with_means()
        axes = len(self.event_shape)
        total = normalizer - self._mean_carrier_measure
        for parameter, mean in zip(parameters, means, strict=True):
            total = total - sum_rightmost(parameter * mean, axes)
        return total


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: expected two distributions of one exponential family, got {type(p).__name__} and "
            f"{type(q).__name__}; write a rule with register_kl"
        )
    parameters, normalizer, means = p._with_means()
    others = q._natural_params
    total = q._log_normalizer(*others) - normalizer
    for own, other, mean in zip(parameters, others, means, strict=True):
        total = total - sum_rightmost((other - own) * mean, len(p.event_shape))
    return total
