# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes: which ranks are in a line, and which parts of a tensor they have."""

from __future__ import annotations

import html
import itertools
import os
from collections.abc import Sequence

from .placements import Placement, part_of_whole

_COLORS = ("#9ecae1", "#fdae6b", "#a1d99b", "#dadaeb", "#fdd0a2", "#c7e9c0", "#c6dbef", "#fcbba1")
_CELL, _ROW, _LEFT, _TOP = 64, 30, 62, 52  # pixels
_SIDE = 260  # of a tensor

Blocks = list[tuple[str, list[tuple[str, list[int]]]]]  # title, and rows of ranks by name


def blocks_of(shape: Sequence[int], names: Sequence[str], ranks: Sequence[int]) -> Blocks:
    """A block for each cell on the axes before the last two, with a row for each of the last but one."""
    width = shape[-1]
    rows = [list(ranks[i : i + width]) for i in range(0, len(ranks), width)]
    blocks: Blocks = []
    at = 0
    for outer in itertools.product(*map(range, shape[:-2])):
        title = ", ".join(f"{name} {i}" for name, i in zip(names[: len(outer)], outer, strict=True))
        height = shape[-2] if len(shape) > 1 else 1
        labels = [f"{names[-2]} {i}" if len(shape) > 1 else "" for i in range(height)]
        blocks.append((title, list(zip(labels, rows[at : at + height], strict=True))))
        at += height
    return blocks


def text_of(shape: Sequence[int], names: Sequence[str], ranks: Sequence[int]) -> str:
    """As text: a table of ranks for each cell on the axes before the last two."""
    head = [f"{names[-1]} {i}" for i in range(shape[-1])]
    width = max(len(str(max(ranks))), *map(len, head)) + 2
    lines = ["mesh of " + " x ".join(f"{n} {size}" for n, size in zip(names, shape, strict=True))]
    for title, rows in blocks_of(shape, names, ranks):
        left = max((len(label) for label, _ in rows), default=0) + 2
        lines += [title] if title else []
        lines.append((" " * left + "".join(word.ljust(width) for word in head)).rstrip())
        for label, own in rows:
            cells = "".join(str(rank).ljust(width) for rank in own)
            lines.append((label.ljust(left) + cells).rstrip())
    return "\n".join(lines)


def svg_of(shape: Sequence[int], names: Sequence[str], ranks: Sequence[int]) -> str:
    """As a picture: a colour for each line of the last axis."""
    blocks = blocks_of(shape, names, ranks)
    height = shape[-2] if len(shape) > 1 else 1
    each = _LEFT + shape[-1] * _CELL + 20
    parts = []
    for number, (title, rows) in enumerate(blocks):
        x0 = 8 + number * each
        parts.append(f'<text x="{x0}" y="38">{html.escape(title)}</text>')
        for column in range(shape[-1]):
            x = x0 + _LEFT + column * _CELL
            parts.append(f'<text x="{x + 4}" y="38">{html.escape(names[-1])} {column}</text>')
        for row, (label, own) in enumerate(rows):
            y, color = _TOP - 6 + row * _ROW, _COLORS[(number * height + row) % len(_COLORS)]
            parts.append(f'<text x="{x0}" y="{y + 19}">{html.escape(label)}</text>')
            for column, rank in enumerate(own):
                x = x0 + _LEFT + column * _CELL
                parts.append(_box(x, y, _CELL - 3, _ROW - 3, color, f"rank {rank}"))
    title = "mesh of " + " x ".join(f"{n} {size}" for n, size in zip(names, shape, strict=True))
    return _picture(8 + len(blocks) * each, _TOP + height * _ROW + 8, title, parts)


def svg_of_tensor(
    mesh_shape: Sequence[int],
    ranks: Sequence[int],
    placements: Sequence[Placement],
    shape: Sequence[int],
) -> str:
    """A tensor of one or two axes as a rectangle, with the ranks that have each part."""
    owners: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    cells = itertools.product(*map(range, mesh_shape))
    for rank, cell in zip(ranks, cells, strict=True):
        box = part_of_whole(shape, placements, mesh_shape, cell)
        owners.setdefault(box, []).append(rank)
    rows, columns = shape if len(shape) == 2 else (1, shape[0])
    down, along = _SIDE * 0.6 / max(rows, 1), _SIDE / max(columns, 1)
    parts = []
    for number, ((offset, size), own) in enumerate(owners.items()):
        if not all(size):
            continue
        (y, x), (h, w) = (offset, size) if len(shape) == 2 else ((0, *offset), (1, *size))
        text = ("rank " if len(own) == 1 else "ranks ") + ", ".join(map(str, own))
        color = _COLORS[number % len(_COLORS)]
        parts.append(_box(8 + x * along, 30 + y * down, w * along - 2, h * down - 2, color, text))
    title = f"{tuple(shape)} in [{', '.join(map(repr, placements))}]"
    return _picture(_SIDE + 120, round(40 + _SIDE * 0.6), title, parts)


def write(file: str | os.PathLike, picture: str) -> None:
    path = os.fspath(file)
    if not path.endswith(".svg"):
        raise ValueError(f"draw: expected a file whose name ends in .svg, got {path!r}")
    with open(path, "w", encoding="utf-8") as target:
        target.write(picture)


def _box(x: float, y: float, width: float, height: float, color: str, text: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{color}" stroke="#555" '
        f'stroke-width="0.5"/><text x="{x + width / 2:g}" y="{y + height / 2 + 4:g}" text-anchor="middle">'
        f"{html.escape(text)}</text>"
    )


def _picture(width: int, height: int, title: str, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="8" y="18" font-size="13">{html.escape(title)}</text>'
        + "".join(parts)
        + "</svg>\n"
    )
