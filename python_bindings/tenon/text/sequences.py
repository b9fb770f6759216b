# SPDX-License-Identifier: Apache-2.0
"""Batches of sequences of different length."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor


def truncate(sequence: Sequence[int], max_length: int) -> list[int]:
    """The first `max_length` numbers."""
    return list(sequence[:max_length])


def pad_sequences(
    sequences: Sequence[Sequence[int]], padding_value: int = 0, length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences as a tensor [count, length], int64, filled up with `padding_value`, and their
    lengths [count]. `length` is that of the longest one unless given."""
    longest = max(map(len, sequences), default=0)
    length = longest if length is None else length
    if longest > length:
        raise ValueError(
            f"pad_sequences: expected sequences of at most {length} numbers, got one of {longest}; "
            "truncate them first"
        )
    rows = [[*sequence, *[padding_value] * (length - len(sequence))] for sequence in sequences]
    lengths = [len(sequence) for sequence in sequences]
    table = tenon.tensor(rows, dtype=tenon.int64).reshape([len(rows), length])
    return table, tenon.tensor(lengths, dtype=tenon.int64)
