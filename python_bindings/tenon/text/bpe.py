# SPDX-License-Identifier: Apache-2.0
"""Byte-pair encoding (Sennrich et al., 2016) on bytes, so that no text is unknown."""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

Pair = tuple[int, int]

# A token lies within a word and the space before it, a run of other characters, or a run of spaces.
_PIECES = re.compile(r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+")


class BytePairTokenizer:
    """Tokens 0 to 255 are bytes; each further one joins two others, in the order in which training
    found them; special tokens come last and are never made from text."""

    def __init__(self, merges: Iterable[Pair], special_tokens: Iterable[str] = ()) -> None:
        self.merges = [(int(first), int(second)) for first, second in merges]
        self._bytes = [bytes([value]) for value in range(256)]
        for first, second in self.merges:
            if max(first, second) >= len(self._bytes):
                raise ValueError(
                    f"BytePairTokenizer: expected merges of earlier tokens, got ({first}, {second}) "
                    f"for token {len(self._bytes)}"
                )
            self._bytes.append(self._bytes[first] + self._bytes[second])
        self._rank = {pair: 256 + i for i, pair in enumerate(self.merges)}
        self.special_tokens = {name: len(self._bytes) + i for i, name in enumerate(special_tokens)}
        self._known: dict[str, list[int]] = {}  # pieces that were encoded before

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        special_tokens: Iterable[str] = (),
        min_count: int = 2,
    ) -> BytePairTokenizer:
        """A tokenizer of up to `vocab_size` tokens: joins the pair that is most frequent in
        `texts`, again and again, as long as one occurs `min_count` times. Of equally frequent pairs
        the smaller one is first.
        """
        special_tokens = list(special_tokens)
        count = vocab_size - 256 - len(special_tokens)
        if count < 0:
            raise ValueError(
                f"BytePairTokenizer.train: expected vocab_size of at least {256 + len(special_tokens)}, "
                f"bytes and special tokens, got {vocab_size}"
            )
        pieces: Counter[str] = Counter()
        for text in texts:
            pieces.update(_PIECES.findall(text))
        return cls(_found_merges(pieces, count, min_count), special_tokens)

    def __len__(self) -> int:
        return len(self._bytes) + len(self.special_tokens)

    def encode(self, text: str) -> list[int]:
        """The numbers of the tokens of a text."""
        numbers: list[int] = []
        for piece in _PIECES.findall(text):
            known = self._known.get(piece)
            if known is None:
                known = self._known[piece] = self._encode_piece(piece)
            numbers += known
        return numbers

    def _encode_piece(self, piece: str) -> list[int]:
        tokens = list(piece.encode("utf-8"))
        while len(tokens) > 1:
            rank = min(self._rank.get(pair, len(self)) for pair in zip(tokens, tokens[1:]))
            if rank == len(self):
                break
            tokens = _joined(tokens, self.merges[rank - 256], rank)
        return tokens

    def __call__(self, text: str) -> list[str]:
        return [self._bytes[n].decode("utf-8", errors="replace") for n in self.encode(text)]

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of numbers; bytes that are no UTF-8 become U+FFFD."""
        names = {number: name.encode("utf-8") for name, number in self.special_tokens.items()}
        parts = [self._bytes[n] if n < len(self._bytes) else names[n] for n in numbers]
        return b"".join(parts).decode("utf-8", errors="replace")

    def save(self, path: str | Path) -> None:
        """Writes merges and special tokens as JSON."""
        content = {"merges": self.merges, "special_tokens": list(self.special_tokens)}
        Path(path).write_text(json.dumps(content), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> BytePairTokenizer:
        """Reads what save() wrote."""
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(content["merges"], content["special_tokens"])

    def __repr__(self) -> str:
        return f"BytePairTokenizer({len(self)} tokens)"


def _joined(tokens: list[int], pair: Pair, new: int) -> list[int]:
    """The tokens with `new` in place of every pair."""
    result: list[int] = []
    i = 0
    while i < len(tokens):
        if i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == pair:
            result.append(new)
            i += 2
        else:
            result.append(tokens[i])
            i += 1
    return result


def _found_merges(pieces: Counter[str], count: int, min_count: int) -> list[Pair]:
    words = [(list(piece.encode("utf-8")), times) for piece, times in sorted(pieces.items())]
    counts: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, (tokens, times) in enumerate(words):
        for pair in zip(tokens, tokens[1:]):
            counts[pair] += times
            where[pair].add(number)
    # Entries of the heap may be out of date: one counts only if it has the present number.
    heap = [(-times, pair) for pair, times in counts.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    while heap and len(merges) < count:
        negative, pair = heapq.heappop(heap)
        if counts[pair] != -negative:
            continue
        if -negative < min_count:
            break
        new = 256 + len(merges)
        merges.append(pair)
        changed: set[Pair] = set()
        for number in where.pop(pair):
            tokens, times = words[number]
            for old in zip(tokens, tokens[1:]):
                counts[old] -= times
                changed.add(old)
            tokens = _joined(tokens, pair, new)
            words[number] = (tokens, times)
            for made in zip(tokens, tokens[1:]):
                counts[made] += times
                where[made].add(number)
                changed.add(made)
        for each in changed:
            if counts[each] > 0:
                heapq.heappush(heap, (-counts[each], each))
    return merges
