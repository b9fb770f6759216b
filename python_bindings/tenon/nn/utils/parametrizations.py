# SPDX-License-Identifier: Apache-2.0
"""Weight normalisation, spectral normalisation and orthogonal weights as parametrisations."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

from ..module import Module
from ..parameter import Buffer
from .parametrize import register_parametrization, remove_parametrizations


class WeightNorm(Module):
    """`g * v / norm(v)`; the norm is over all axes but `dim` (Salimans and Kingma, 2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        self.dim = dim

    def _norm(self, v: Tensor) -> Tensor:
        if self.dim is None:
            return tenon.norm(v)
        axes = [axis for axis in range(v.ndim) if axis != self.dim % v.ndim]
        return tenon.norm(v, 2.0, axes, keepdim=True)

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self._norm(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self._norm(weight).clone(), weight.clone()


class SpectralNorm(Module):
    """The weight divided by its largest singular value (Miyato et al., 2018).

    Power iterations, `n_power_iterations` in each forward pass of training, follow the singular
    vectors. Axis `dim` is taken as rows, all others together as columns.
    """

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, eps: float = 1e-12, dim: int = 0
    ) -> None:
        self.n_power_iterations, self.eps, self.dim = n_power_iterations, eps, dim
        matrix = self._matrix(weight.detach())
        rows, columns = matrix.shape
        options: dict[str, Any] = {"dtype": weight.dtype, "device": weight.device}
        self._u = Buffer(tenon.normalize(tenon.normal([rows], **options), 2.0, 0, eps))
        self._v = Buffer(tenon.normalize(tenon.normal([columns], **options), 2.0, 0, eps))
        self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return weight.unsqueeze(1)
        axis = self.dim % weight.ndim
        order = [axis, *(i for i in range(weight.ndim) if i != axis)]
        return weight.permute(order).reshape([weight.shape[axis], -1])

    def _iterate(self, matrix: Tensor, count: int) -> None:
        with tenon.no_grad():
            for _ in range(count):
                self._u.copy_(tenon.normalize(matrix @ self._v, 2.0, 0, self.eps))
                self._v.copy_(tenon.normalize(matrix.T @ self._u, 2.0, 0, self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # a later iteration changes the buffers in place
        return weight / tenon.dot(u, matrix @ v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


class Orthogonal(Module):
    """The nearest orthogonal matrix, by Newton-Schulz iterations for the polar factor.

    The original has full rank; rows (or columns, if they are fewer) become orthonormal.
    """

    def __init__(self, iterations: int = 30) -> None:
        self.iterations = iterations

    def forward(self, weight: Tensor) -> Tensor:
        flip = weight.shape[-2] > weight.shape[-1]
        x = weight.mT if flip else weight
        x = x / tenon.norm(x, 2.0, (-2, -1), keepdim=True)
        for _ in range(self.iterations):
            x = 1.5 * x - 0.5 * (x @ x.mT) @ x
        return x.mT if flip else x

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train direction and length of a weight apart."""
    return register_parametrization(module, name, WeightNorm(dim))


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    return remove_parametrizations(module, name)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value."""
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    weight = getattr(module, name)
    return register_parametrization(
        module, name, SpectralNorm(weight, n_power_iterations, eps, dim)
    )


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    return remove_parametrizations(module, name)


def orthogonal(module: Any, name: str = "weight", iterations: int = 30) -> Any:
    """Keep a weight of two axes orthogonal."""
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: expected two axes or more, got {tuple(weight.shape)}")
    return register_parametrization(module, name, Orthogonal(iterations))
