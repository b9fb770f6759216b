# SPDX-License-Identifier: Apache-2.0
"""Gradients that travel as products of two thin matrices, after Vogels, Karimireddy and Jaggi: PowerSGD (2019)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tenon
from tenon import Tensor

from .futures import Future
from .group import ProcessGroup

if TYPE_CHECKING:
    from .comm_hooks import GradBucket


class PowerSGDState:
    """What powerSGD_hook keeps from step to step.

    A gradient that is an n x m matrix (axes behind the first are taken together) travels as n x r and m x r numbers, r being
    `matrix_approximation_rank`, where that is `min_compression_rate` times less; others travel as they are, as all do in the
    first `start_powerSGD_iter` passes. With `use_error_feedback` a rank adds what was lost to its next gradient; with
    `warm_start` a step begins with the last one's matrix, instead of one at random from `random_seed`.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None = None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        random_seed: int = 0,
    ) -> None:
        if matrix_approximation_rank < 1:
            raise ValueError(
                f"PowerSGDState: expected matrix_approximation_rank >= 1, got {matrix_approximation_rank}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = (
            start_powerSGD_iter,
            min_compression_rate,
        )
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.iter = 0  # passes
        self._generator = tenon.Generator().manual_seed(random_seed)
        # By the id of a parameter, which is kept so that no other one gets it: what was lost, and the last matrix.
        self._errors: dict[int, tuple[Tensor, Tensor]] = {}
        self._starts: dict[int, tuple[Tensor, Tensor]] = {}

    def compresses(self, grad: Tensor) -> bool:
        if grad.ndim < 2 or grad.numel() == 0:
            return False
        n, m = grad.shape[0], math.prod(grad.shape[1:])
        return (n + m) * self.matrix_approximation_rank * self.min_compression_rate < n * m

    def start(self, param: Tensor, like: Tensor) -> Tensor:
        """The m x r matrix with which a step begins: the same on all ranks."""
        if self.warm_start and id(param) in self._starts:
            return self._starts[id(param)][1]
        shape = [like.shape[1], min(self.matrix_approximation_rank, *like.shape)]
        return tenon.randn(shape, generator=self._generator).to(like.dtype).to(like.device)

    def error(self, param: Tensor) -> Tensor | None:
        return self._errors[id(param)][1] if id(param) in self._errors else None

    def keep(self, param: Tensor, start: Tensor, error: Tensor) -> None:
        if self.warm_start:
            self._starts[id(param)] = (param, start)
        if self.use_error_feedback:
            self._errors[id(param)] = (param, error)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """The mean over the ranks, near it: a matrix is a product of two thin ones, which travel in two calls one behind the other."""
    group = state.process_group or bucket.group
    is_last, number = bucket.is_last(), state.iter
    if is_last:
        state.iter += 1
    flat = bucket.buffer()
    if number < state.start_powerSGD_iter:
        return Future(group.all_reduce(flat, "mean", flat, async_op=True).result)
    pairs = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    thin = [(param, grad) for param, grad in pairs if state.compresses(grad)]
    others = [grad for _, grad in pairs if not state.compresses(grad)]
    matrices, starts, lefts = [], [], []
    for param, grad in thin:
        matrix = grad.reshape([grad.shape[0], -1]).clone()
        lost = state.error(param)
        if lost is not None:
            matrix = matrix + lost
        start = _orthogonal(state.start(param, matrix))
        matrices.append(matrix)
        starts.append(start)
        lefts.append(matrix @ start)
    works: list[Any] = []
    whole = tenon.concat([grad.reshape([-1]) for grad in others]) if others else None
    if whole is not None:
        works.append(group.all_reduce(whole, "mean", whole, async_op=True))
    sent = tenon.concat([left.reshape([-1]) for left in lefts]) if lefts else None
    if sent is not None:
        works.append(group.all_reduce(sent, "mean", sent, async_op=True))

    def finish() -> Tensor:
        with tenon.no_grad():
            for work in works:
                work.wait()
            if whole is not None:
                for grad, part in zip(others, _like(whole, others), strict=True):
                    grad.copy_(part)
            if sent is None:
                return flat
            bases = [_orthogonal(left) for left in _like(sent, lefts)]
            rights = [m.transpose(0, 1) @ base for m, base in zip(matrices, bases, strict=True)]
            back = tenon.concat([right.reshape([-1]) for right in rights])
            group.all_reduce(back, "mean", back)
            for (param, grad), matrix, base, right in zip(
                thin, matrices, bases, _like(back, rights), strict=True
            ):
                product = base @ right.transpose(0, 1)
                state.keep(param, right.clone(), matrix - product)
                grad.copy_(product.reshape(list(grad.shape)))
            return flat

    return Future(finish)


def _like(flat: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """Parts of `flat`, one behind the other, in the shapes of these."""
    result, start = [], 0
    for tensor in tensors:
        result.append(flat[start : start + tensor.numel()].reshape(list(tensor.shape)))
        start += tensor.numel()
    return result


def _orthogonal(matrix: Tensor) -> Tensor:
    """Columns of length 1, each at right angles to all others; those of a matrix of zeros, too."""
    wide = matrix if matrix.dtype.itemsize >= 4 else matrix.to(tenon.float32)
    return tenon.linalg.qr(wide)[0].to(matrix.dtype)
