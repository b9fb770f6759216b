# SPDX-License-Identifier: Apache-2.0
"""Nested containers of tensors, taken apart and put together again.

A structure is made of lists: ["tensor"], ["tuple", [...]], ["list", [...]],
["dict", [[key, structure], ...]], ["value", constant] and ["texts", vocabulary], which is a tensor of
numbers into a list of texts and nested lists of these texts outside. It is JSON where its constants are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenon._core import Tensor

TENSOR = ["tensor"]
_MOST_DEEP = 200  # containers in containers; Python's own stack ends soon behind


def flatten(tree: Any, tensors: list[Tensor], depth: int = 0) -> list[Any]:
    """Append the tensors of `tree` to `tensors`, and return its structure. Raises ValueError for containers that lie
    too deep in others."""
    if isinstance(tree, Tensor):
        tensors.append(tree)
        return TENSOR
    if depth > _MOST_DEEP:
        raise ValueError(
            f"expected containers that lie at most {_MOST_DEEP} deep in others, got deeper ones; does one "
            f"contain itself?"
        )
    if type(tree) in (tuple, list):
        return [type(tree).__name__, [flatten(item, tensors, depth + 1) for item in tree]]
    if type(tree) is dict:
        return ["dict", [[key, flatten(item, tensors, depth + 1)] for key, item in tree.items()]]
    return ["value", tree]


def unflatten(structure: list[Any], tensors: Iterator[Tensor]) -> Any:
    """The inverse: a tree with tensors where the structure has them."""
    kind = structure[0]
    if kind == "tensor":
        return next(tensors)
    if kind == "dict":
        return {key: unflatten(item, tensors) for key, item in structure[1]}
    if kind == "value":
        return structure[1]
    if kind == "texts":
        return _texts(next(tensors).tolist(), structure[1])
    items = [unflatten(item, tensors) for item in structure[1]]
    return tuple(items) if kind == "tuple" else items


def _texts(numbers: Any, vocabulary: list[str]) -> Any:
    if isinstance(numbers, list):
        return [_texts(number, vocabulary) for number in numbers]
    return vocabulary[numbers]


def has_texts(structure: list[Any]) -> bool:
    """Whether a part of it is text."""
    kind = structure[0]
    if kind == "dict":
        return any(has_texts(item) for _, item in structure[1])
    return kind == "texts" or (kind in ("tuple", "list") and any(map(has_texts, structure[1])))


def same(a: list[Any], b: list[Any]) -> bool:
    """Whether two structures are equal; constants of different types are not, and True is not 1."""
    if a[0] != b[0]:
        return False
    if a[0] == "tensor":
        return True
    if a[0] == "texts":
        return bool(a[1] == b[1])
    if a[0] == "value":
        return type(a[1]) is type(b[1]) and bool(a[1] == b[1])
    if len(a[1]) != len(b[1]):
        return False
    if a[0] == "dict":
        return all(x[0] == y[0] and same(x[1], y[1]) for x, y in zip(a[1], b[1], strict=True))
    return all(same(x, y) for x, y in zip(a[1], b[1], strict=True))


def count(structure: Any) -> int:
    """How many tensors a structure has. Raises ValueError for what is no structure."""
    if not isinstance(structure, list) or not structure:
        raise ValueError("expected a structure, got something else")
    kind, items = structure[0], structure[1] if len(structure) == 2 else None
    if structure == TENSOR:
        return 1
    if kind == "value" and len(structure) == 2:
        return 0
    if kind == "texts" and isinstance(items, list):
        return 1
    if kind in ("tuple", "list") and isinstance(items, list):
        return sum(count(item) for item in items)
    if kind == "dict" and isinstance(items, list):
        if all(isinstance(item, list) and len(item) == 2 for item in items):
            return sum(count(item[1]) for item in items)
    raise ValueError(f"expected a structure, got one of kind {kind!r}")


def describe(structure: list[Any]) -> str:
    """For messages: "(Tensor, 3, [Tensor])"."""
    kind = structure[0]
    if kind == "tensor":
        return "Tensor"
    if kind == "value":
        return repr(structure[1])
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {describe(item)}" for key, item in structure[1]) + "}"
    items = ", ".join(describe(item) for item in structure[1])
    if kind == "list":
        return f"[{items}]"
    return f"({items},)" if len(structure[1]) == 1 else f"({items})"
