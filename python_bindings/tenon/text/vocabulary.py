# SPDX-License-Identifier: Apache-2.0
"""Vocabulary: tokens and their numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


class Vocabulary:
    """Tokens numbered from 0. A token that is not among them has the number of `unknown`, or is an
    error where that is None."""

    def __init__(self, tokens: Iterable[str], unknown: str | None = None) -> None:
        self.tokens = list(tokens)
        self._index = {token: number for number, token in enumerate(self.tokens)}
        if len(self._index) != len(self.tokens):
            twice = next(t for t, count in Counter(self.tokens).items() if count > 1)
            raise ValueError(f"Vocabulary: expected different tokens, got {twice!r} more than once")
        if unknown is not None and unknown not in self._index:
            raise ValueError(
                f"Vocabulary: expected the token {unknown!r} for unknown ones among all"
            )
        self.unknown = unknown

    @classmethod
    def build(
        cls,
        sequences: Iterable[Iterable[str]],
        min_count: int = 1,
        max_size: int | None = None,
        special_tokens: Sequence[str] = (),
        unknown: str | None = None,
    ) -> Vocabulary:
        """The tokens of `sequences` that occur `min_count` times or more, the most frequent first
        and equally frequent ones in alphabetic order, behind the special ones; at most `max_size`
        of all."""
        counts: Counter[str] = Counter()
        for sequence in sequences:
            counts.update(sequence)
        special = list(special_tokens)
        if unknown is not None and unknown not in special:
            special.append(unknown)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        tokens = special + [t for t, count in ordered if count >= min_count and t not in special]
        return cls(tokens[:max_size], unknown)

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._index

    def __getitem__(self, token: str) -> int:
        """The number of a token."""
        number = self._index.get(token)
        if number is not None:
            return number
        if self.unknown is None:
            raise KeyError(
                f"Vocabulary: {token!r} is not among its {len(self)} tokens; build it with "
                "unknown='<unk>' to number such tokens alike"
            )
        return self._index[self.unknown]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of tokens."""
        return [self[token] for token in tokens]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The tokens of numbers."""
        return [self.tokens[number] for number in numbers]

    def save(self, path: str | Path) -> None:
        """Writes the tokens as JSON."""
        content = {"tokens": self.tokens, "unknown": self.unknown}
        Path(path).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Reads what save() wrote."""
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(content["tokens"], content["unknown"])

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, unknown={self.unknown!r})"
