# SPDX-License-Identifier: Apache-2.0
"""Averages of the parameters of a model over the steps of its training."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.complex_parts import parts
from tenon.nn.module import Module
from tenon.nn.parameter import Buffer

from .lr_scheduler import LRScheduler
from .optimizer import Optimizer

Average = Callable[[Tensor, Tensor, int], Tensor]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An exponential moving average: `decay * average + (1 - decay) * current`."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"get_ema_avg_fn: expected decay from 0 to 1, got {decay}")
    return lambda averaged, current, count: tenon.lerp(averaged, current, 1.0 - decay)


def get_swa_avg_fn() -> Average:
    """The mean of all models so far (Izmailov et al., 2018)."""
    return lambda averaged, current, count: tenon.lerp(averaged, current, 1.0 / (count + 1))


class AveragedModel(Module):
    """A copy of `model` whose parameters are an average of those that update_parameters() saw.

    By default the average is the mean. With `use_buffers` running statistics are averaged, too;
    otherwise they are those of the model, and update_bn() computes them afresh. Complex parameters
    are averaged as their real and imaginary parts.
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        use_buffers: bool = False,
    ) -> None:
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.n_averaged = Buffer(tenon.tensor(0))
        self.avg_fn = avg_fn or get_swa_avg_fn()
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **more: Any) -> Any:
        return self.module(*args, **more)

    def update_parameters(self, model: Module) -> None:
        """Count the present parameters of `model`. The first ones are copied."""
        count = int(self.n_averaged.item())
        pairs = list(zip(self.module.parameters(), model.parameters()))
        others = list(zip(self.module.buffers(), model.buffers()))
        with tenon.no_grad():
            for own, other in [*pairs, *(others if self.use_buffers else [])]:
                target, current = parts(own.detach()), parts(other.detach().to(own.device))
                if count and target.dtype.is_floating_point:
                    current = self.avg_fn(target, current, count)
                target.copy_(current)
            for own_buffer, buffer in [] if self.use_buffers else others:
                own_buffer.copy_(buffer.detach().to(own_buffer.device))
            self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch norms of `model` afresh from one pass.

    Batches are tensors, or sequences whose first entry is passed to the model.
    """
    norms: list[Any] = [
        m for m in model.modules() if getattr(m, "num_batches_tracked", None) is not None
    ]
    if not norms:
        return
    training, momenta = model.training, [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    model.train()
    try:
        with tenon.no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """From the present rate to `swa_lr` in `anneal_epochs` steps; constant after that."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        self.optimizer = optimizer
        self.swa_lrs = self.for_each_group(swa_lr, "swa_lr")
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """How much of the way is done after `step` steps."""
        if not self.anneal_epochs:
            return 1.0
        part = max(0.0, min(1.0, step / self.anneal_epochs))
        return part if self.anneal_strategy == "linear" else (1.0 - math.cos(math.pi * part)) / 2.0

    def rate(self, base: float, step: int) -> float:
        part = self._part(step)
        return self.swa_lrs[self._group] * part + base * (1.0 - part)

    def chained(self, current: float, base: float, step: int) -> float:
        before = self._part(step - 1) if step > 0 and self.anneal_epochs else 0.0
        if before < 1.0:
            current = (current - before * self.swa_lrs[self._group]) / (1.0 - before)
        return self.rate(current, step)
