# SPDX-License-Identifier: Apache-2.0
"""The normal distribution and those made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import constraints
from .composed import TransformedDistribution
from .distribution import Distribution, Number, broadcast_all
from .transforms import ExpTransform

_LOG_SQRT_2PI = math.log(2 * math.pi) / 2


class Normal(Distribution):
    """The normal distribution of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    _support = constraints.real
    has_rsample = True

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.scale)

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        noise = tenon.normal(
            self._extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -(z * z) / 2 - tenon.log(self.scale) - _LOG_SQRT_2PI

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return tenon.erfc(-z / math.sqrt(2.0)) / 2  # erfc keeps the digits of small probabilities

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tenon.ndtri(value)

    def entropy(self) -> Tensor:
        return tenon.log(self.scale) + (0.5 + _LOG_SQRT_2PI)


class LogNormal(TransformedDistribution):
    """exp of a normal variate of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    _support = constraints.positive

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return tenon.exp(self.loc + tenon.square(self.scale) / 2)

    @property
    def mode(self) -> Tensor:
        return tenon.exp(self.loc - tenon.square(self.scale))

    @property
    def variance(self) -> Tensor:
        square = tenon.square(self.scale)
        return tenon.expm1(square) * tenon.exp(2 * self.loc + square)

    def entropy(self) -> Tensor:
        return self.base.entropy() + self.loc


class HalfNormal(Distribution):
    """The absolute value of a normal variate of mean 0 and standard deviation `scale`."""

    arg_constraints = {"scale": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Number, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.scale) * (1 - 2 / math.pi)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        noise = tenon.normal(
            self._extended(sample_shape), dtype=self.scale.dtype, device=self.scale.device
        )
        return tenon.abs(noise) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = value / self.scale
        inside = math.log(2.0) - _LOG_SQRT_2PI - z * z / 2 - tenon.log(self.scale)
        return tenon.where(value >= 0, inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.erf(value / (self.scale * math.sqrt(2.0)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (math.sqrt(2.0) * tenon.erfinv(value))

    def entropy(self) -> Tensor:
        return tenon.log(self.scale) + (0.5 + _LOG_SQRT_2PI - math.log(2.0))


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc` [..., n]; one of the matrices [..., n, n] says how they vary.

    `scale_tril` is the Cholesky factor of the covariance, `precision_matrix` its inverse.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ValueError(
                "MultivariateNormal: expected one of covariance_matrix, precision_matrix and "
                f"scale_tril, got {len(given)}"
            )
        (matrix,) = given
        if loc.ndim < 1 or matrix.ndim < 2 or tuple(matrix.shape[-2:]) != (loc.shape[-1],) * 2:
            raise ValueError(
                "MultivariateNormal: expected a vector [..., n] and a matrix [..., n, n], got shapes "
                f"{tuple(loc.shape)} and {tuple(matrix.shape)}"
            )
        batch = tenon.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        n = loc.shape[-1]
        self.loc = tenon.expand(loc, [*batch, n])
        matrix = tenon.expand(matrix, [*batch, n, n])
        if scale_tril is not None:
            self.scale_tril = matrix
        elif covariance_matrix is not None:
            self.covariance_matrix = matrix
        else:
            self.precision_matrix = matrix
        super().__init__(batch, (n,), validate_args)
        if covariance_matrix is not None:
            self.scale_tril = tenon.cholesky(matrix)
        elif precision_matrix is not None:
            # With P = U U', U upper triangular, the inverse is (U'^-1) (U'^-1)'.
            upper = tenon.flip(tenon.cholesky(tenon.flip(matrix, [-2, -1])), [-2, -1])
            identity = tenon.eye(n, dtype=matrix.dtype, device=matrix.device)
            identity = tenon.expand(identity, matrix.shape)
            self.scale_tril = tenon.triangular_solve(upper.mT, identity, upper=False)

    def __getattr__(self, name: str) -> Any:
        # The forms that were not given are computed when they are read.
        if name == "covariance_matrix":
            value = self.scale_tril @ self.scale_tril.mT
        elif name == "precision_matrix":
            value = tenon.cholesky_inverse(self.scale_tril)
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return value

    def expand(self, batch_shape: Sequence[int]) -> MultivariateNormal:
        n = self.event_shape[0]
        factor = tenon.expand(self.scale_tril, [*batch_shape, n, n])
        loc = tenon.expand(self.loc, [*batch_shape, n])
        return self._checked_alike(MultivariateNormal(loc, scale_tril=factor, validate_args=False))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.scale_tril).sum(axis=-1)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        noise = tenon.normal(
            self._extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return tenon.log(tenon.diagonal(self.scale_tril, 0, -2, -1)).sum(axis=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        distance = squared_mahalanobis(self.scale_tril, value - self.loc)
        n = self.event_shape[0]
        return -(distance / 2) - self._half_log_det() - n * _LOG_SQRT_2PI

    def entropy(self) -> Tensor:
        return self._half_log_det() + self.event_shape[0] * (0.5 + _LOG_SQRT_2PI)


def squared_mahalanobis(scale_tril: Tensor, difference: Tensor) -> Tensor:
    """The squared length of `difference` [..., n] in units of the Cholesky factor [..., n, n]."""
    batch = tenon.broadcast_shapes(scale_tril.shape[:-2], difference.shape[:-1])
    n = difference.shape[-1]
    factor = tenon.expand(scale_tril, [*batch, n, n])
    columns = tenon.expand(difference, [*batch, n]).unsqueeze(-1)
    solved = tenon.triangular_solve(factor, columns, upper=False)
    return tenon.square(solved.squeeze(-1)).sum(axis=-1)
