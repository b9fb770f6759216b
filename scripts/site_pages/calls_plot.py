# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/calls.svg, the cost of some calls beside the peers, from the table in docs/performance.md.

    python scripts/site_pages/calls_plot.py

The figures are those of the table, which `benchmarks/run --docs` writes with the date and the machine.
"""

import html
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Rows of the table, by how their names begin, and what the plot calls them.
ROWS = {
    "x + y": "x + y",
    "x.sum()": "x.sum()",
    "x[0:1]": "x[0:1]",
    "w + y, recorded": "w + y, recorded",
    "10 ": "10 multiplications, backward",
}
COLOURS = {
    "Tenon": "#00796b",
    "NumPy": "#90a4ae",
    "PyTorch": "#e57373",
    "Paddle": "#9575cd",
    "JAX": "#ffb74d",
}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
LEFT, RIGHT, TOP, BAR, GAP = 250, 690, 58, 13, 14
LOW, HIGH = 1e-8, 1e-2  # seconds


def measured(document: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Date and machine, and the cells of the table: row, then library."""
    machine = re.search(r"<!-- machine: overhead -->\n([^;]+); ([^;]+);", document)
    table = re.search(r"<!-- table: overhead[^\n]*\n(.*?)<!-- end -->", document, re.S)
    if not machine or not table:
        raise SystemExit("calls_plot.py: expected the table of overhead in docs/performance.md")
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in table[1].splitlines()]
    names = lines[0]
    rows = {
        cells[0].strip("`"): {n: c for n, c in zip(names, cells) if n in COLOURS and c != "-"}
        for cells in lines[2:]
    }
    return f"{machine[1]}, {machine[2]}", rows


def seconds(text: str) -> float:
    value, unit = text.split()
    return float(value) * UNITS[unit]


def x_of(time: float) -> float:
    share = (math.log10(time) - math.log10(LOW)) / (math.log10(HIGH) - math.log10(LOW))
    return LEFT + share * (RIGHT - LEFT)


def drawn(document: str) -> str:
    where, table = measured(document)
    parts, y = [], TOP
    for row, label in ROWS.items():
        begin = y
        cells = next(cells for name, cells in table.items() if name.startswith(row))
        for library, cell in cells.items():
            width = x_of(seconds(cell)) - LEFT
            bold = ' font-weight="bold"' if library == "Tenon" else ""
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 2}" '
                f'fill="{COLOURS[library]}"/>'
                f'<text x="{LEFT + width + 5:.1f}" y="{y + BAR - 3.5}"{bold}>{library} {cell}</text>'
            )
            y += BAR
        parts.append(
            f'<text x="{LEFT - 8}" y="{(begin + y) / 2 + 2}" text-anchor="end" class="row">{label}</text>'
        )
        y += GAP
    for power in range(-8, -1):
        x = x_of(10.0**power)
        name = {
            -8: "10 ns",
            -7: "100 ns",
            -6: "1 us",
            -5: "10 us",
            -4: "100 us",
            -3: "1 ms",
            -2: "",
        }[power]
        parts.insert(0, f'<path d="M{x:.1f} {TOP - 6}V{y - GAP + 4}" stroke="#e0e0e0"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 4}" text-anchor="middle">{name}</text>')
    height = y + 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" role="img" '
        'font-family="sans-serif" font-size="10" fill="#37474f">\n'
        "<style>.row{font-size:12px;font-weight:bold}</style>\n"
        f'<rect width="800" height="{height}" fill="white"/>\n'
        '<text x="16" y="24" font-size="15" font-weight="bold">Time of one call on one element</text>\n'
        '<text x="16" y="42">float32, one thread, logarithmic scale; shorter is better</text>\n'
    )
    foot = f'\n<text x="16" y="{height - 6}">Measured {html.escape(where)}</text>\n</svg>\n'
    return head + "\n".join(parts) + foot


def main() -> None:
    document = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    (ROOT / "docs" / "images" / "calls.svg").write_text(drawn(document), encoding="utf-8")


if __name__ == "__main__":
    main()
