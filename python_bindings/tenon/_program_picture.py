# SPDX-License-Identifier: Apache-2.0
"""A program's text form as a graph for Graphviz."""

from __future__ import annotations

import re

_RESULT = re.compile(r"%(\d+)(: [a-z0-9_]+\[[^]]*\] \S+)?(?:, )?")


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def to_dot(text: str) -> str:
    """One node for each input, leaf and step, one edge for each value that a step reads."""
    lines = ["digraph program {", '  node [shape=box, fontname="monospace"];']
    makers: dict[str, str] = {}  # by value: the node that made it or wrote into it last
    depth = 0
    for number, line in enumerate(text.splitlines()):
        if depth or line == "}":
            depth += line.strip().endswith("{") and not line.strip().startswith("}")
            depth -= line.strip() == "}"
            continue
        node = f"n{number}"
        if match := re.match(r"(input|leaf|constant) %(\d+): (.*)", line):
            kind, value, rest = match.groups()
            lines.append(f'  {node} [label="{_label(kind + " " + rest)}", style=rounded];')
            makers[value] = node
        elif line.startswith("%"):
            results, call = line.split(" = ", 1)
            name, arguments = call.split("(", 1)
            lines.append(f'  {node} [label="{_label(name)}"];')
            for value in dict.fromkeys(re.findall(r"%(\d+)", arguments)):
                lines.append(f"  {makers[value]} -> {node};")
            for value, type_text in _RESULT.findall(results):
                if not type_text:
                    lines.append(f'  {makers[value]} -> {node} [label="writes", style=dashed];')
                makers[value] = node
            depth = line.endswith("{")
        elif line.startswith("return"):
            for value in re.findall(r"%(\d+)", re.sub(r'"(\\.|[^"\\])*"', "", line)):
                lines.append(f'  {makers[value]} -> result [label="{value}"];')
    return "\n".join([*lines, "  result [style=rounded];", "}"]) + "\n"
