# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

# Stands for log(0). It is finite, so that gradients of logsumexp are zero rather than NaN.
_IMPOSSIBLE = -1e30


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative log-probability of the target sequences under all alignments.

    `log_probs` is [T, N, C]. `targets` is [N, S], or a vector of all targets one after another.
    'mean' divides each loss by the length of its target first. A target that needs more steps than
    the input has costs infinity; `zero_infinity` makes that 0.
    """
    steps, batch, _ = log_probs.shape
    device = log_probs.device
    inputs = _lengths(input_lengths)
    lengths = _lengths(target_lengths)
    if len(inputs) != batch or len(lengths) != batch or max(inputs) > steps:
        raise ValueError(
            f"ctc_loss: expected {batch} lengths of at most {steps} steps, got input_lengths "
            f"{inputs} and target_lengths {lengths}"
        )
    longest = max(max(lengths), 1)
    labels = _extended(targets, lengths, longest, blank).to(device)  # [N, 2 * longest + 1]
    states = labels.shape[1]
    # A label may follow the one before it directly unless they are equal or it is a blank.
    two_before = tenon.pad(labels, [0, 0, 2, 0], value=blank)[:, :states]
    skip = (labels != blank) & (labels != two_before)
    emitted = tenon.gather(
        log_probs, labels.unsqueeze(0).expand([steps, batch, states]), 2
    )  # [T, N, states]
    first = (tenon.arange(states, device=device) < 2).unsqueeze(0)
    alpha = tenon.where(first, emitted[0], _IMPOSSIBLE)
    active = tenon.tensor(inputs, device=device).unsqueeze(1)
    for step in range(1, steps):
        one = tenon.pad(alpha, [0, 0, 1, 0], value=_IMPOSSIBLE)[:, :states]
        two = tenon.pad(alpha, [0, 0, 2, 0], value=_IMPOSSIBLE)[:, :states]
        ways = tenon.stack([alpha, one, tenon.where(skip, two, _IMPOSSIBLE)])
        moved = tenon.logsumexp(ways, 0) + emitted[step]
        alpha = tenon.where(active > step, moved, alpha)
    last = tenon.tensor([[2 * n, max(2 * n - 1, 0)] for n in lengths], device=device)
    ends = tenon.gather(alpha, last, 1)
    only_blank = tenon.tensor([[False, n == 0] for n in lengths], device=device)
    loss = -tenon.logsumexp(tenon.where(only_blank, _IMPOSSIBLE, ends), 1)
    impossible = loss > -_IMPOSSIBLE / 2
    loss = tenon.where(impossible, 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        scale = tenon.tensor([float(max(n, 1)) for n in lengths], dtype=loss.dtype, device=device)
        return (loss / scale).mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"ctc_loss: expected reduction 'mean', 'sum' or 'none', got {reduction!r}")


def _lengths(lengths: Tensor | Sequence[int]) -> list[int]:
    return lengths.tolist() if isinstance(lengths, Tensor) else [int(n) for n in lengths]


def _extended(targets: Tensor, lengths: list[int], longest: int, blank: int) -> Tensor:
    """The labels of each target with blanks before, between and after them."""
    listed = targets.tolist()
    rows = []
    start = 0
    for i, length in enumerate(lengths):
        if targets.ndim == 2:
            labels = listed[i][:length]
        else:
            labels, start = listed[start : start + length], start + length
        row = [blank] * (2 * longest + 1)
        row[1 : 2 * length : 2] = labels
        rows.append(row)
    return tenon.tensor(rows, dtype=tenon.int64)
