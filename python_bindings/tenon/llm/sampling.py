# SPDX-License-Identifier: Apache-2.0
"""How a token is drawn from a row of logits.

A draw depends on the row, the options and (seed, position) alone: Philox4x32-10 (Salmon et al.,
2011, "Parallel random numbers: as easy as 1, 2, 3") has no state, so a request draws the same
tokens in every batch, and again after it was preempted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenon.llm.grammar import Grammar

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


_MASK = 0xFFFFFFFF


def philox(key: int, counter: int) -> tuple[int, int, int, int]:
    """Four words of 32 bits of Philox4x32-10: `key` has 64 bits, `counter` 128."""
    x = (counter & _MASK, counter >> 32 & _MASK, counter >> 64 & _MASK, counter >> 96 & _MASK)
    first, second = key & _MASK, key >> 32 & _MASK
    for _ in range(10):
        low, high = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = (high >> 32 ^ x[1] ^ first, high & _MASK, low >> 32 ^ x[3] ^ second, low & _MASK)
        first, second = first + 0x9E3779B9 & _MASK, second + 0xBB67AE85 & _MASK
    return x


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) with 53 bits for the token at `position` of the request with `seed`: the
    same that tenon.uniform draws in float64."""
    low, high, _, _ = philox(seed & (1 << 64) - 1, position)
    return ((high << 32 | low) >> 11) / (1 << 53)


@dataclass(frozen=True)
class SamplingOptions:
    """How tokens are chosen. `temperature` 0 takes the most probable one.

    In this order: `repetition_penalty` (Keskar et al., 2019, "CTRL") over prompt and generated tokens,
    `frequency_penalty` for each time and `presence_penalty` once for generated tokens, `logit_bias`,
    `temperature`, `top_k` (0: all), `top_p` (Holtzman et al., 2020), `min_p`, a share of the largest
    probability (Nguyen et al., 2024).
    `logprobs` is how many of the most probable tokens to report; None reports the chosen one alone.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    seed: int = 0
    logprobs: int | None = None

    def __post_init__(self):
        def need(holds, name, expected):
            if not holds:
                raise ValueError(f"{name}: expected {expected}, got {getattr(self, name)}")

        infinite = float("inf")
        need(0 <= self.temperature < infinite, "temperature", "a finite number of at least 0")
        need(self.top_k >= 0, "top_k", "at least 0, which means all")
        need(0 <= self.top_p <= 1, "top_p", "a number from 0 to 1")
        need(0 <= self.min_p <= 1, "min_p", "a number from 0 to 1")
        need(0 < self.repetition_penalty < infinite, "repetition_penalty", "more than 0")
        need(-2 <= self.frequency_penalty <= 2, "frequency_penalty", "a number from -2 to 2")
        need(-2 <= self.presence_penalty <= 2, "presence_penalty", "a number from -2 to 2")
        need(self.logprobs is None or 0 <= self.logprobs <= 20, "logprobs", "0 to 20, or none")


class Sampler:
    """Draws the tokens of one request, and counts those it must penalise. With a `grammar` only tokens
    are drawn that it allows."""

    def __init__(
        self, options: SamplingOptions, prompt: Sequence[int], grammar: Grammar | None = None
    ):
        self.options = options
        self._grammar = grammar
        self._seen = set(prompt) if options.repetition_penalty != 1 else set()
        self._counts: dict[int, int] = {}
        self._counts_tokens = bool(
            options.repetition_penalty != 1 or options.frequency_penalty or options.presence_penalty
        )

    def draw(self, logits: np.ndarray, position: int):
        """(token, logprob, top) from one row of float32 logits, for the token at `position`.

        Raises FloatingPointError if a logit is NaN or the largest one is infinite, RuntimeError if the
        grammar allows none.
        """
        row = logits.astype(np.float64)
        largest = row.max()
        if not np.isfinite(largest):
            raise FloatingPointError(
                f"logits: expected finite numbers, got {largest} as the largest"
            )
        options = self.options
        token = self._chosen(self._penalised(row), position)
        if self._counts_tokens:
            self._seen.add(token)
            self._counts[token] = self._counts.get(token, 0) + 1
        total = largest + np.log(np.exp(row - largest).sum())
        top: tuple[tuple[int, float], ...] = ()
        if options.logprobs:
            best = _largest(row, min(options.logprobs, row.size))
            top = tuple((int(one), float(row[one] - total)) for one in best)
        return token, float(row[token] - total), top

    def _chosen(self, row, position):
        options = self.options
        allowed = None if self._grammar is None else self._grammar.allowed()
        if allowed is not None:
            if not allowed.size:
                raise RuntimeError("the grammar allows no token")
            row = row[allowed]
        place = (
            int(row.argmax())
            if options.temperature == 0 or options.top_p == 0
            else self._sampled(row, uniform(options.seed, position))
        )
        if allowed is None or self._grammar is None:
            return place
        self._grammar.accept(int(allowed[place]))
        return int(allowed[place])

    def _penalised(self, row):
        options = self.options
        if not self._counts_tokens and not options.logit_bias:
            return row
        changed = row.copy()
        if self._seen and options.repetition_penalty != 1:
            seen = np.fromiter(self._seen, np.int64)
            values = changed[seen]
            penalty = options.repetition_penalty
            changed[seen] = np.where(values > 0, values / penalty, values * penalty)
        for token, count in self._counts.items():
            changed[token] -= options.frequency_penalty * count + options.presence_penalty
        for token, bias in options.logit_bias.items():
            changed[token] += bias
        return changed

    def _sampled(self, row, drawn):
        """The token whose interval of the cumulated weights holds `drawn`, the largest first."""
        options = self.options
        weights = np.exp((row - row.max()) / options.temperature)
        total = weights.sum()
        if options.top_k:
            order = _largest(row, min(options.top_k, row.size))
            total = weights[order].sum()
        elif options.min_p:
            order = _largest(row, int((weights >= options.min_p).sum()))
        else:
            share = options.top_p if options.top_p < 1 else drawn
            order = self._enough(row, weights, share * total)
        sums = np.cumsum(weights[order])
        if options.top_p < 1:
            sums = sums[: int(np.searchsorted(sums, options.top_p * total)) + 1]
        if options.min_p:
            # The largest weight is 1, and weights fall.
            sums = sums[: int((weights[order[: len(sums)]] >= options.min_p).sum())]
        if options.top_p < 1 or options.min_p:
            total = sums[-1]
        index = int(np.searchsorted(sums, drawn * total, side="right"))
        return int(order[min(index, len(sums) - 1)])

    @staticmethod
    def _enough(row, weights, needed):
        """The largest, in order, until they weigh more than `needed`: sorting a whole vocabulary
        takes milliseconds."""
        count = 64
        while True:
            order = _largest(row, min(count, row.size))
            if count >= row.size or weights[order].sum() > needed * (1 + 1e-9):
                return order
            count *= 8


def _largest(row, count):
    """Where the `count` largest of `row` are, the largest first, and of equals the first."""
    if count < row.size:
        bound = np.partition(row, row.size - count)[row.size - count]
        candidates = np.flatnonzero(row >= bound)
    else:
        candidates = np.arange(row.size)
    return candidates[np.argsort(-row[candidates], kind="stable")][:count]
