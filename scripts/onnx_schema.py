# SPDX-License-Identifier: Apache-2.0
"""Writes opdefs/onnx/schema.txt, the operators of ONNX's domains, from an installed `onnx` package.

    python scripts/onnx_schema.py > opdefs/onnx/schema.txt

A line is one operator from one opset on:

    Conv 11 (X, W, B?) auto_pad:string="NOTSET" dilations:ints group:int=1 -> Y

`?` marks an optional input or result, `...` one that takes any number. `!` behind an attribute says
that it must be given. `deprecated` ends the line of an operator that models of this opset must not use.
"""

from __future__ import annotations

import json

import onnx
from onnx import defs, helper

_OPTIONS = {
    defs.OpSchema.FormalParameterOption.Optional: "?",
    defs.OpSchema.FormalParameterOption.Variadic: "...",
}


def _attribute(attribute: defs.OpSchema.Attribute) -> str:
    kind = str(attribute.type).rsplit(".", maxsplit=1)[-1].lower()
    text = f"{attribute.name}:{kind}"
    if attribute.required:
        return text + "!"
    if attribute.default_value.type == 0:
        return text
    value = helper.get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, float):
        value = float(f"{value:.9g}")
    if isinstance(value, list):
        value = [item.decode() if isinstance(item, bytes) else item for item in value]
    return text + "=" + json.dumps(value, separators=(",", ":"))


def _parameters(parameters: list[defs.OpSchema.FormalParameter]) -> str:
    return ", ".join(item.name.rstrip(".") + _OPTIONS.get(item.option, "") for item in parameters)


def _name(schema: defs.OpSchema) -> str:
    """With the domain, where that is another than ai.onnx."""
    return f"{schema.domain}.{schema.name}" if schema.domain else schema.name


def lines() -> list[str]:
    """One line for each (operator, since) pair."""
    found = []
    for schema in defs.get_all_schemas_with_history():
        attributes = [_attribute(schema.attributes[name]) for name in sorted(schema.attributes)]
        words = [
            _name(schema),
            str(schema.since_version),
            f"({_parameters(schema.inputs)})",
            *attributes,
        ]
        words += ["->", _parameters(schema.outputs)]
        if schema.deprecated:
            words.append("deprecated")
        found.append((_name(schema), schema.since_version, " ".join(words)))
    return [line for _, _, line in sorted(found)]


if __name__ == "__main__":
    print("# The operators of ONNX, by scripts/onnx_schema.py from onnx", onnx.__version__)
    print("\n".join(lines()))
