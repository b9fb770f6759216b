# SPDX-License-Identifier: Apache-2.0
"""Steps of training that are no optimizer: gradients compressed for a slow network, updates with differential privacy, sums for averages.

Each takes tensors and returns what becomes of them; nothing is written over.
"""

from __future__ import annotations

from typing import NamedTuple

import tenon
from tenon import Tensor, _core

__all__ = ["AverageSums", "average_accumulates", "dgc", "dgc_clip_by_norm", "dgc_momentum", "dpsgd"]


def _clipped(x: Tensor, max_norm: float, function: str) -> Tensor:
    if not max_norm > 0:
        raise ValueError(f"{function}: expected a norm above 0, got {max_norm}")
    norm = tenon.norm(x.reshape([-1]))
    return x * (max_norm / tenon.clip(norm, max_norm, None))


def dgc(
    u: Tensor,
    v: Tensor,
    grad: Tensor,
    momentum: float = 0.9,
    use_nesterov: bool = True,
    sparsity: float = 0.999,
) -> tuple[Tensor, Tensor, Tensor]:
    """Deep gradient compression (Lin et al., 2018): the part of the gradients so far that is worth sending.

    `u` is the momentum and `v` the sum of what was not sent, both in the shape of `grad`. The `1 - sparsity` part of `v` with the largest
    magnitudes, one element at least, is sent: it is returned as a sparse vector of all elements, behind the new `u` and `v`, in which
    it is 0.
    """
    if not 0 <= sparsity < 1:
        raise ValueError(f"dgc: expected sparsity from 0 to below 1, got {sparsity}")
    if list(u.shape) != list(grad.shape) or list(v.shape) != list(grad.shape) or grad.numel() == 0:
        raise ValueError(
            f"dgc: expected u, v and grad of one shape with elements, got {tuple(u.shape)}, {tuple(v.shape)} and {tuple(grad.shape)}"
        )
    with tenon.no_grad():
        if use_nesterov:
            u = momentum * (u + grad)
            v = v + u + grad
        else:
            u = momentum * u + grad
            v = v + u
        flat = v.reshape([-1])
        count = max(1, int(round(flat.numel() * (1.0 - sparsity))))
        index = tenon.sort(tenon.topk(tenon.abs(flat), count)[1])
        values = tenon.index_select(flat, index, 0)
        sent = _core.compose("coo", [flat.numel()], [index.unsqueeze(0), values])
        kept = tenon.index_fill(tenon.ones_like(flat), 0, index, 0.0).reshape([*v.shape])
        return u * kept, v * kept, sent


def dgc_clip_by_norm(x: Tensor, max_norm: float, step: int, rampup_begin_step: int = 0) -> Tensor:
    """`x` with at most the norm `max_norm` from step `rampup_begin_step` on, as it is before."""
    return x if step < rampup_begin_step else _clipped(x, max_norm, "dgc_clip_by_norm")


def dgc_momentum(
    param: Tensor,
    grad: Tensor,
    velocity: Tensor,
    lr: float,
    momentum: float,
    step: int,
    rampup_begin_step: int = 0,
    use_nesterov: bool = False,
    ranks: int = 1,
) -> tuple[Tensor, Tensor]:
    """A step for gradients that dgc compresses from `rampup_begin_step` on: with momentum before, without it then, as dgc has it already.

    `grad` is the sum over `ranks` processes. Returns the parameter and the velocity.
    """
    with tenon.no_grad():
        grad = grad / ranks
        if step >= rampup_begin_step:
            return param - lr * grad, velocity
        velocity = momentum * velocity + grad
        return param - lr * (grad + momentum * velocity if use_nesterov else velocity), velocity


def dpsgd(
    param: Tensor,
    grad: Tensor,
    lr: float,
    clip: float = 10.0,
    batch_size: float = 16.0,
    sigma: float = 1.0,
) -> Tensor:
    """A step with differential privacy (Abadi et al., 2016): the gradient with at most the norm `clip`, and normal noise of deviation
    `sigma / batch_size` for each element."""
    if sigma < 0 or not batch_size > 0:
        raise ValueError(
            f"dpsgd: expected sigma of at least 0 and batch_size above 0, got {sigma} and {batch_size}"
        )
    with tenon.no_grad():
        noise = tenon.normal_like(grad) * (sigma / batch_size)
        return param - lr * (_clipped(grad, clip, "dpsgd") + noise)


class AverageSums(NamedTuple):
    """Sums of a parameter over the steps of a window: of the steps now, of blocks of steps before, and of the window before."""

    recent: Tensor
    blocks: Tensor
    before: Tensor
    steps: int = 0  # in the first two
    steps_before: int = 0
    updates: int = 0

    @staticmethod
    def zeros_for(param: Tensor) -> AverageSums:
        recent, blocks, before = (tenon.zeros_like(param.detach()) for _ in range(3))
        return AverageSums(recent, blocks, before)

    def average(self) -> Tensor:
        """The mean over all steps in the sums."""
        if self.steps + self.steps_before == 0:
            raise ValueError("AverageSums.average: expected a step first; call average_accumulates")
        return (self.recent + self.blocks + self.before) / (self.steps + self.steps_before)


# Steps after which a sum is begun anew, so that what is added to it is not lost beside it.
_BLOCK = 16384


def average_accumulates(
    param: Tensor,
    sums: AverageSums,
    average_window: float = 0.15,
    min_average_window: int = 10000,
    max_average_window: int = 10000,
) -> AverageSums:
    """Add a step's parameter to the sums. A window ends once it has `min_average_window` steps, and as many as `average_window` of all
    updates, or `max_average_window`; the one before it is forgotten then."""
    if min_average_window > max_average_window:
        raise ValueError(
            f"average_accumulates: expected min_average_window of at most max_average_window, got {min_average_window} and "
            f"{max_average_window}"
        )
    with tenon.no_grad():
        recent, blocks, before, count, count_before, updates = sums
        recent, count, updates = recent + param.detach(), count + 1, updates + 1
        nothing = tenon.zeros_like(recent)
        if updates % _BLOCK == 0:
            recent, blocks = nothing, blocks + recent
        if count >= min_average_window and count >= min(
            max_average_window, updates * average_window
        ):
            return AverageSums(nothing, nothing, recent + blocks, 0, count, updates)
        return AverageSums(recent, blocks, before, count, count_before, updates)
