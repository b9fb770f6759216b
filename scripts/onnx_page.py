# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/onnx.md, between its marks, from what is imported and refused.

PYTHONPATH=build/release/python .venv/bin/python scripts/onnx_page.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

import tenon.onnx

PAGE = Path(__file__).parent.parent / "docs" / "onnx.md"
BEGIN, END = "<!-- table: scripts/onnx_page.py -->\n", "<!-- end of the table -->\n"


def table() -> str:
    """A line for each operator: the opsets in which it changed, and those that are refused with their reason."""
    rows: dict[str, list[dict]] = {}
    for row in tenon.onnx.table():
        rows.setdefault(row["op"], []).append(row)
    lines = ["| operator | imported since opsets | refused |", "|---|---|---|"]
    for name, versions in rows.items():
        imported = ", ".join(str(row["since"]) for row in versions if "by" in row)
        reasons: dict[str, list[str]] = {}
        for row in versions:
            if "refused" in row:
                reasons.setdefault(row["refused"], []).append(str(row["since"]))
        refused = "; ".join(f"{', '.join(since)}: {reason}" for reason, since in reasons.items())
        lines.append(f"| {name} | {imported} | {refused} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    made = head + BEGIN + table() + END + rest.split(END)[1]
    if "--check" in sys.argv:
        if made != page:
            print("docs/onnx.md is older than the table; run scripts/onnx_page.py", file=sys.stderr)
        return int(made != page)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
