# SPDX-License-Identifier: Apache-2.0
"""Pictures of schedules: a row for each rank, time from left to right."""

from __future__ import annotations

import html
import os

from .schedule import BACKWARD, FORWARD, WEIGHTS, Schedule

_COLORS = {FORWARD: "#9ecae1", BACKWARD: "#fdae6b", WEIGHTS: "#a1d99b"}
_WORDS = {FORWARD: "forward", BACKWARD: "backward", WEIGHTS: "gradients of weights"}
_UNIT, _ROW, _LEFT, _TOP = 26, 24, 58, 30  # pixels


def text_of(schedule: Schedule) -> str:
    """As text. A forward pass is one column wide; with several stages on a rank, letters say which one."""
    last = max(schedule.microbatches - 1, 1)
    width = len(str(last)) + 1 + (schedule.chunks > 1)
    lines = [_title(schedule)]
    for rank, spans in enumerate(schedule.timeline.spans):
        cells = ["." * width] * round(schedule.timeline.end)
        for span in spans:
            name = f"{span.action.kind}{span.action.microbatch}"
            if schedule.chunks > 1:
                name += "abcdefghijklmnopqrstuvwxyz"[span.action.stage // schedule.ranks % 26]
            start, end = round(span.start), round(span.end)
            cells[start:end] = [name.ljust(width)] + ["-" * width] * (end - start - 1)
        lines.append(f"rank {rank}  " + " ".join(cells).rstrip())
    return "\n".join(lines)


def svg_of(schedule: Schedule) -> str:
    """As a picture, which stands by itself."""
    kinds = [FORWARD, BACKWARD, *([WEIGHTS] if schedule.splits_backward else [])]
    width = _LEFT + _UNIT * max(round(schedule.timeline.end), 18) + 8
    height = _TOP + _ROW * (schedule.ranks + 1) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="18" font-size="13">{html.escape(_title(schedule))}</text>',
    ]
    for rank, spans in enumerate(schedule.timeline.spans):
        y = _TOP + rank * _ROW
        parts.append(f'<text x="8" y="{y + 16}">rank {rank}</text>')
        for span in spans:
            x, length = _LEFT + span.start * _UNIT, (span.end - span.start) * _UNIT
            # Later stages of a rank are darker.
            shade = 1.0 - 0.35 * (span.action.stage // schedule.ranks) / max(schedule.chunks - 1, 1)
            parts.append(
                f'<g><title>{html.escape(str(span.action))}</title><rect x="{x:g}" y="{y + 1}" width="{length - 1:g}" '
                f'height="{_ROW - 2}" fill="{_COLORS[span.action.kind]}" fill-opacity="{shade:.2f}" stroke="#555" '
                f'stroke-width="0.5"/><text x="{x + length / 2:g}" y="{y + 16}" text-anchor="middle">'
                f"{span.action.microbatch}</text></g>"
            )
    y = _TOP + schedule.ranks * _ROW + 6
    for place, kind in enumerate(kinds):
        x = _LEFT + place * 110
        parts.append(
            f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLORS[kind]}"/>'
            f'<text x="{x + 17}" y="{y + 10}">{_WORDS[kind]}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def draw(schedule: Schedule, file: str | os.PathLike | None = None) -> str:
    """The schedule as text; with `file`, whose name ends in .svg, the picture is written there, too."""
    if file is not None:
        path = os.fspath(file)
        if not path.endswith(".svg"):
            raise ValueError(f"draw: expected a file whose name ends in .svg, got {path!r}")
        with open(path, "w", encoding="utf-8") as target:
            target.write(svg_of(schedule))
    return text_of(schedule)


def _title(schedule: Schedule) -> str:
    peaks = [schedule.peak_activations(rank) for rank in range(schedule.ranks)]
    return (
        f"{schedule.name}: {schedule.ranks} ranks, {schedule.microbatches} micro-batches, bubble "
        f"{schedule.timeline.bubble:.1%}, activations kept {', '.join(map(str, peaks))}"
    )
