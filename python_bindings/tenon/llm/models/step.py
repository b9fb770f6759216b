# SPDX-License-Identifier: Apache-2.0
"""The numbers of a step: a ragged batch of T tokens of B sequences, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tenon
from tenon import Tensor
from tenon.llm.models.config import DecoderConfig

Pools = list[tuple[Tensor, Tensor]]


class Numbers(NamedTuple):
    """Of the rows, `rows` [W] have a slot: index `place` of block `block`."""

    tokens: Tensor
    positions: Tensor
    rows: Tensor
    block: Tensor
    place: Tensor
    offsets: Tensor
    table: Tensor
    lengths: Tensor
    picks: Tensor


def check_step(
    tokens: Tensor,
    positions: Tensor,
    slots: Tensor,
    offsets: Tensor,
    table: Tensor,
    lengths: Tensor,
    picks: Tensor,
    config: DecoderConfig,
    blocks: int,
    block_size: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """`rows`, `block` and `place` of Numbers, or a ValueError that names what is out of range."""
    rows = tokens.shape[0]
    if positions.shape[0] != rows or slots.shape[0] != rows:
        raise ValueError(
            f"Decoder: expected {rows} positions and slots, one a token, got "
            f"{positions.shape[0]} and {slots.shape[0]}"
        )
    _check_range("tokens", tokens.tolist(), 0, config.vocab_size)
    _check_range("positions", positions.tolist(), 0, config.max_positions)
    numbers = slots.tolist()
    _check_range("slots", numbers, -1, blocks * block_size)
    _check_range("picks", picks.tolist(), 0, rows)
    ranges = _ranges(offsets.tolist(), rows)
    _check_blocks(ranges, lengths.tolist(), table.tolist(), blocks, block_size)
    written = [row for row, slot in enumerate(numbers) if slot >= 0]
    slots_of_rows = [numbers[row] for row in written]
    return (
        tenon.tensor(written, dtype=tenon.int64),
        tenon.tensor([slot // block_size for slot in slots_of_rows], dtype=tenon.int64),
        tenon.tensor([slot % block_size for slot in slots_of_rows], dtype=tenon.int64),
    )


def _check_blocks(
    ranges: Sequence[tuple[int, int]],
    lengths: Sequence[int],
    table: Sequence[Sequence[int]],
    blocks: int,
    block_size: int,
) -> None:
    if len(table) != len(ranges) or len(lengths) != len(ranges):
        raise ValueError(
            f"Decoder: expected {len(ranges)} rows of the table and lengths, one a sequence, "
            f"got {len(table)} and {len(lengths)}"
        )
    for sequence, (first, last) in enumerate(ranges):
        length, row = lengths[sequence], table[sequence]
        most = len(row) * block_size
        if not last - first <= length <= most:
            raise ValueError(
                f"Decoder: sequence {sequence}: expected a length from its {last - first} rows to "
                f"the {most} slots of its blocks, got {length}"
            )
        used = row[: -(-length // block_size)]
        _check_range(f"sequence {sequence}: blocks", used, 0, blocks)


def _ranges(offsets: Sequence[int], rows: int) -> list[tuple[int, int]]:
    ranges = list(zip(offsets[:-1], offsets[1:]))
    if offsets[0] != 0 or offsets[-1] != rows or any(first > last for first, last in ranges):
        raise ValueError(
            f"Decoder: expected offsets that rise from 0 to the {rows} rows, got {list(offsets)}"
        )
    return ranges


def _check_range(name: str, values: Sequence[int], first: int, end: int) -> None:
    if not values or (first <= min(values) and max(values) < end):
        return
    for place, value in enumerate(values):
        if not first <= value < end:
            raise ValueError(
                f"Decoder: {name}: expected numbers from {first} to {end - 1}, got {value} at {place}"
            )
