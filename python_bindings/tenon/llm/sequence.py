# SPDX-License-Identifier: Apache-2.0
"""One sequence of tokens in pools of its own."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Tokens

import tenon
from tenon import Tensor
from tenon.llm.models.decoder import Decoder

BLOCK = 16  # tokens
CHUNK = 512  # tokens in one step


class Sequence:
    """The keys and values, of `dtype`, of at most `most` tokens, in blocks in order."""

    def __init__(self, decoder: Decoder, most: int, dtype: str = "float32") -> None:
        self._decoder = decoder
        self._blocks = -(-most // BLOCK)
        self._pools = decoder.new_pools(self._blocks, BLOCK, dtype)
        self.length = 0

    def append(self, tokens: Tokens[int], count: int = 1) -> Tensor:
        """Logits [count, vocab] behind each of the last `count` of `tokens`."""
        return self._append(tokens, count, self._decoder.forward)

    def embed(self, tokens: Tokens[int], count: int = 1) -> Tensor:
        """What those logits are made of: [count, hidden_size]."""
        return self._append(tokens, count, self._decoder.hidden)

    def _append(self, tokens: Tokens[int], count: int, compute: Callable[..., Tensor]) -> Tensor:
        found = []
        for first in range(0, len(tokens), CHUNK):
            piece = tokens[first : first + CHUNK]
            skipped = max(0, len(tokens) - count - first)
            rows = self._step(piece, range(min(skipped, len(piece)), len(piece)), compute)
            if rows.shape[0]:
                found.append(rows)
        return found[0] if len(found) == 1 else tenon.concat(found)

    def _step(
        self, tokens: Tokens[int], picks: Tokens[int], compute: Callable[..., Tensor]
    ) -> Tensor:
        rows = len(tokens)
        positions = tenon.arange(self.length, self.length + rows, dtype=tenon.int32)
        self.length += rows
        return compute(
            _int32(tokens),
            positions,
            positions,  # blocks in order: a token's slot is its position
            _int32([0, rows]),
            tenon.arange(self._blocks, dtype=tenon.int32).unsqueeze(0),
            _int32([self.length]),
            _int32(picks),
            self._pools,
        )


def _int32(values: Tokens[int]) -> Tensor:
    return tenon.tensor(list(values), dtype=tenon.int32)
