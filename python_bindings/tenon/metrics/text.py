# SPDX-License-Identifier: Apache-2.0
"""Metrics of texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import tenon

from .base import Metric


class BLEU(Metric):
    """How many runs of 1 to `max_n` tokens of a translation are in one of its references, with a
    penalty for short translations (Papineni et al., 2002). Counted over the whole corpus."""

    def __init__(self, max_n: int = 4) -> None:
        super().__init__()
        self.max_n = max_n

    def update(
        self,
        translations: Sequence[Sequence[str]],
        references: Sequence[Sequence[Sequence[str]]],
    ) -> None:
        """Lists of tokens; several references for each translation."""
        if len(translations) != len(references):
            raise ValueError(
                f"BLEU.update: expected references for {len(translations)} translations, got "
                f"{len(references)}"
            )
        # Found and possible runs of each length, then the lengths of translations and references.
        counts = [0] * (2 * self.max_n + 2)
        for translation, several in zip(translations, references):
            length = len(translation)
            counts[-2] += length
            counts[-1] += min((abs(len(r) - length), len(r)) for r in several)[1]
            for n in range(1, self.max_n + 1):
                largest: Counter = Counter()
                for reference in several:
                    largest |= _runs(reference, n)
                found = _runs(translation, n)
                counts[n - 1] += sum((found & largest).values())
                counts[self.max_n + n - 1] += sum(found.values())
        self._add("counts", tenon.tensor(counts, dtype=tenon.int64))

    def compute(self) -> float:
        *runs, length, wanted = self._sum("counts").tolist()
        found, possible = runs[: self.max_n], runs[self.max_n :]
        if not all(found):
            return 0.0
        mean = sum(math.log(f / p) for f, p in zip(found, possible)) / self.max_n
        return math.exp(mean + min(0.0, 1.0 - wanted / length))


def _runs(tokens: Sequence[str], n: int) -> Counter:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
