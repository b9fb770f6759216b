# SPDX-License-Identifier: Apache-2.0
"""What a step takes, learnt from the steps that were.

The time of a step is a + b * rows + c * tokens: `rows` are those of requests that decode, `tokens` those of prompts.
A Kalman filter follows the three numbers (Kalman, 1960): each step corrects those that it tells about, by how well
they are known, and what no step has told for a while is known less well, so that estimates follow the machine and
the lengths of contexts.
"""

from __future__ import annotations

import math

# Prompts are cut at multiples of so many tokens, and get as many in each step: kernels take rows in tiles.
LEAST_TOKENS = 8

_FIXED = 8.0  # a, in tokens, before steps of different sizes have told
_NOISE = 0.1  # the standard deviation of the time of equal steps, by that time
_DRIFT = 0.05  # that of what a number changes by from one step to the next, by that number
_UNKNOWN = 1.0  # the most that a number's standard deviation is, by that number
_LEAST = 0.05  # the least that a number is, by what it would be if all tokens took the same
_MOST = 2.0  # times what was expected is the most that a step counts: some wait for other programs


class StepCost:
    """An estimate of the seconds of steps."""

    def __init__(self) -> None:
        self._numbers: list[float] = []  # a, b, c
        self._covariance: list[list[float]] = []

    def seconds(self, rows: int, tokens: int) -> float | None:
        """What a step of `rows` rows of requests that decode and `tokens` of prompts takes; None before the first."""
        if not self._numbers:
            return None
        fixed, of_row, of_token = self._numbers
        return fixed + of_row * rows + of_token * tokens

    def learn(self, rows: int, tokens: int, seconds: float) -> None:
        """Such a step took `seconds`."""
        expected = self.seconds(rows, tokens)
        each = max(seconds if expected is None else expected, 1e-6) / (_FIXED + rows + tokens)
        usual = (_FIXED * each, each, each)
        if expected is None:
            self._numbers = list(usual)
            self._covariance = [
                [(_UNKNOWN * number) ** 2 if i == j else 0.0 for j in range(3)]
                for i, number in enumerate(usual)
            ]
            return
        # The numbers may have changed since the last step. What nearly vanished changes as others of its kind do.
        for i, least in enumerate(usual):
            number = max(self._numbers[i], least)
            if self._covariance[i][i] < (_UNKNOWN * number) ** 2:
                self._covariance[i][i] += (_DRIFT * number) ** 2
        step = (1.0, float(rows), float(tokens))
        shares = [sum(c * x for c, x in zip(row, step)) for row in self._covariance]
        variance = sum(x * share for x, share in zip(step, shares)) + (_NOISE * expected) ** 2
        error = min(seconds, _MOST * expected) - expected
        gains = [share / variance for share in shares]
        # No token is free, and none may seem so.
        self._numbers = [
            max(n + gain * error, _LEAST * least)
            for n, gain, least in zip(self._numbers, gains, usual)
        ]
        self._covariance = [
            [c - gain * share for c, share in zip(row, shares)]
            for row, gain in zip(self._covariance, gains)
        ]

    def prompt_tokens(self, decoding: int, present: int, slowdown: float) -> float:
        """How many tokens of prompts a step may have in which `decoding` requests decode, so that it takes at
        most `slowdown` times as long as one in which all that are `present` do."""
        least, most = self.seconds(decoding, 0), self.seconds(present, 0)
        if least is None or most is None:
            return math.inf
        tokens = (slowdown * most - least) / self._numbers[2]
        if math.isinf(tokens):
            return math.inf
        return max(LEAST_TOKENS, int(tokens) // LEAST_TOKENS * LEAST_TOKENS)
