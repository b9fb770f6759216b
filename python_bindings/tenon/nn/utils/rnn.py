# SPDX-License-Identifier: Apache-2.0
"""Sequences of different length: padding, and packing without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tenon
from tenon import Tensor


class PackedSequence(NamedTuple):
    """Sequences, sorted by falling length, step after step without padding.

    `data` is [all steps, ...]; `batch_sizes` (on the host) tells how many sequences have each step.
    `sorted_indices` and `unsorted_indices` lead from the order of the batch to that of `data` and
    back; None means that both are the same.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args, **kwargs) -> PackedSequence:
        """Move data and indices; `batch_sizes` stays on the host."""
        data = self.data.to(*args, **kwargs)
        indices = (
            None if index is None else index.to(data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        )
        return PackedSequence(data, self.batch_sizes, *indices)

    def padded(self, padding_value: float = 0.0, total_length: int | None = None):
        """[length, batch, ...] in sorted order, and the lengths [batch] on the device of `data`."""
        sizes = self.batch_sizes.tolist()
        batch, steps = sizes[0], total_length or len(sizes)
        lengths = _lengths_of(sizes)
        out = tenon.full(
            [steps * batch, *self.data.shape[1:]],
            padding_value,
            dtype=self.data.dtype,
            device=self.data.device,
        )
        rows = tenon.tensor(_rows(sizes, batch), device=self.data.device)
        out = tenon.index_put(out, [rows], self.data)
        shape = [steps, batch, *self.data.shape[1:]]
        return out.reshape(shape), tenon.tensor(lengths, device=self.data.device)

    def with_padded(self, x: Tensor) -> PackedSequence:
        """The same lengths and order with the data of `x` [length, batch, ...]."""
        steps, batch = x.shape[:2]
        rows = tenon.tensor(_rows(self.batch_sizes.tolist(), batch), device=x.device)
        flat = x.reshape([steps * batch, *x.shape[2:]])
        return self._replace(data=tenon.index_select(flat, rows, 0))


def _rows(sizes: Sequence[int], batch: int) -> list[int]:
    """Which rows of [length * batch] hold data, step after step."""
    return [t * batch + b for t, size in enumerate(sizes) for b in range(size)]


def _lengths_of(sizes: Sequence[int]) -> list[int]:
    lengths = [0] * sizes[0]
    for size in sizes:
        for b in range(size):
            lengths[b] += 1
    return lengths


def pack_padded_sequence(
    x: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack `x` [length, batch, ...]; `lengths` must fall unless `enforce_sorted` is false."""
    counts = lengths.tolist() if isinstance(lengths, Tensor) else [int(n) for n in lengths]
    if batch_first:
        x = x.transpose(0, 1)
    if len(counts) != x.shape[1] or min(counts, default=0) < 1 or max(counts) > x.shape[0]:
        raise ValueError(
            f"pack_padded_sequence: expected {x.shape[1]} lengths from 1 to {x.shape[0]}, got "
            f"{counts}"
        )
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    falling = [counts[i] for i in order]
    if enforce_sorted and counts != falling:
        raise ValueError(
            f"pack_padded_sequence: expected lengths that fall, got {counts}; pass "
            "enforce_sorted=False to have them sorted"
        )
    sorted_indices = unsorted_indices = None
    if not enforce_sorted:
        sorted_indices = tenon.tensor(order, device=x.device)
        back = sorted(range(len(order)), key=order.__getitem__)
        unsorted_indices = tenon.tensor(back, device=x.device)
        x = tenon.index_select(x, sorted_indices, 1)
    sizes = [sum(n > t for n in falling) for t in range(falling[0])]
    packed = PackedSequence(x, tenon.tensor(sizes), sorted_indices, unsorted_indices)
    return packed.with_padded(x)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch in its first order, and the lengths on the host."""
    if total_length is not None and total_length < len(sequence.batch_sizes):
        raise ValueError(
            f"pad_packed_sequence: expected total_length >= {len(sequence.batch_sizes)}, got "
            f"{total_length}"
        )
    x, lengths = sequence.padded(padding_value, total_length)
    if sequence.unsorted_indices is not None:
        x = tenon.index_select(x, sequence.unsorted_indices, 1)
        lengths = tenon.index_select(lengths, sequence.unsorted_indices, 0)
    return x.transpose(0, 1) if batch_first else x, lengths.cpu()


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences [length, ...] of different length, filled up with `padding_value`."""
    if padding_side not in ("left", "right"):
        raise ValueError(
            f"pad_sequence: expected padding_side 'left' or 'right', got {padding_side!r}"
        )
    longest = max(len(each) for each in sequences)
    rows = []
    for each in sequences:
        rest = longest - len(each)
        margins = [rest, 0] if padding_side == "left" else [0, rest]
        rows.append(tenon.pad(each, margins + [0, 0] * (each.ndim - 1), value=padding_value))
    return tenon.stack(rows, 0 if batch_first else 1)


def unpad_sequence(
    padded: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch, each of its own length."""
    counts = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if not batch_first:
        padded = padded.transpose(0, 1)
    return [padded[i, :count] for i, count in enumerate(counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences [length, ...] of different length."""
    lengths = [len(each) for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed: PackedSequence) -> list[Tensor]:
    """The sequences of a PackedSequence in their first order."""
    return unpad_sequence(*pad_packed_sequence(packed))


def reverse_sequences(x: Tensor, lengths: Tensor | None) -> Tensor:
    """`x` [length, batch, ...] with the steps of every sequence reversed within its length."""
    if lengths is None:
        return x.flip([0])
    steps, batch = x.shape[:2]
    t = tenon.arange(steps, device=x.device).unsqueeze(1)
    source = tenon.where(t < lengths, lengths - 1 - t, t)
    rows = source * batch + tenon.arange(batch, device=x.device)
    flat = x.reshape([steps * batch, *x.shape[2:]])
    return tenon.index_select(flat, rows.reshape([-1]), 0).reshape([*x.shape])
