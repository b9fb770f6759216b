# SPDX-License-Identifier: Apache-2.0
"""A program as a graph for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenon import _core


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def to_dot(program: _core.Program) -> str:
    """One node for each input, leaf and step, one edge for each value that a step reads."""
    inputs, leaves, steps, results = program.parts()
    lines = ["digraph program {", '  node [shape=box, fontname="monospace"];']
    makers: dict[int, str] = {}  # by value: the node that made it or wrote into it last
    numbers: dict[int, int] = {}  # by value: its number in the text form

    def add_node(label: str, style: str = "") -> str:
        node = f"n{len(nodes)}"
        nodes.append(node)
        lines.append(f'  {node} [label="{_label(label)}"{style}];')
        return node

    def make(value: int, node: str) -> None:
        makers[value] = node
        numbers.setdefault(value, len(numbers))

    nodes: list[str] = []
    for value, type_text in inputs:
        make(value, add_node(f"input {type_text}", ", style=rounded"))
    for (value, type_text), (name, _, is_constant) in zip(leaves, program.leaves(), strict=True):
        kind = "constant" if is_constant else "leaf"
        label = f'{kind} {type_text} "{name}"' if name else f"{kind} {type_text}"
        make(value, add_node(label, ", style=rounded"))
    for name, operands, made, given in steps:
        node = add_node(name)
        for value in dict.fromkeys(operands):
            lines.append(f"  {makers[value]} -> {node};")
        for index, value in enumerate(made):
            if given >> index & 1:
                lines.append(f'  {makers[value]} -> {node} [label="writes", style=dashed];')
            make(value, node)
    for value in results:
        lines.append(f'  {makers[value]} -> result [label="{numbers[value]}"];')
    return "\n".join([*lines, "  result [style=rounded];", "}"]) + "\n"
