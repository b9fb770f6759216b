# SPDX-License-Identifier: Apache-2.0
"""Layers that bring activations to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from .module import Module
from .parameter import Buffer, Parameter


def _affine(shape: Sequence[int], wanted: bool, value: float, options: dict) -> Parameter | None:
    return Parameter(tenon.full(list(shape), value, **options)) if wanted else None


class _BatchNorm(Module):
    """In training with the statistics of the batch, otherwise with their running averages.

    The averages move by `momentum`; with `momentum=None` they are the mean over all batches.
    """

    ndims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = _affine([num_features], affine, 1.0, options)
        self.bias = _affine([num_features], affine and bias, 0.0, options)
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.running_mean = Buffer(tenon.zeros([num_features], **options))
            self.running_var = Buffer(tenon.ones([num_features], **options))
            self.num_batches_tracked = Buffer(
                tenon.zeros([], dtype=tenon.int64, device=device), optional=True
            )

    def reset_running_stats(self) -> None:
        """Forget the running averages."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        with tenon.no_grad():
            if self.weight is not None:
                self.weight.fill_(1.0)
            if self.bias is not None:
                self.bias.zero_()

    def _count_batch(self) -> float:
        """Counts a training batch; by how much the running averages move."""
        if self.num_batches_tracked is None:
            return 0.1 if self.momentum is None else self.momentum
        with tenon.no_grad():
            self.num_batches_tracked.add_(1)
        if self.momentum is None:
            return 1.0 / self.num_batches_tracked.item()
        return self.momentum

    def check_input(self, x: Tensor) -> None:
        """Refuse shapes that this layer does not take."""
        if len(x.shape) not in self.ndims or x.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: expected {' or '.join(map(str, self.ndims))} axes "
                f"with {self.num_features} channels in the second, got shape "
                f"{tuple(x.shape)}"
            )

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        updates = self.training and self.track_running_stats
        is_used = updates or not self.training
        return F.batch_norm(
            x,
            self.running_mean if is_used else None,
            self.running_var if is_used else None,
            self.weight,
            self.bias,
            self.training,
            self._count_batch() if updates else 0.0,
            self.eps,
        )

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    """Normalises every channel of [N, C] or [N, C, L] over the batch."""

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises every channel of [N, C, H, W] over the batch."""

    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises every channel of [N, C, D, H, W] over the batch."""

    ndims = (5,)


class LayerNorm(Module):
    """Normalises the last axes, whose extents are `normalized_shape`, together."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape, self.eps = shape, eps
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.elementwise_affine = elementwise_affine
        self.weight = _affine(shape, elementwise_affine, 1.0, options)
        self.bias = _affine(shape, elementwise_affine and bias, 0.0, options)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Normalises the channels of [N, C, ...] in `num_groups` groups."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: expected num_channels divisible by num_groups {num_groups}, "
                f"got {num_channels}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = _affine([num_channels], affine, 1.0, options)
        self.affine = affine
        self.bias = _affine([num_channels], affine and bias, 0.0, options)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class RMSNorm(Module):
    """Divides the last axes, whose extents are `normalized_shape`, by their root mean square.

    Without `eps` it is the distance from 1 to the next number of the input's dtype, of float32 for
    narrower ones, which compute in it.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape, self.eps = shape, eps
        self.elementwise_affine = elementwise_affine
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = _affine(shape, elementwise_affine, 1.0, options)

    def forward(self, x: Tensor) -> Tensor:
        eps = self.eps
        if eps is None:
            eps = tenon.finfo(tenon.float64 if x.dtype == tenon.float64 else tenon.float32).eps
        if tuple(x.shape)[-len(self.normalized_shape) :] != self.normalized_shape:
            raise ValueError(
                f"RMSNorm: expected the last axes to be {self.normalized_shape}, got shape "
                f"{tuple(x.shape)}"
            )
        if len(self.normalized_shape) == 1:
            return F.rms_norm(x, self.weight, eps)
        # The operator works on one axis: join those that are normalised together.
        lead = x.shape[: x.ndim - len(self.normalized_shape)]
        weight = None if self.weight is None else self.weight.reshape([-1])
        return F.rms_norm(x.reshape([*lead, -1]), weight, eps).reshape([*x.shape])

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class _InstanceNorm(_BatchNorm):
    """Normalises every channel of every sample by itself."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self.ndims:
            raise ValueError(
                f"{type(self).__name__}: expected {' or '.join(map(str, self.ndims))} axes, got "
                f"shape {tuple(x.shape)}"
            )
        if x.ndim == self.ndims[0]:  # without a batch
            return self.forward(x.unsqueeze(0)).squeeze(0)
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: expected {self.num_features} channels, got shape "
                f"{tuple(x.shape)}"
            )
        tracks = self.track_running_stats and self.running_mean is not None
        from_input, updates = self.training or not tracks, self.training and tracks
        return F.instance_norm(
            x,
            self.running_mean if updates or not from_input else None,
            self.running_var if updates or not from_input else None,
            self.weight,
            self.bias,
            from_input,
            self.momentum or 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalises every channel of every sample of [N, C, L] or [C, L]."""

    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises every channel of every sample of [N, C, H, W] or [C, H, W]."""

    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises every channel of every sample of [N, C, D, H, W] or [C, D, H, W]."""

    ndims = (4, 5)


class LocalResponseNorm(Module):
    """Divides by the mean square of `size` neighbouring channels (Krizhevsky et al., 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
