# SPDX-License-Identifier: Apache-2.0
"""`flops` of operator definitions: the arithmetic of one call, as an expression of sizes (opdefs/README.md)."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from tenon import _core

UNKNOWN: Final = "unknown"
_SIGNS: Final[dict[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@functools.cache
def formula_of(name: str) -> str | None:
    """What the operator's definition says: an expression, "unknown", or None where it says nothing."""
    for line in _core.operator_traits(name).splitlines():
        key, _, value = line.partition(": ")
        if key == "flops":
            return value
    return None


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def evaluate(text: str, tensors: Mapping[str, Any]) -> int:
    """The number. `tensors`: parameters and results by name; None: the argument is absent."""
    return _value(_parsed(text), tensors)


def check(text: str, names: set[str]) -> None:
    """ValueError if that is no formula of tensors with these names."""
    if text == UNKNOWN:
        return
    try:
        _value(_parsed(text), dict.fromkeys(names, _AnySize()))
    except (SyntaxError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            "flops: expected whole numbers, + - * //, numel(tensor), size(tensor, axis) and given(tensor) of "
            f"{', '.join(sorted(names))}, or 'unknown'; got {text!r} ({error})"
        ) from None


class _AnySize:
    """Stands for a tensor of any shape."""

    size = 1

    @property
    def shape(self) -> _AnySize:
        return self

    def __getitem__(self, axis: int) -> int:
        return 1


def _value(node: ast.expr, tensors: Mapping[str, Any]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        right = _value(node.right, tensors)
        if isinstance(node.op, ast.FloorDiv) and right == 0:
            return 0  # of an empty tensor
        return _SIGNS[type(node.op)](_value(node.left, tensors), right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function, arguments = node.func.id, node.args
        if arguments and isinstance(arguments[0], ast.Name):
            tensor = tensors[arguments[0].id]
            if function == "given" and len(arguments) == 1:
                return int(tensor is not None)
            if function == "numel" and len(arguments) == 1:
                return 0 if tensor is None else int(getattr(tensor, "size", 1))
            if function == "size" and len(arguments) == 2:
                if tensor is None or not hasattr(
                    tensor, "shape"
                ):  # a number in the place of a tensor
                    return int(tensor is not None)
                return int(tensor.shape[ast.literal_eval(arguments[1])])
    raise ValueError(f"{ast.unparse(node)} is not one of these")
