# SPDX-License-Identifier: Apache-2.0
"""Sizes that an exported program leaves open, as dimensions of a program."""

from __future__ import annotations

from typing import Any

from tenon import _core

_MOST = 1 << 20  # of a dimension without an upper bound


class Sizes:
    """The symbols in the shapes of an exported program's inputs."""

    def __init__(self, exported: Any) -> None:
        self._hints: dict[str, int] = {}
        for node in exported.graph.nodes:
            if node.op == "placeholder":
                self._look_at(node.name, node.meta.get("val"))
        ranges = {str(symbol): bounds for symbol, bounds in exported.range_constraints.items()}
        # (name, min, max, multiple, recorded)
        self.dimensions: list[tuple[str, int, int, int, int]] = []
        for name, hint in self._hints.items():
            bounds = ranges.get(name)
            low = 1 if bounds is None else max(1, int(bounds.lower))
            high = _MOST if bounds is None else _finite(bounds.upper)
            self.dimensions.append((name, low, high, 1, min(max(hint, low), high)))

    def _look_at(self, name: str, value: Any) -> None:
        for axis, size in enumerate(getattr(value, "shape", ())):
            if isinstance(size, int):
                continue
            symbol = size.node.expr
            if not symbol.is_Symbol:
                raise NotImplementedError(
                    f"torch.load: axis {axis} of input `{name}` is the derived dimension {symbol}; only "
                    f"dimensions that stand alone can be told, so export it with a Dim of its own, or Dim.AUTO"
                )
            self._hints.setdefault(str(symbol), _hint(size, symbol))

    def samples(self) -> list[dict[str, int]]:
        """Sizes at which the program is built; one without any where none is open."""
        if not self.dimensions:
            return [{}]
        names = [dimension[0] for dimension in self.dimensions]
        return [
            dict(zip(names, row, strict=True)) for row in _core.program_samples(self.dimensions)
        ]


def _finite(bound: Any) -> int:
    try:
        return min(int(bound), _MOST)
    except (TypeError, ValueError, OverflowError):
        return _MOST


def _hint(size: Any, symbol: Any) -> int:
    """What the symbol was when the model was exported."""
    environment = size.node.shape_env
    known = getattr(environment, "backed_var_to_val", None)
    if known is None:  # before PyTorch 2.12
        known = environment.var_to_val
    return int(known.get(symbol, 4))


def at(size: Any, sizes: dict[str, int]) -> int:
    """A size of PyTorch's, which may be an expression of symbols, where these are known."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression.subs({symbol: sizes[str(symbol)] for symbol in expression.free_symbols}))
