# SPDX-License-Identifier: Apache-2.0
"""Nested lists, tuples and dicts, taken apart into their leaves and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Rebuild = Callable[[Iterator[Any]], Any]


def _is_named(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def flatten(tree: Any) -> tuple[list[Any], Rebuild]:
    """The leaves from left to right, and a function that builds the same nest around other
    leaves."""
    if isinstance(tree, dict):
        keys = list(tree)
        leaves, rebuild = flatten([tree[key] for key in keys])
        return leaves, lambda given: dict(zip(keys, rebuild(given), strict=True))
    if not isinstance(tree, (list, tuple)):
        return [tree], next
    parts = [flatten(part) for part in tree]
    leaves = [leaf for part, _ in parts for leaf in part]
    rebuilds = [rebuild for _, rebuild in parts]
    kind: Any = type(tree)

    def build(given: Iterator[Any]) -> Any:
        items = [rebuild(given) for rebuild in rebuilds]
        return kind(*items) if _is_named(tree) else kind(items)

    return leaves, build


def unflatten(rebuild: Rebuild, leaves: Iterable[Any]) -> Any:
    """The nest of flatten() around these leaves."""
    return rebuild(iter(leaves))


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """`function` of every leaf, in the same nest."""
    leaves, rebuild = flatten(tree)
    return unflatten(rebuild, map(function, leaves))


def spread(prefix: Any, tree: Any, what: str) -> list[Any]:
    """A leaf of `prefix`, a nest like the outer levels of `tree`, for each leaf of `tree`."""
    if not isinstance(prefix, (list, tuple, dict)):
        return [prefix] * len(flatten(tree)[0])
    if isinstance(prefix, dict) and isinstance(tree, dict) and prefix.keys() == tree.keys():
        return [leaf for key in tree for leaf in spread(prefix[key], tree[key], what)]
    is_pair = isinstance(prefix, (list, tuple)) and isinstance(tree, (list, tuple))
    if not is_pair or len(prefix) != len(tree):
        raise ValueError(f"{what}: expected a nest like {_shape(tree)}, got {prefix!r}")
    return [leaf for part, of in zip(prefix, tree, strict=True) for leaf in spread(part, of, what)]


def _shape(tree: Any) -> str:
    return repr(map_leaves(lambda _: "*", tree)).replace("'*'", "*")
