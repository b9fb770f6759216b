# SPDX-License-Identifier: Apache-2.0
"""The next token from logits: penalties, temperature, top-k, top-p, min-p, one uniform number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tenon
from tenon import Tensor


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    `temperature` 0 takes the likeliest token. Otherwise one is drawn from softmax(logits /
    temperature), of which remain the `top_k` likeliest (0: all), then the fewest that together reach
    `top_p` (Holtzman et al., 2020), then those with at least `min_p` of the likeliest's probability
    (Nguyen et al., 2024). Logits of tokens that are in the prompt or the answer are divided by
    `repetition_penalty` where positive, else multiplied (Keskar et al., 2019). `seed` and the position
    of a token determine its random number, whatever else is drawn.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, first, last in (
            ("temperature", 0.0, math.inf),
            ("top_p", 0.0, 1.0),
            ("min_p", 0.0, 1.0),
            ("repetition_penalty", 0.0, math.inf),
        ):
            value = getattr(self, name)
            if not first <= value <= last or math.isinf(value):
                raise ValueError(f"{name}: expected a number from {first} to {last}, got {value}")
        if self.repetition_penalty == 0:
            raise ValueError("repetition_penalty: expected more than 0, got 0")
        if type(self.top_k) is not int or self.top_k < 0:
            raise ValueError(f"top_k: expected a number of tokens, 0 for all, got {self.top_k}")

    def choose(self, logits: Tensor, seen: Sequence[int], position: int) -> int:
        """The token that follows, of `logits` [vocab], after the tokens `seen`; it will be the one at
        `position` of its sequence."""
        logits = logits.to(tenon.float64)
        if bool(tenon.isnan(logits).any()):
            raise ValueError(f"the model's logits for position {position} are not numbers (NaN)")
        if self.repetition_penalty != 1.0 and seen:
            indices = tenon.tensor(sorted(set(seen)), dtype=tenon.int64)
            old, penalty = logits[indices], self.repetition_penalty
            logits[indices] = tenon.where(old > 0, old / penalty, old * penalty)
        if self.temperature == 0:
            return int(tenon.argmax(logits).item())
        count = min(self.top_k or logits.shape[0], logits.shape[0])
        values, tokens = tenon.topk(logits, count)
        # The largest goes first, so that a small temperature cannot overflow.
        weights = tenon.exp((values - values[0]) / self.temperature)
        sums = tenon.cumsum(weights, 0)
        before = sums - weights
        kept = tenon.logical_and(before < self.top_p * sums[-1], weights >= self.min_p)
        kept[0] = True
        remaining = int(kept.to(tenon.int64).sum().item())  # weights fall, so these come first
        sums = sums[:remaining]
        drawn = _uniform(self.seed, position) * float(sums[-1].item())
        place = int((sums <= drawn).to(tenon.int64).sum().item())
        return int(tokens[min(place, remaining - 1)].item())


def _uniform(seed: int, position: int) -> float:
    generator = tenon.Generator(seed=0)
    generator.set_state((seed % 2**64, position))
    with generator:
        return float(tenon.uniform([1], 0.0, 1.0, dtype=tenon.float64).item())
