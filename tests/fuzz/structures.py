# SPDX-License-Identifier: Apache-2.0
"""Structures that lie: offsets, columns and segments of sparse matrices and of text, many of them wrong.

    python -m tests.fuzz.structures --count 1000000 --seed 1

Each call either gives what loops over the same numbers give, or, where the structure is wrong, an error of index or value that says where. A build
with AddressSanitizer finds what reads outside and gives an answer nevertheless.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import numpy as np
import tenon

EDGES = np.array([-(2**63), -(2**31) - 1, -(2**31), -1, 0, 1, 2**31 - 1, 2**31, 2**40, 2**63 - 1])
REFUSALS = (IndexError, ValueError, OverflowError)


class Structure:
    """A matrix of `rows` and `columns`, whose offsets and columns may be wrong."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rows, self.columns = (int(x) for x in rng.integers(0, 6, 2))
        counts = rng.integers(0, 4, self.rows) if self.columns else np.zeros(self.rows, np.int64)
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.indices = rng.integers(0, max(self.columns, 1), self.indptr[-1])
        for name in ("indptr", "indices"):
            numbers = getattr(self, name)
            if numbers.size and rng.random() < 0.3:
                at = rng.integers(0, numbers.size)
                wrong = rng.choice(EDGES) if rng.random() < 0.5 else rng.integers(-3, 9)
                numbers[at] = wrong
            if rng.random() < 0.05:
                setattr(self, name, numbers[:-1] if rng.random() < 0.5 else np.append(numbers, 1))
            numbers = getattr(self, name)
            if rng.random() < 0.4 and numbers.size and (abs(numbers.astype(float)) < 2**31).all():
                setattr(self, name, numbers.astype(np.int32))
        self.stored = self.indices.size

    def is_right(self) -> bool:
        indptr = self.indptr
        return bool(
            indptr.size == self.rows + 1
            and indptr[0] == 0
            and indptr[-1] == self.stored
            and (np.diff(indptr.astype(object)) >= 0).all()
            and self.has_columns()
        )

    def has_columns(self) -> bool:
        return bool(((self.indices >= 0) & (self.indices < self.columns)).all())

    def parts(self) -> tuple:
        return tenon.tensor(self.indptr), tenon.tensor(self.indices)

    def dense(self, values: np.ndarray) -> np.ndarray:
        out = np.zeros((self.rows, self.columns))
        np.add.at(out, (self.of_rows(), self.indices), values)
        return out

    def of_rows(self) -> np.ndarray:
        return np.repeat(np.arange(self.rows), np.diff(self.indptr))


def _matmul(s, rng):
    values, y = rng.standard_normal(s.stored), rng.standard_normal((s.columns, 2))
    # Offsets of another length are a matrix of other rows.
    right = s.is_right() if s.indptr.size == s.rows + 1 else None
    return (
        right,
        lambda: tenon.csr_matmul(*s.parts(), tenon.tensor(values), tenon.tensor(y)),
        lambda: s.dense(values) @ y,
    )


def _transposed(s, rng):
    values, y = rng.standard_normal(s.stored), rng.standard_normal((s.rows, 2))
    args = tenon.tensor(values), tenon.tensor(y), s.columns
    return (
        s.is_right(),
        lambda: tenon.csr_matmul_transposed(*s.parts(), *args),
        lambda: s.dense(values).T @ y,
    )


def _sddmm(s, rng):
    x, y = rng.standard_normal((s.rows, 3)), rng.standard_normal((s.columns, 3))
    return (
        s.is_right(),
        lambda: tenon.csr_sddmm(*s.parts(), tenon.tensor(x), tenon.tensor(y)),
        lambda: (x[s.of_rows()] * y[s.indices]).sum(1),
    )


def _transpose(s, rng):
    right = s.is_right() if s.indptr.size == s.rows + 1 else None
    return (
        right,
        lambda: tenon.csr_transpose(*s.parts(), s.columns)[2],
        lambda: np.argsort(s.indices, kind="stable"),
    )


