# SPDX-License-Identifier: Apache-2.0
"""Losses over alignments: reductions, and targets one after another, around the operators."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

from ._common import reduced


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative log-probability of the target sequences under all alignments (tenon.ctc_loss).

    `log_probs` is [T, N, C], or [T, C] for one sequence. `targets` is [N, S], or a vector of all
    targets one after another. 'mean' divides each loss by the length of its target first. A target
    that needs more steps than the input has costs infinity; `zero_infinity` makes that 0.
    """
    if log_probs.ndim == 2:
        loss = ctc_loss(
            log_probs.unsqueeze(1),
            targets.reshape([1, -1]),
            _lengths(input_lengths, log_probs).reshape([1]),
            _lengths(target_lengths, log_probs).reshape([1]),
            blank,
            reduction,
            zero_infinity,
        )
        return loss.squeeze(0) if reduction == "none" else loss
    steps, batch, _ = log_probs.shape
    inputs, lengths = _lengths(input_lengths, log_probs), _lengths(target_lengths, log_probs)
    if inputs.shape != (batch,) or lengths.shape != (batch,):
        raise ValueError(
            f"ctc_loss: expected {batch} lengths of at most {steps} steps, got input_lengths "
            f"{inputs.tolist()} and target_lengths {lengths.tolist()}"
        )
    if targets.ndim == 1:
        targets = tenon.sequence_pad(targets, lengths)
    loss = tenon.ctc_loss(log_probs, targets, inputs, lengths, blank, zero_infinity)
    if reduction == "mean":
        loss = loss / tenon.clip(lengths, 1).cast(loss.dtype)
    return reduced(loss, reduction, "ctc_loss")


def rnnt_loss(
    logits: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-probability of the target sequences under a transducer (tenon.rnnt_loss).

    `logits` is [N, T, S + 1, C], not normalised; `targets` is [N, S].
    """
    loss = tenon.rnnt_loss(
        tenon.log_softmax(logits, -1),
        targets,
        _lengths(input_lengths, logits),
        _lengths(target_lengths, logits),
        blank,
    )
    return reduced(loss, reduction, "rnnt_loss")


def _lengths(lengths: Tensor | Sequence[int], like: Tensor) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths.to(like.device)
    return tenon.tensor(lengths, dtype=tenon.int64, device=like.device)
