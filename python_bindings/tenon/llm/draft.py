# SPDX-License-Identifier: Apache-2.0
"""Guesses of what follows, which the model verifies several at a time.

Speculative decoding (Leviathan et al., 2023) for an engine whose draws have no state: each position of a
draft is drawn from the model's own logits, with the random number of that position, and the draft ends
where the draw is another token. So tokens are those without drafts, greedy or drawn, and no second
distribution is needed. What a draft costs are the rows of a step, of which a small step has some to spare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tenon.llm.sequence import Sequence as Cached


class Draft(Protocol):
    """Makes guesses for requests; called in the engine's thread."""

    count: int  # the most tokens of a guess

    def start(self, most: int) -> Guesses:
        """The guesses of a request that will have at most `most` tokens."""
        ...


class Guesses(Protocol):
    def next(self, tokens: Sequence[int], count: int) -> list[int]:
        """At most `count` tokens that may follow `tokens`, which begin with those of the last call."""
        ...


class PromptLookup:
    """Guesses that text goes on as it did where the same tokens stood before ("prompt lookup", Saxena,
    2023): behind the latest place of the last `longest` tokens, or of fewer, down to `shortest`."""

    def __init__(self, count: int = 8, longest: int = 4, shortest: int = 2) -> None:
        if count < 1 or not 1 <= shortest <= longest:
            raise ValueError(
                f"PromptLookup: expected a count of at least 1 and 1 <= shortest <= longest, got "
                f"{count}, {shortest} and {longest}"
            )
        self.count = count
        self._lengths = range(longest, shortest - 1, -1)

    def start(self, most: int) -> Guesses:
        return _Lookup(self._lengths)


class _Lookup:
    def __init__(self, lengths: range) -> None:
        self._lengths = lengths
        self._ends: dict[tuple[int, ...], int] = {}  # the latest index behind some tokens
        self._known = 0

    def next(self, tokens: Sequence[int], count: int) -> list[int]:
        # All beginnings but the whole: what is looked up must have something behind it.
        for end in range(self._known + 1, len(tokens)):
            for length in self._lengths:
                if length <= end:
                    self._ends[tuple(tokens[end - length : end])] = end
        self._known = max(self._known, len(tokens) - 1)
        for length in self._lengths:
            place = self._ends.get(tuple(tokens[-length:])) if length < len(tokens) else None
            if place is not None:
                return list(tokens[place : place + count])
        return []


class DraftModel:
    """Guesses the likeliest tokens of a smaller model with the same tokens. `model` is a decoder or has
    one as `decoder`. Each request has keys and values of its own beside those of the engine."""

    def __init__(self, model: Any, count: int = 4) -> None:
        if count < 1:
            raise ValueError(f"DraftModel: expected a count of at least 1, got {count}")
        self.count = count
        self.decoder = getattr(model, "decoder", model)

    def start(self, most: int) -> Guesses:
        return _Model(self.decoder, min(most, self.decoder.config.max_positions))


class _Model:
    def __init__(self, decoder: Any, most: int) -> None:
        self._run = Cached(decoder, most)
        self._most = most
        self._tokens: list[int] = []  # those whose keys and values are there

    def next(self, tokens: Sequence[int], count: int) -> list[int]:
        same = 0
        for ours, theirs in zip(self._tokens, tokens[:-1]):
            if ours != theirs:
                break
            same += 1
        del self._tokens[same:]
        self._run.length = same
        guessed: list[int] = []
        left = list(tokens[same:])
        for _ in range(min(count, self._most - len(tokens))):
            logits = self._run.append(left)
            self._tokens += left
            guessed.append(int(logits[0].argmax().item()))
            left = guessed[-1:]
        return guessed