def _order(s, rng):
    return (
        s.has_columns(),
        lambda: tenon.csr_order(s.parts()[1], s.columns),
        lambda: np.argsort(s.indices, kind="stable"),
    )


def _rows(s, rng):
    right = s.indptr.size > 0 and s.indptr[0] == 0 and s.indptr[-1] == s.stored
    right = right and bool((np.diff(s.indptr.astype(object)) >= 0).all())
    return (
        right,
        lambda: tenon.csr_rows(s.parts()[0], s.stored),
        lambda: np.repeat(np.arange(s.indptr.size - 1), np.diff(s.indptr)),
    )


def _product(s, rng):
    right = s.is_right() if s.indptr.size == s.rows + 1 else None
    if right:  # the columns of the first matrix are the rows of the second one
        right = bool((s.indices < s.rows).all())

    def wanted():
        y = s.dense(np.ones(s.stored))
        x = np.zeros((s.rows, s.rows))
        np.add.at(x, (s.of_rows(), s.indices), 1.0)
        return np.argwhere(x @ y)[:, 1]

    matrix = *s.parts(), tenon.ones([s.stored])
    return right, lambda: tenon.csr_product(*matrix, *matrix, s.columns)[1], wanted


def _segments(s, rng):
    x = rng.standard_normal((s.stored, 2))
    out = np.zeros((s.columns, 2))

    def wanted():
        np.add.at(out, s.indices, x)
        return out

    # Negative numbers count from the end, as everywhere.
    right = bool(((s.indices >= -s.columns) & (s.indices < s.columns)).all())
    return right, lambda: tenon.segment_sum(tenon.tensor(x), s.parts()[1], s.columns), wanted


def _text(s, rng):
    text = rng.integers(32, 127, s.stored, dtype=np.uint8)
    indptr = s.indptr.astype(object)
    right = (
        indptr.size > 0
        and indptr[0] >= 0
        and indptr[-1] <= s.stored
        and bool((np.diff(indptr) >= 0).all())
    )
    right = right and all(0 <= x <= s.stored for x in indptr)
    return (
        right,
        lambda: tenon.text_lower(tenon.tensor(text), s.parts()[0], "ascii")[0],
        lambda: np.frombuffer(text.tobytes().lower()[s.indptr[0] : s.indptr[-1]], np.uint8),
    )


CALLS = (_matmul, _transposed, _sddmm, _transpose, _order, _rows, _product, _segments, _text)


def is_close(got: np.ndarray, expected: np.ndarray) -> bool:
    """As np.testing.assert_allclose, which takes longer than the call."""
    if got.shape != expected.shape:
        return False
    return bool((np.abs(got - expected) <= 1e-12 + 1e-10 * np.abs(expected)).all())


def run(count: int, seed: int, first: int = 0) -> Counter:
    """How many calls were answered, refused, or either (where the sizes do not say what is right)."""
    found: Counter = Counter()
    for case in range(first, first + count):
        rng = np.random.default_rng([seed, case])
        structure = Structure(rng)
        call = CALLS[int(rng.integers(0, len(CALLS)))]
        right, ours, wanted = call(structure, rng)

        def failure(what: str, call=call, case=case, structure=structure) -> AssertionError:
            shown = f"{structure.indptr}, {structure.indices}, {structure.columns} columns"
            return AssertionError(
                f"{call.__name__[1:]}, case {case} of seed {seed}: {shown}: {what}"
            )

        try:
            answer = ours().numpy()
        except REFUSALS as error:
            if right:
                raise failure(f"refused: {error}") from error
            if not str(error):
                raise failure("an error without a text") from error
            found["refused"] += 1
            continue
        if right is False:
            raise failure(f"answered by {answer}")
        if right and not is_close(answer, expected := wanted()):
            raise failure(f"expected {expected}, got {answer}")
        found["answered" if right else "either"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.structures", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    found = run(options.count, options.seed, options.first)
    print(", ".join(f"{number} {name}" for name, number in sorted(found.items())), file=sys.stderr)


if __name__ == "__main__":
    main()
