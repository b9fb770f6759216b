# SPDX-License-Identifier: Apache-2.0
"""How well sequences of tags mark chunks, such as names in a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tenon
from tenon import Tensor

from .base import Metric

# What the tags of a chunk say, in the order of their numbers: the first of a chunk, inside, its last, or a chunk of one.
_SCHEMES = {"plain": "I", "IOB": "BI", "IOE": "IE", "IOBES": "BIES"}


class Chunk(NamedTuple):
    begin: int
    end: int  # behind the last
    kind: int


def chunks_of(tags: Sequence[int], kinds: int, scheme: str = "IOB") -> list[Chunk]:
    """The chunks that tags mark: tag `kind * n + place` has one of the n marks of the scheme, and others are outside.

    Schemes are 'IOB', 'IOE', 'IOBES' and 'plain', where neighbours of one kind are one chunk.
    """
    if scheme not in _SCHEMES:
        raise ValueError(
            f"chunks_of: expected scheme {', '.join(map(repr, _SCHEMES))}, got {scheme!r}"
        )
    marks = _SCHEMES[scheme]
    found, begin, before = [], -1, ("O", -1)
    for at, tag in enumerate([*tags, -1]):
        inside = 0 <= tag < kinds * len(marks)
        now = (marks[tag % len(marks)], tag // len(marks)) if inside else ("O", -1)
        open_ = before[0] != "O"
        # A chunk ends before an outside tag, one of another kind, one that begins a chunk, and behind one that ends it.
        ends = now[0] in "OBS" or now[1] != before[1] or before[0] in "ES"
        if open_ and ends:
            found.append(Chunk(begin, at, before[1]))
        if now[0] != "O" and (not open_ or ends):
            begin = at
        before = now
    return found


class ChunkScore(Metric):
    """Precision, recall and F1 of chunks, counted over all batches: compute() returns the three."""

    def __init__(self, kinds: int, scheme: str = "IOB", excluded: Sequence[int] = ()) -> None:
        super().__init__()
        chunks_of([], kinds, scheme)
        self.kinds, self.scheme, self.excluded = kinds, scheme, frozenset(excluded)

    def update(self, prediction: Tensor, target: Tensor, lengths: Tensor | None = None) -> None:
        """Tags [N, T], of which the first `lengths[n]` count."""
        counts = chunk_eval(prediction, target, self.kinds, self.scheme, self.excluded, lengths)[3:]
        self._add("counts", tenon.stack(list(counts)))

    def compute(self) -> tuple[float, float, float]:
        return _scores(*self._sum("counts").tolist())


def _scores(predicted: int, wanted: int, right: int) -> tuple[float, float, float]:
    precision = right / predicted if predicted else 0.0
    recall = right / wanted if wanted else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0


def chunk_eval(
    prediction: Tensor,
    target: Tensor,
    kinds: int,
    scheme: str = "IOB",
    excluded: Sequence[int] | frozenset[int] = (),
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Precision, recall and F1 of the chunks in tags [N, T] (or [T]), and how many were predicted, wanted and right.

    A chunk is right if it begins and ends where one of its kind does in `target`. Kinds in `excluded` are not counted.
    """
    if list(prediction.shape) != list(target.shape) or prediction.ndim not in (1, 2):
        raise ValueError(
            f"chunk_eval: expected prediction and target [N, T] of one shape, got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    rows = [
        x.reshape([-1, x.shape[-1]]).tolist() if x.numel() else [] for x in (prediction, target)
    ]
    ends = (
        [prediction.shape[-1]] * len(rows[0]) if lengths is None else lengths.reshape([-1]).tolist()
    )
    if len(ends) != len(rows[0]) or any(not 0 <= end <= prediction.shape[-1] for end in ends):
        raise ValueError(
            f"chunk_eval: expected a length for each sequence, up to {prediction.shape[-1]}, got {ends}"
        )
    counts = [0, 0, 0]
    for guess, truth, end in zip(*rows, ends):
        found, wanted = (
            {chunk for chunk in chunks_of(tags[:end], kinds, scheme) if chunk.kind not in excluded}
            for tags in (guess, truth)
        )
        for i, number in enumerate((len(found), len(wanted), len(found & wanted))):
            counts[i] += number
    scores = (tenon.tensor(each, dtype=tenon.float32) for each in _scores(*counts))
    return (*scores, *(tenon.tensor(each, dtype=tenon.int64) for each in counts))  # type: ignore[return-value]
