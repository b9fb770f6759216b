# SPDX-License-Identifier: Apache-2.0
"""One page of HTML with tables and a timeline; it opens without a server."""

from __future__ import annotations

import html
import json
from importlib import resources
from os import PathLike
from typing import Any

from .events import Event, Memory, as_dict
from .table import Table, summarize

_MAX_EVENTS = 200_000  # that a browser draws at ease; of more, the longest are shown


def write_report(
    path: str | PathLike[str], title: str, events: list[Event], memory: list[Memory]
) -> None:
    shown = events
    if len(events) > _MAX_EVENTS:
        longest = sorted(events, key=lambda event: -event.duration_ns)[:_MAX_EVENTS]
        shown = sorted(longest, key=lambda event: event.begin_ns)
    groups = ["operator"]
    if any(event.shapes for event in events):
        groups.append("shape")
    if any(event.kind == "module" for event in events):
        groups.append("module")
    if any(event.stack for event in events):
        groups.append("stack")
    tables = [_table(summarize(events, group, "self_ns")) for group in groups]
    page = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    data = {
        "total": len(events),
        "tables": tables,
        **_timeline(shown, memory),
    }
    # "</" would end the script; JSON may write the slash with a backslash.
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.replace("{{title}}", html.escape(title)).replace("{{data}}", text))


def _table(table: Table) -> dict[str, Any]:
    return {
        "group": table.group_by,
        "rows": [
            [row.key, row.kind, row.calls, row.total_ns, row.self_ns, row.memory] for row in table
        ],
    }


def _timeline(events: list[Event], memory: list[Memory]) -> dict[str, Any]:
    """Events as numbers, with names written once. Times are nanoseconds from the first event on."""
    start = min((event.begin_ns for event in events), default=0)
    tracks: dict[str, int] = {}
    names: dict[str, int] = {}
    rows: list[list[Any]] = []
    open_: dict[str, list[int]] = {}
    for event in events:
        ends = open_.setdefault(event.track, [])
        while ends and ends[-1] <= event.begin_ns:
            ends.pop()
        row = [
            tracks.setdefault(event.track, len(tracks)),
            names.setdefault(event.name, len(names)),
            event.begin_ns - start,
            event.duration_ns,
            len(ends),
            event.kind,
        ]
        if details := as_dict(event):
            row.append("\n".join(f"{key}: {value}" for key, value in details.items()))
        rows.append(row)
        ends.append(event.end_ns)
    return {
        "tracks": list(tracks),
        "names": list(names),
        "events": rows,
        "memory": [[each.time_ns - start, each.device, each.bytes] for each in memory],
    }
