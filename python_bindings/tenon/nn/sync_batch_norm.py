# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation with the statistics of the batches of all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenon
from tenon import Tensor, autograd

from .containers import ModuleDict, ModuleList, Sequential
from .module import Module
from .normalization import _BatchNorm

if TYPE_CHECKING:
    from tenon.distributed import ProcessGroup


class _SumOverRanks(autograd.Function):
    """The sum of all ranks' tensors. Every rank's result depends on every rank's tensor, so the
    gradient is the sum of all ranks' gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, communicator: ProcessGroup) -> Tensor:
        ctx.communicator = communicator
        return communicator.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _SumOverRanks.apply(grad.contiguous(), ctx.communicator), None


class SyncBatchNorm(_BatchNorm):
    """Normalises every channel of [N, C, ...] over the batches of all ranks of `communicator`.

    In training every rank calls forward, and backward, of its layers in the same order; batches may
    differ in size, also be empty. The gradient of the input is that of the sum of all ranks' losses;
    those of weight and bias are of this rank's loss, and are to be reduced with all others. In
    evaluation this is BatchNorm, and needs no communicator. Statistics are computed in float32 at
    least.
    """

    ndims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        communicator: ProcessGroup | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.communicator = communicator

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        batch = self.training or self.running_mean is None
        if batch and self.communicator is None:
            raise RuntimeError(
                "SyncBatchNorm: expected a communicator to train with the batches of all ranks, got "
                "None; pass SyncBatchNorm(..., communicator=tenon.distributed.world()), or "
                "use BatchNorm, which normalises over the batch of this rank"
            )
        if not batch or self.communicator is None or self.communicator.size == 1:
            return super().forward(x)
        channels, axes = self.num_features, [0, *range(2, x.ndim)]
        shape = [1, channels] + [1] * (x.ndim - 2)
        wide = x.to(tenon.float32) if x.dtype in (tenon.float16, tenon.bfloat16) else x
        count = tenon.full([1], x.numel() // channels, dtype=wide.dtype, device=x.device)
        sums = _SumOverRanks.apply(tenon.concat([wide.sum(axes), count], 0), self.communicator)
        n = sums[channels:].detach()
        mean = sums[:channels] / n
        centered = wide - mean.reshape(shape)
        # A second round for the squares of differences: squares of values would cancel.
        var = _SumOverRanks.apply((centered * centered).sum(axes), self.communicator) / n
        out = centered * tenon.rsqrt(var + self.eps).reshape(shape)
        if self.weight is not None and self.bias is not None:
            out = out * self.weight.reshape(shape) + self.bias.reshape(shape)
        if self.training and self.running_mean is not None and self.running_var is not None:
            momentum = self._count_batch()
            with tenon.no_grad():
                # Running averages hold the sample variance, the forward pass the population's.
                sample = var * (n / tenon.maximum(n - 1, 1))
                for running, seen in ((self.running_mean, mean), (self.running_var, sample)):
                    tenon.lerp(running, seen.to(running.dtype), momentum, out=running)
        return out.to(x.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, communicator: ProcessGroup) -> Module:
        """`module` with its BatchNorm layers replaced, at any depth, by ones of all ranks that have
        the same parameters and buffers. A module that is a BatchNorm itself is returned replaced."""
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.weight is not None,
                module.running_mean is not None,
                communicator,
            )
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.train(module.training)
            return made
        for name, child in list(module.named_children()):
            converted = cls.convert_sync_batchnorm(child, communicator)
            if converted is child:
                continue
            if isinstance(module, (Sequential, ModuleList)):
                module[int(name)] = converted
            elif isinstance(module, ModuleDict):
                module[name] = converted
            else:
                setattr(module, name, converted)
        return module
