# SPDX-License-Identifier: Apache-2.0
"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .module import Module


class ModuleList(Module):
    """A list of modules whose parameters are found; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> ModuleList:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(*self._pack(list(self)[index]))
        return list(self)[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(str(range(len(self))[index]), module)

    @staticmethod
    def _pack(modules: list[Module]) -> tuple:
        """Constructor arguments that make a container of these modules."""
        return (modules,)


class Sequential(ModuleList):
    """Calls its modules one after another, each on the result of the one before."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        for module in self.children():
            x = module(x)
        return x

    @staticmethod
    def _pack(modules: list[Module]) -> tuple:
        return tuple(modules)
