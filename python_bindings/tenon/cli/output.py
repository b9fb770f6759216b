# SPDX-License-Identifier: Apache-2.0
"""How commands print: aligned columns, colour on a terminal, JSON for programs."""

import json
import os
import sys

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "dim": 2, "bold": 1}


def colour(text, name, stream=None):
    """`text` in a colour, if the stream is a terminal that has any."""
    stream = stream or sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{_COLOURS[name]}m{text}\033[0m"


def print_table(rows, colours=None):
    """Print rows of texts in aligned columns. `colours` maps a column's number to a function from
    its text to a colour's name or None."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths)):
            padding = " " * (width - len(cell)) if number + 1 < len(row) else ""
            name = colours[number](cell) if colours and number in colours else None
            cells.append((colour(cell, name) if name else cell) + padding)
        print("  ".join(cells).rstrip())


def print_json(value):
    print(json.dumps(value, indent=2))


def add_json_option(parser):
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
