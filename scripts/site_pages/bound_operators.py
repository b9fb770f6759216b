# SPDX-License-Identifier: Apache-2.0
"""For each device that is bound to a vendor's library: which function computes which operator, and when."""

import collections
import pathlib
import re

import yaml


def condition(entry: dict) -> str:
    only = [f"{name}: {value}" for name, value in entry.get("only", {}).items()]
    return "; ".join(only).replace("True", "true").replace("False", "false")


def function(call: str) -> str:
    """`aclnnAdd` of `aclnnAdd(Tensor x, ...)`, `fc<TX = T>` of `fc<TX = T>(Context*, ...)`."""
    return re.match(r"[^(]+", call)[0].strip()


def table(files: list[pathlib.Path]) -> tuple[list[str], int, int, int]:
    """Rows, and how many entries, operators and lines there are."""
    rows, operators, lines = [], set(), 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        lines += len(text.splitlines())
        for entry in yaml.safe_load(text)["bindings"]:
            operators.add(entry["op"])
            cells = [
                f"`{entry['op']}`",
                f"`{function(entry['call'])}`",
                ", ".join(entry["dtypes"].split("|")),
                condition(entry),
                entry.get("assumes", ""),
            ]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return sorted(rows), len(rows), len(operators), lines


def pages(root: pathlib.Path) -> dict[str, str]:
    devices = collections.defaultdict(list)
    for file in sorted(root.glob("plugins/*/bindings/*.yaml")):
        devices[file.parts[-3]].append(file)
    text = (
        "# Bound operators\n\nThe functions of vendors' libraries that compute operators, from the "
        "[binding files](../bindings.md) of this version. An operator that is not here, or a call that no entry "
        "serves, is lowered to others or runs on the host.\n"
    )
    for device, files in sorted(devices.items()):
        rows, entries, operators, lines = table(files)
        text += (
            f"\n## {device}\n{entries} entries for {operators} operators, in {lines} lines.\n\n"
            "| operator | function | dtypes | only | what the vendor's source does not say, and is assumed |\n"
            "|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    return {"reference/bound_operators.md": text}
