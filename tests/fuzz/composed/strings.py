# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings beside arrays of Python's strings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tenon
from tenon.text import StringTensor

from .outcome import Fault, Refused, attempt

PIECES = [
    "a",
    "B",
    "",
    " ",
    "ab",
    "ä",
    "Ä",
    "ß",
    "İ",
    "Σ",
    "ς",
    "ı",
    "ﬁ",
    "中",
    "\t",
    "\u3000",
    "😀",
    "x,y",
    ",",
    "é",
    "e\u0301",
    "0",
]


class StringProgram:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        shape = draw.choice([(3,), (2, 2), (0,), (), (1,), (5,)])
        self.plain = np.empty(shape, object)
        for index in np.ndindex(*shape):
            self.plain[index] = self._text()
        self.given = StringTensor(self.plain)

    def _text(self) -> str:
        return "".join(self.draw.choices(PIECES, k=self.draw.randint(0, 5)))

    def _of(self, function: Callable[[str], Any], dtype: Any = object) -> np.ndarray:
        found = np.empty(self.plain.shape, dtype)
        for index in np.ndindex(*self.plain.shape):
            found[index] = function(str(self.plain[index]))
        return found

    def _step(self) -> tuple[str, Callable[[], Any], Callable[[], Any]]:
        s, x, part = self.given, self.plain, self._text()[:2] or "a"
        k = self.draw.randint(-3, 3)
        other = self.draw.choice([part, x[::-1] if x.ndim else x])
        limit = self.draw.choice([-1, 0, 1, 2])
        separator = self.draw.choice([None, part, ","])
        steps: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
            ("lower", lambda: s.lower(), lambda: self._of(str.lower)),
            ("upper", lambda: s.upper(), lambda: self._of(str.upper)),
            (
                "lower of ASCII",
                lambda: s.lower(True),
                lambda: self._of(lambda t: t.encode().lower().decode()),
            ),
            (
                "upper of ASCII",
                lambda: s.upper(True),
                lambda: self._of(lambda t: t.encode().upper().decode()),
            ),
            ("strip", lambda: s.strip(), lambda: self._of(str.strip)),
            ("lengths", lambda: s.lengths, lambda: self._of(len, np.int64)),
            (
                "byte_lengths",
                lambda: s.byte_lengths,
                lambda: self._of(lambda t: len(t.encode()), np.int64),
            ),
            ("find", lambda: s.find(part), lambda: self._of(lambda t: t.find(part), np.int64)),
            (
                "startswith",
                lambda: s.startswith(part),
                lambda: self._of(lambda t: t.startswith(part), bool),
            ),
            (
                "endswith",
                lambda: s.endswith(part),
                lambda: self._of(lambda t: t.endswith(part), bool),
            ),
            ("contains", lambda: s.contains(part), lambda: self._of(lambda t: part in t, bool)),
            ("==", lambda: s == other, lambda: np.asarray(x == other, bool)),
            ("!=", lambda: s != other, lambda: np.asarray(x != other, bool)),
            ("reshape", lambda: s.reshape([-1]), lambda: x.reshape(-1)),
            (f"[{k}]", lambda: s[k], lambda: x[k]),
            ("[::-1]", lambda: s[tenon.arange(len(s) - 1, -1, -1)], lambda: x[::-1]),
            ("[1:]", lambda: s[1:], lambda: x[1:]),
            ("concat", lambda: StringTensor.concat([s, s]), lambda: np.concatenate([x, x])),
            (
                "lookup",
                lambda: s.lookup({"a": 7, part: 9}, -2),
                lambda: self._of(lambda t: {"a": 7, part: 9}.get(t, -2), np.int64),
            ),
            (
                "hash",
                lambda: s.hash() == StringTensor(x.copy()).hash(),
                lambda: np.ones(x.shape, bool),
            ),
            (
                "split",
                lambda: s.split(separator, limit)[0],
                lambda: self._split(separator, limit)[0],
            ),
            (
                "counts of split",
                lambda: s.split(separator, limit)[1],
                lambda: self._split(separator, limit)[1],
            ),
        ]
        return self.draw.choice(steps)

    def _split(self, separator: str | None, limit: int) -> tuple[np.ndarray, np.ndarray]:
        parts = [t.split(separator, limit) for t in self.plain.reshape(-1)]
        flat = np.empty(sum(map(len, parts)), object)
        flat[:] = [p for some in parts for p in some]
        return flat, np.array([len(p) for p in parts], np.int64).reshape(self.plain.shape)

    def checks(self) -> Iterator[tuple[str, str | None]]:
        trace = [repr(self.plain.tolist())]
        for _ in range(self.draw.randint(2, 10)):
            label, function, plainly = self._step()
            try:
                want = plainly()
            except (IndexError, TypeError, ValueError):
                want = None
            try:
                got = attempt(function)
            except Refused as error:
                yield (
                    f"refused {label}",
                    None if want is None else f"{'; '.join(trace)}, {label}: refused: {error}",
                )
                continue
            except Fault as fault:
                yield label, f"{'; '.join(trace)}, {label}: {fault}"
                return
            if want is None:
                yield label, f"{'; '.join(trace)}, {label}: answered by {got!r}"
                return
            found = got.numpy()
            wanted = np.asarray(want, object) if isinstance(got, StringTensor) else want
            same = found.shape == np.shape(wanted) and found.tolist() == np.asarray(wanted).tolist()
            yield (
                label,
                None
                if same
                else f"{'; '.join(trace)}, {label}: got {found.tolist()!r}, expected {np.asarray(wanted).tolist()!r}",
            )
            if not same:
                return
            if isinstance(got, StringTensor):
                self.given, self.plain = got, np.asarray(want, object)
                trace.append(label)


def case(draw: random.Random) -> Iterator[tuple[str, str | None]]:
    yield from StringProgram(draw).checks()
