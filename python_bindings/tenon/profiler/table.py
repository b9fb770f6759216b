# SPDX-License-Identifier: Apache-2.0
"""Events summed up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .events import Event, summary_of_shapes

GROUPS = ("operator", "shape", "module", "stack")
_SORTS = ("total_ns", "self_ns", "calls", "memory", "mean_ns")


class Row(NamedTuple):
    """All events of one key. Times are nanoseconds."""

    key: str
    kind: str
    calls: int
    total_ns: int
    self_ns: int  # without what lies in the events
    memory: int  # bytes by which they made the memory in use grow, where that was recorded

    @property
    def count(self) -> int:  # type: ignore[override]
        """PyTorch's name of `calls`; a tuple's method of this name would be taken for it."""
        return self.calls

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.calls


class Table:
    """Rows in descending order of time; print() shows them."""

    def __init__(self, rows: Iterable[Row], group_by: str, sort_by: str = "self_ns") -> None:
        if sort_by not in _SORTS:
            raise ValueError(
                f"table: expected sort_by to be one of {', '.join(_SORTS)}, got {sort_by!r}"
            )
        self.group_by = group_by
        self.rows = sorted(rows, key=lambda row: (-getattr(row, sort_by), row.key))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str) -> Row:
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(f"no row of `{key}`; there are {[row.key for row in self.rows]}")

    def text(self, rows: int | None = None, width: int = 60) -> str:
        """The table; `rows`: the first ones only, `width`: of keys."""
        whole = sum(row.self_ns for row in self.rows) or 1
        has_memory = any(row.memory for row in self.rows)
        head = [self.group_by, "kind", "calls", "total ms", "self ms", "share", "mean us"]
        lines = [head + ["memory KiB"] * has_memory]
        for row in self.rows[:rows]:
            key = row.key if len(row.key) <= width else row.key[: width - 3] + "..."
            line = [key, row.kind, str(row.calls)]
            line += [f"{row.total_ns / 1e6:.3f}", f"{row.self_ns / 1e6:.3f}"]
            line += [f"{100 * row.self_ns / whole:.1f}%", f"{row.mean_ns / 1e3:.2f}"]
            lines.append(line + [f"{row.memory / 1024:.1f}"] * has_memory)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(size) if column < 2 else cell.rjust(size)
                for column, (cell, size) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def __repr__(self) -> str:
        return self.text() if self.rows else "nothing was recorded"


def summarize(events: Iterable[Event], group_by: str, sort_by: str) -> Table:
    """Events by operator, operator and shapes, module, or line of the program."""
    if group_by not in GROUPS:
        raise ValueError(
            f"table: expected group_by to be one of {', '.join(GROUPS)}, got {group_by!r}"
        )
    sums: dict[tuple[str, str], list[Any]] = {}
    for event in events:
        key = _key(event, group_by)
        if key is None:
            continue
        row = sums.setdefault(key, [0, 0, 0, 0])
        row[0] += 1
        row[1] += event.duration_ns
        row[2] += event.self_ns
        row[3] += event.memory or 0
    return Table((Row(*key, *row) for key, row in sums.items()), group_by, sort_by)


def _key(event: Event, group_by: str) -> tuple[str, str] | None:
    """(text, kind); None: not in this table."""
    if group_by == "operator":
        return event.name, event.kind
    if group_by == "module":
        # An operator counts for its module; the time of the module itself is that of its calls.
        if event.kind == "module":
            return event.name, "module"
        if event.kind == "operator" and not event.module:
            return ("(backward)" if event.backward else "(no module)"), "operator"
        return None
    if event.kind != "operator":
        return None
    if group_by == "shape":
        return f"{event.name}({summary_of_shapes(event)})", event.kind
    file, line, function = event.stack[0] if event.stack else ("(no stack)", 0, "")
    return f"{file}:{line} {function}", event.kind
