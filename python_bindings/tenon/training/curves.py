# SPDX-License-Identifier: Apache-2.0
"""Learning curves as an SVG picture: a panel for each value, training and validation together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 560, 200  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 28, 30
_TRAINING, _VALIDATION = "#1f77b4", "#d95f02"


def draw_curves(history: Sequence[Mapping[str, float]]) -> str:
    """The text of an SVG picture. Values that are no numbers are left out, NaN and infinity too."""
    names = dict.fromkeys(name.removeprefix("val_") for row in history for name in row)
    panels: list[str] = []
    for name in names:
        curves = {
            shown: [_number(row.get(shown)) for row in history] for shown in (name, f"val_{name}")
        }
        if any(value is not None for values in curves.values() for value in values):
            panels.append(_panel(name, curves, len(panels) * _HEIGHT))
    height = max(len(panels), 1) * _HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>\n' + "".join(panels) + "</svg>\n"
    )


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if is_number else None  # type: ignore[arg-type]


def _panel(name: str, curves: Mapping[str, Sequence[float | None]], top: int) -> str:
    values = [value for curve in curves.values() for value in curve if value is not None]
    ticks = _ticks(min(values), max(values))
    low, high = ticks[0], ticks[-1]
    epochs = max(len(curve) for curve in curves.values())
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(epoch: int) -> float:
        return _LEFT + inner_width * ((epoch - 1) / (epochs - 1) if epochs > 1 else 0.5)

    def y(value: float) -> float:
        return top + _TOP + inner_height * (1 - (value - low) / (high - low))

    parts = [f'<text x="{_LEFT}" y="{top + 16}" font-weight="bold">{escape(name)}</text>\n']
    for tick in ticks:
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
            'stroke="#dddddd"/>\n'
            f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.6g}</text>\n'
        )
    step = max(1, math.ceil(epochs / 10))
    for epoch in range(1, epochs + 1, step):
        parts.append(
            f'<text x="{x(epoch):.1f}" y="{top + _HEIGHT - 12}" text-anchor="middle">{epoch}</text>\n'
        )
    at = _WIDTH - _RIGHT
    for (shown, curve), color in zip(curves.items(), (_TRAINING, _VALIDATION), strict=True):
        points = [(x(e), y(v)) for e, v in enumerate(curve, 1) if v is not None]
        if not points:
            continue
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>\n')
        parts += [f'<circle cx="{p:.1f}" cy="{q:.1f}" r="2" fill="{color}"/>\n' for p, q in points]
        parts.append(
            f'<text x="{at}" y="{top + 16}" text-anchor="end" fill="{color}">{escape(shown)}</text>\n'
        )
        at -= 9 * len(shown) + 12
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`, some five of them."""
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    magnitude = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(s * magnitude for s in (1, 2, 5, 10) if s * magnitude >= (high - low) / 4)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [i * step for i in range(first, last + 1)]
