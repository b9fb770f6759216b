# SPDX-License-Identifier: Apache-2.0
"""Losses as modules. `reduction` is 'mean', 'sum' or 'none'.

`size_average` and `reduce` are what PyTorch had before `reduction`, in their order among the
positional settings; where one is given, both together decide.
"""

from __future__ import annotations

from typing import Any

from tenon import Tensor

from . import functional as F
from .module import Module
from .parameter import Buffer


class _Loss(Module):
    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        if size_average is not None or reduce is not None:
            is_mean = size_average is None or size_average
            reduction = "none" if reduce is False else "mean" if is_mean else "sum"
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(
                f"{type(self).__name__}: expected reduction 'mean', 'sum' or 'none', got "
                f"{reduction!r}"
            )
        self.reduction = reduction

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """Squared differences."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(x, target, self.reduction)


class L1Loss(_Loss):
    """Absolute differences."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(x, target, self.reduction)


class SmoothL1Loss(_Loss):
    """Squared differences below `beta`, absolute ones above."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(x, target, self.reduction, self.beta)


class HuberLoss(_Loss):
    """Squared differences below `delta`, linear above, with a continuous slope."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(x, target, self.reduction, self.delta)


class _ClassLoss(_Loss):
    """`weight` [classes] weighs classes; targets equal to `ignore_index` count nothing."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.weight = _constant(weight)
        self.ignore_index = ignore_index


class NLLLoss(_ClassLoss):
    """Negative log-probability [N, C, ...] of the classes in the target [N, ...]."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_ClassLoss):
    """NLLLoss of the softmax of x [N, C, ...]; the target holds classes or probabilities."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, ignore_index, reduce, reduction)
        self.label_smoothing = label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class BCELoss(_Loss):
    """Binary cross-entropy of probabilities; `weight` multiplies the elements."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.weight = _constant(weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(x, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of sigmoid(x), without overflow.

    `weight` multiplies the elements, `pos_weight` the part of the positive class.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.weight, self.pos_weight = _constant(weight), _constant(pos_weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            x, target, self.weight, self.pos_weight, self.reduction
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence from log-probabilities x to the target's.

    `reduction='batchmean'` divides the sum by the size of the batch.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        is_of_batch = reduction == "batchmean" and size_average is None and reduce is None
        super().__init__(size_average, reduce, "sum" if is_of_batch else reduction)
        if is_of_batch:
            self.reduction = "batchmean"
        self.log_target = log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(x, target, self.reduction, self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of Poisson counts; x is the logarithm of the rate, or the rate."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(x, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of normal variables with mean x and variance var."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, x: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(x, target, var, self.full, self.eps, self.reduction)


class CTCLoss(_Loss):
    """Connectionist temporal classification of log-probabilities [T, N, C]."""

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class RNNTLoss(_Loss):
    """Transducer loss of logits [N, T, S + 1, C]."""

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.blank = blank

    def forward(
        self, logits: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.rnnt_loss(
            logits, targets, input_lengths, target_lengths, self.blank, self.reduction
        )


def _constant(tensor: Tensor | None) -> Buffer | None:
    """Moves with the module, and is in its state dict as in PyTorch's; one without it loads, too."""
    return None if tensor is None else Buffer(tensor, optional=True)
