#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws who uses whom: the rooms of the Python package and those of the compiler, each on its floor, an arrow for each room
that it imports or includes. Arrows go down; one that goes up is red, and named in scripts/rooms.py.

Usage: scripts/room_pictures.py [FOLDER]    writes rooms_python.svg and rooms_graph.svg, by default into docs/images
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

import rooms

ROOT = Path(__file__).resolve().parent.parent
WIDTH, BOX, GAP, ROW = 1000, 26, 10, 74

Floors = list[list[str]]  # from the ground up
Arrows = dict[str, set[str]]  # room -> rooms that it uses


def python_package() -> tuple[Floors, Arrows]:
    package = ROOT / "python_bindings" / "tenon"
    arrows: Arrows = defaultdict(set)
    for each in rooms.read_imports(rooms.read_modules(package)):
        here, there = rooms.room_of(each.importer), rooms.room_of(each.imported)
        if each.importer and here != there:
            arrows[here].add(there)
    known = {path.stem for path in package.iterdir()}
    floors = [[room for room in line.split() if room in known] for line in rooms.FLOORS]
    return floors, arrows


def compiler() -> tuple[Floors, Arrows]:
    folder = ROOT / "plugins" / "graph"
    text = (folder / "tests" / "rooms.cmake").read_text(encoding="utf-8")
    (line,) = re.findall(r"^set\(floors (.*)\)$", text, re.MULTILINE)
    floors = [(quoted or word).split() for quoted, word in re.findall(r'"([^"]*)"|(\S+)', line)]
    known = {room for floor in floors for room in floor}
    arrows: Arrows = defaultdict(set)
    for room in known:
        for path in sorted((folder / room).rglob("*.[ch]pp")):
            used = re.findall(r'^#include "(\w+)/', path.read_text(encoding="utf-8"), re.MULTILINE)
            arrows[room] |= set(used) & known - {room}
    return floors, arrows


def lean(arrows: Arrows, floor_of: dict[str, int]) -> Arrows:
    """Without arrows that longer ways say already."""

    def reach(room: str) -> set[str]:
        found: set[str] = set()
        for each in arrows.get(room, ()):
            if floor_of[each] < floor_of[room]:
                found |= {each} | reach(each)
        return found

    kept: Arrows = {}
    for room, used in arrows.items():
        said = set().union(*(reach(each) for each in used if floor_of[each] < floor_of[room]))
        kept[room] = {each for each in used if each not in said}
    return kept


def drawing(title: str, floors: Floors, arrows: Arrows) -> str:
    floors = [floor for floor in floors if floor]
    floor_of = {room: number for number, floor in enumerate(floors) for room in floor}
    arrows = {room: used & floor_of.keys() for room, used in arrows.items() if room in floor_of}
    height = ROW * len(floors) + 40
    boxes: dict[str, tuple[float, float, float]] = {}  # left, top, width
    for number, floor in enumerate(floors):
        widths = [8 * len(room) + 18 for room in floor]
        free = (WIDTH - sum(widths)) / (len(floor) + 1)
        left, top = free, height - ROW * (number + 1) + GAP
        for room, width in zip(floor, widths, strict=True):
            boxes[room] = (left, top, width)
            left += width + free
    count = sum(map(len, arrows.values()))
    drawn = lean(arrows, floor_of)
    shown = sum(map(len, drawn.values()))
    upward = sum(floor_of[b] >= floor_of[a] for a, used in arrows.items() for b in used)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="20">{title}: {len(floor_of)} rooms, {count} arrows, {upward} upward; {shown} drawn, which imply '
        f"the others</text>",
    ]
    for room in sorted(drawn):
        for used in sorted(drawn[room]):
            (x1, y1, w1), (x2, y2, w2) = boxes[room], boxes[used]
            is_up = floor_of[used] >= floor_of[room]
            start = y1 if is_up else y1 + BOX
            end = y2 + BOX if is_up else y2
            colour = "#c0392b" if is_up else "#8aa0b4"
            lines.append(
                f'<line x1="{x1 + w1 / 2:.0f}" y1="{start}" x2="{x2 + w2 / 2:.0f}" y2="{end}" stroke="{colour}"/>'
            )
    for room, (left, top, width) in boxes.items():
        lines.append(
            f'<rect x="{left:.0f}" y="{top}" width="{width}" height="{BOX}" rx="4" fill="#eef3f8" stroke="#4a6078"/>'
            f'<text x="{left + width / 2:.0f}" y="{top + 18}" text-anchor="middle">{room}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    for name, title, read in (
        ("rooms_python.svg", "python_bindings/tenon", python_package),
        ("rooms_graph.svg", "plugins/graph", compiler),
    ):
        (folder / name).write_text(drawing(title, *read()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
