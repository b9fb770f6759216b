# SPDX-License-Identifier: Apache-2.0
"""What an operator's schema says, read from its text: "tenon::op(Tensor x, int axis=-1) ->
Tensor"."""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """A parameter of an operator: "int", "axis", -1."""

    kind: str
    name: str
    default: Any


@functools.cache
def parameters(schema: str) -> list[Parameter]:
    """The parameters of a schema, in order. One without a default has None."""
    inside = schema[schema.index("(") + 1 : schema.rindex(") -> ")]
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    result = []
    for text in map(str.strip, parts):
        if text and text != "*":
            kind, _, rest = text.partition(" ")
            name, _, default = rest.partition("=")
            result.append(Parameter(kind, name, _value(default)))
    return result


def _value(text: str) -> Any:
    words = {"": None, "none": None, "true": True, "false": False, "inf": float("inf")}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("'")
