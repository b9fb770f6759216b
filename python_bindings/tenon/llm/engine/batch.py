# SPDX-License-Identifier: Apache-2.0
"""The inputs of one step: pieces of requests as one ragged batch.

Kernels choose their way by the number of rows, and with it the order in which products are added:
small products of matrices are computed otherwise than large ones. So that a token's bits depend on
no neighbour, a step never has fewer rows than `minimum_rows`. The rows that fill it up are a sequence
of their own, whose blocks are the first of the pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import tenon

from .requests import Request
from .schedule import Piece

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


def padding_blocks(minimum_rows: int, block_size: int) -> int:
    """How many blocks at the beginning of the pools are reserved for rows that fill a step up."""
    return -(-minimum_rows // block_size)


class Batch(NamedTuple):
    """What `Decoder.forward` takes before the pools, and whose the picked rows are, in order, with how
    many of them."""

    arguments: tuple[tenon.Tensor, ...]
    picked: list[tuple[Request, int]]


def build_batch(
    pieces: Sequence[Piece | tuple[Request, int]],
    block_size: int,
    minimum_rows: int,
    table_width: int,
) -> Batch:
    """The batch of `pieces`: picks for each that reaches the end of its request's tokens, that of the last
    one and of each guess behind it."""
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    offsets, lengths = [0], []
    picks: list[int] = []
    tables: list[Sequence[int]] = []
    picked: list[tuple[Request, int]] = []
    for request, length in pieces:
        assert request.table is not None  # of a request that was planned
        start, end = request.computed, request.computed + length
        blocks = request.table.blocks
        tokens += (request.tokens + request.draft)[start:end]
        positions += range(start, end)
        slots += [
            blocks[place // block_size] * block_size + place % block_size
            for place in range(start, end)
        ]
        offsets.append(len(tokens))
        lengths.append(end)
        tables.append(blocks[: -(-end // block_size)])
        count = 1 + end - len(request.tokens)
        if count > 0:
            picks += range(len(tokens) - count, len(tokens))
            picked.append((request, count))
    padding = minimum_rows - len(tokens)
    if padding > 0:
        tokens += [0] * padding
        positions += range(padding)
        slots += range(padding)
        offsets.append(len(tokens))
        lengths.append(padding)
        tables.append(range(padding_blocks(minimum_rows, block_size)))
    if picks:  # the logits are a product of matrices, too
        picks += [picks[-1]] * (minimum_rows - len(picks))
    table = np.zeros((len(tables), max(table_width, max(map(len, tables)))), np.int32)
    for row, used in enumerate(tables):
        table[row, : len(used)] = used
    lists = (tokens, positions, slots, offsets, table, lengths, picks)
    return Batch(tuple(tenon.asarray(np.asarray(one, np.int32)) for one in lists), picked)
