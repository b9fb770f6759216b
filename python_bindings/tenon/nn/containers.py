# SPDX-License-Identifier: Apache-2.0
"""Modules made of modules."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from .module import Module


class ModuleList(Module):
    """A list of modules whose parameters are found; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        for module in modules or ():
            self.append(module)

    def append(self, module: Module) -> ModuleList:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        modules = list(self)
        modules.insert(index, module)
        self._replace(modules)

    def pop(self, index: int = -1) -> Module:
        modules = list(self)
        module = modules.pop(index)
        self._replace(modules)
        return module

    def _replace(self, modules: list[Module]) -> None:
        for name in [name for name, _ in self.named_children()]:
            delattr(self, name)
        self.extend(modules)

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[Any]:
        return self.children()

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(*self._pack(list(self)[index]))
        return list(self)[index]

    def __setitem__(self, index: int, module: Module) -> None:
        names = [name for name, _ in self.named_children()]
        self.add_module(names[index], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index]
        self._replace(modules)

    def __add__(self, other: Iterable[Module]) -> Any:
        return type(self)(*self._pack([*self, *other]))

    @staticmethod
    def _pack(modules: list[Module]) -> tuple:
        """Constructor arguments that make a container of these modules."""
        return (modules,)


class Sequential(ModuleList):
    """Calls its modules one after another, each on the result of the one before.

    Takes modules, or one mapping of names to modules.
    """

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            super().__init__()
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            super().__init__(modules)

    def forward(self, x: Any) -> Any:
        for module in self.children():
            x = module(x)
        return x

    @staticmethod
    def _pack(modules: list[Module]) -> tuple:
        return tuple(modules)


class ModuleDict(Module):
    """A dict of modules whose parameters are found; it has no forward of its own.

    Names must not be those of attributes of Module ('forward', 'training', ...).
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[Any] | None = None) -> None:
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module] | Iterable[Any]) -> None:
        pairs: Iterable[Any] = (
            modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        )
        for name, module in pairs:
            self[name] = module

    def _dict(self) -> dict[str, Module]:
        return dict(self.named_children())

    def keys(self) -> KeysView[str]:
        return self._dict().keys()

    def values(self) -> ValuesView[Module]:
        return self._dict().values()

    def items(self) -> ItemsView[str, Module]:
        return self._dict().items()

    def pop(self, name: str) -> Module:
        module = self[name]
        del self[name]
        return module

    def clear(self) -> None:
        for name in list(self.keys()):
            del self[name]

    def __len__(self) -> int:
        return len(self._dict())

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict())

    def __contains__(self, name: object) -> bool:
        return name in self._dict()

    def __getitem__(self, name: str) -> Any:
        return self._dict()[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if hasattr(type(self), name):
            raise KeyError(f"ModuleDict: {name!r} is an attribute of Module; choose another name")
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        self[name]  # a KeyError if there is none
        delattr(self, name)
