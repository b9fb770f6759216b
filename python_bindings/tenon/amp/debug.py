# SPDX-License-Identifier: Apache-2.0
"""What mixed precision does to a program: operators by dtype, two runs side by side, the first NaN."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import tenon
from tenon import Tensor, _core
from tenon.utils.numerics import check_numerics
from tenon.utils.observation import Observer, tensors_in

__all__ = [
    "Call",
    "Difference",
    "OperatorReport",
    "Recording",
    "check_numerics",
    "compare",
    "operator_report",
    "record",
]


class OperatorReport:
    """Calls of operators by the dtype of their first result, and the casts that regions made."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()  # (operator, dtype)
        self.casts_to_low = 0
        self.casts_to_high = 0
        self.cast_bytes = 0  # written by casts

    def of(self, operator: str) -> dict[str, int]:
        """Calls of one operator, by dtype."""
        return {dtype: count for (name, dtype), count in self.calls.items() if name == operator}

    def __repr__(self) -> str:
        dtypes = sorted({dtype for _, dtype in self.calls})
        names = sorted({name for name, _ in self.calls})
        rows = [["operator", *dtypes]]
        rows += [
            [name, *(str(self.calls[name, dtype] or "") for dtype in dtypes)] for name in names
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        casts = (
            f"casts by autocast: {self.casts_to_low} to low precision, {self.casts_to_high} to "
            f"float32, {self.cast_bytes} bytes"
        )
        return "\n".join([*lines, casts])


@contextmanager
def operator_report() -> Iterator[OperatorReport]:
    """Count the operators of this thread by dtype, in a block.

        with tenon.amp.debug.operator_report() as report, tenon.amp.autocast():
            model(x)
        print(report)

    Parts of composite operators are counted, casts (`cast`) among them, and those of backward passes.
    """
    report = OperatorReport()

    def count(name: str, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        for tensor in tensors_in(results):
            report.calls[name, tensor.dtype.name] += 1
            return

    low, high, nbytes = _core.amp_casts()
    try:
        with Observer(count):
            yield report
    finally:
        now = _core.amp_casts()
        report.casts_to_low += now[0] - low
        report.casts_to_high += now[1] - high
        report.cast_bytes += now[2] - nbytes


class Call(NamedTuple):
    """One result of one operator call."""

    operator: str
    dtype: str
    shape: tuple[int, ...]
    mean: float
    largest: float  # of the finite elements' absolute values
    infinite: int  # elements
    nan: int
    values: Tensor | None  # float32, on the CPU; None unless they are kept


class Recording:
    """What the operators of a block computed, in order, casts and views left out."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __repr__(self) -> str:
        bad = sum(1 for call in self.calls if call.infinite or call.nan)
        return f"Recording of {len(self.calls)} results, {bad} with infinite elements or NaN"


# What only moves elements, or is made by autocast: two runs in different dtypes differ in these.
_MOVES = frozenset(("cast", "clone"))


@contextmanager
def record(values: bool = True) -> Iterator[Recording]:
    """Record what operators compute in floating point in a block; `values=False`: statistics alone."""
    recording = Recording()

    def take(name: str, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        inputs = {_address(tensor) for tensor in tensors_in(args)}
        for tensor in tensors_in(results):
            if name in _MOVES or not tensor.dtype.is_floating_point:
                continue
            if _address(tensor) in inputs:  # a view, or written in place
                continue
            recording.calls.append(_describe(name, tensor, values))

    with Observer(take):
        yield recording


def _address(tensor: Tensor) -> int:
    return tensor.data_ptr() if tensor.numel() else 0


def _describe(name: str, tensor: Tensor, keep: bool) -> Call:
    wide = tensor.detach().to("cpu").to(tenon.float32)
    is_nan, is_infinite = tenon.isnan(wide), tenon.isinf(wide)
    nan, infinite = int(tenon.sum(is_nan).item()), int(tenon.sum(is_infinite).item())
    finite = tenon.where(tenon.isfinite(wide), wide, 0.0)
    count = wide.numel() - nan - infinite
    return Call(
        name,
        tensor.dtype.name,
        tuple(tensor.shape),
        float(tenon.sum(finite).item()) / count if count else math.nan,
        float(tenon.max(tenon.abs(finite)).item()) if count else math.nan,
        infinite,
        nan,
        wide.clone() if keep else None,
    )


class Difference(NamedTuple):
    """One result in two recordings."""

    call: int  # its number in both
    operator: str
    shape: tuple[int, ...]
    dtypes: tuple[str, str]
    relative: float  # norm of the difference by the norm of the first, or of the means
    infinite: tuple[int, int]
    nan: tuple[int, int]


def compare(first: Recording, second: Recording) -> list[Difference]:
    """Two runs of one program, result by result: where low precision begins to differ.

        with tenon.amp.debug.record() as wide:
            model(x)
        with tenon.amp.debug.record() as low, tenon.amp.autocast():
            model(x)
        worst = max(tenon.amp.debug.compare(wide, low), key=lambda each: each.relative)

    Raises ValueError where the runs do not call the same operators with the same shapes.
    """
    for index, (one, other) in enumerate(zip(first.calls, second.calls, strict=False)):
        if (one.operator, one.shape) != (other.operator, other.shape):
            raise ValueError(
                f"compare: expected two runs of one program, got call {index} as {one.operator} of "
                f"shape {one.shape} in the first and {other.operator} of shape {other.shape} in the "
                "second; record the same calls, without randomness that chooses between them"
            )
    if len(first.calls) != len(second.calls):
        raise ValueError(
            f"compare: expected two runs of one program, got {len(first.calls)} results in the first "
            f"and {len(second.calls)} in the second"
        )
    return [
        Difference(
            number,
            one.operator,
            one.shape,
            (one.dtype, other.dtype),
            _relative(one, other),
            (one.infinite, other.infinite),
            (one.nan, other.nan),
        )
        for number, (one, other) in enumerate(zip(first.calls, second.calls, strict=True))
    ]


def _relative(one: Call, other: Call) -> float:
    if one.values is None or other.values is None:
        return abs(one.mean - other.mean) / abs(one.mean) if one.mean else abs(other.mean)
    if not one.values.numel():
        return 0.0
    with tenon.no_grad():
        size = float(tenon.norm(one.values).item())
        distance = float(tenon.norm(one.values - other.values).item())
    return distance / size if size else distance
