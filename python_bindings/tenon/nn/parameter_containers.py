# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts of parameters that a module owns."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from tenon import Tensor

from .module import Module
from .parameter import Parameter


def _parameter(value: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"expected a Parameter or a tensor, got {type(value).__name__}")
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(Module):
    """A list of parameters; plain tensors become parameters."""

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        self.extend(values or ())

    def _list(self) -> list[Any]:
        return [value for _, value in self.named_parameters(recurse=False, remove_duplicate=False)]

    def append(self, value: Tensor) -> ParameterList:
        setattr(self, str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._list())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list())

    def __getitem__(self, index: int | slice) -> Any:
        chosen = self._list()[index]
        return ParameterList(chosen) if isinstance(index, slice) else chosen

    def __setitem__(self, index: int, value: Tensor) -> None:
        setattr(self, str(range(len(self))[index]), _parameter(value))

    def extra_repr(self) -> str:
        return ", ".join(str(tuple(each.shape)) for each in self)


class ParameterDict(Module):
    """A dict of parameters; plain tensors become parameters."""

    def __init__(self, values: Mapping[str, Tensor] | Iterable[Any] | None = None) -> None:
        self.update(values or {})

    def _dict(self) -> dict[str, Any]:
        return dict(self.named_parameters(recurse=False, remove_duplicate=False))

    def update(self, values: Mapping[str, Tensor] | Iterable[Any]) -> None:
        pairs: Iterable[Any] = (
            values.items() if isinstance(values, (Mapping, ParameterDict)) else values
        )
        for name, value in pairs:
            self[name] = value

    def keys(self) -> KeysView[str]:
        return self._dict().keys()

    def values(self) -> ValuesView[Any]:
        return self._dict().values()

    def items(self) -> ItemsView[str, Any]:
        return self._dict().items()

    def pop(self, name: str) -> Any:
        value = self[name]
        del self[name]
        return value

    def __len__(self) -> int:
        return len(self._dict())

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict())

    def __contains__(self, name: object) -> bool:
        return name in self._dict()

    def __getitem__(self, name: str) -> Any:
        return self._dict()[name]

    def __setitem__(self, name: str, value: Tensor) -> None:
        if hasattr(type(self), name):
            raise KeyError(
                f"ParameterDict: {name!r} is an attribute of Module; choose another name"
            )
        setattr(self, name, _parameter(value))

    def __delitem__(self, name: str) -> None:
        self[name]  # a KeyError if there is none
        delattr(self, name)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}: {tuple(value.shape)}" for name, value in self.items())
