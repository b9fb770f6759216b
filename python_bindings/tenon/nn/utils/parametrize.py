# SPDX-License-Identifier: Apache-2.0
"""Parameters that are computed from others.

The class of the module is replaced by a subclass in which the parametrised name is a property. It
applies the modules of `module.parametrizations.<name>` in order to the tensor
`module.parametrizations.<name>.original`, which is what is trained and saved.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator
from typing import Any

import tenon
from tenon import Tensor

from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

_cache = threading.local()


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, and the tensor that they start from.

    A parametrisation whose `right_inverse` returns several tensors has them as `original0`,
    `original1`, ...
    """

    def __init__(self, module: Module, original: Tensor) -> None:
        originals: Any = original
        if hasattr(module, "right_inverse"):
            with tenon.no_grad():
                originals = module.right_inverse(original)
        super().__init__([module])
        self._count = 0 if isinstance(originals, Tensor) else len(originals)
        for i, tensor in enumerate((originals,) if self._count == 0 else originals):
            name = "original" if self._count == 0 else f"original{i}"
            setattr(self, name, tensor if isinstance(tensor, Parameter) else Parameter(tensor))

    def _originals(self) -> list[Any]:
        names = [f"original{i}" for i in range(self._count)] or ["original"]
        return [getattr(self, name) for name in names]

    def forward(self) -> Tensor:
        first, *others = self.children()
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value

    def assign(self, value: Tensor) -> None:
        """Change the originals such that the result is `value`; needs right_inverse."""
        with tenon.no_grad():
            modules = list(self.children())
            for module in reversed(modules):
                if not hasattr(module, "right_inverse"):
                    raise TypeError(
                        f"{type(module).__name__} has no right_inverse, so that a parametrised "
                        "tensor cannot be assigned"
                    )
                value = module.right_inverse(value)
            values: Any = (value,) if isinstance(value, Tensor) else value
            for original, new in zip(self._originals(), values):
                original.copy_(new)


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Compute `module.<tensor_name>` by `parametrization(original)` from now on."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        getattr(module.parametrizations, tensor_name).append(parametrization)
        return module
    original = vars(module).get(tensor_name)
    if not isinstance(original, Tensor):
        raise ValueError(
            f"register_parametrization: {type(module).__name__} has no parameter or buffer "
            f"{tensor_name!r}"
        )
    shape = tuple(original.shape)
    delattr(module, tensor_name)
    if "parametrizations" not in vars(module):
        module.parametrizations = ModuleDict()
    chain = ParametrizationList(parametrization, original)
    setattr(module.parametrizations, tensor_name, chain)
    _add_property(module, tensor_name)
    got = tuple(getattr(module, tensor_name).shape)
    if got != shape and not unsafe:
        remove_parametrizations(module, tensor_name, leave_parametrized=False)
        raise ValueError(
            f"register_parametrization: expected a result of shape {shape}, got {got}; pass "
            "unsafe=True if this is meant"
        )
    return module


def _add_property(module: Any, name: str) -> None:
    if not hasattr(type(module), "_parametrized_base"):
        module.__class__ = _subclass(type(module))

    def read(self: Any) -> Tensor:
        store = getattr(_cache, "values", None)
        if store is None:
            return getattr(self.parametrizations, name)()
        key = (id(self), name)
        if key not in store:
            # The module is kept, so that no other one gets its address inside of the block.
            store[key] = (self, getattr(self.parametrizations, name)())
        return store[key][1]

    def write(self: Any, value: Tensor) -> None:
        getattr(self.parametrizations, name).assign(value)

    setattr(type(module), name, property(read, write))


def _subclass(base: type) -> type:
    """A class for one module, which can have properties of its own."""
    body = {
        "_parametrized_base": base,
        "__deepcopy__": _deepcopy,
        "__reduce_ex__": _refuse_pickle,
        "__module__": base.__module__,
    }
    return type(f"Parametrized{base.__name__}", (base,), body)


def _deepcopy(self: Any, memo: dict) -> Any:
    other: Any = object.__new__(_subclass(type(self)._parametrized_base))
    memo[id(self)] = other
    vars(other).update({key: copy.deepcopy(value, memo) for key, value in vars(self).items()})
    for name in other.parametrizations:
        _add_property(other, name)
    return other


def _refuse_pickle(self: Any, protocol: Any) -> Any:
    raise TypeError(
        "a parametrised module cannot be pickled; save its state_dict, or remove the "
        "parametrizations first"
    )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module, or the one of this name, is parametrised."""
    chains = vars(module).get("parametrizations")
    if chains is None:
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make `tensor_name` a parameter again: with its present value, or with the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {tensor_name!r} is not parametrised")
    chain = getattr(module.parametrizations, tensor_name)
    if leave_parametrized or chain._count:
        with tenon.no_grad():
            value: Any = Parameter(getattr(module, tensor_name).clone())
    else:
        value = chain.original
    del module.parametrizations[tensor_name]
    delattr(type(module), tensor_name)
    if len(module.parametrizations) == 0:
        del module.parametrizations
        module.__class__ = type(module)._parametrized_base
    setattr(module, tensor_name, value)
    return module


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrised tensor once inside the block."""
    before = getattr(_cache, "values", None)
    _cache.values = {} if before is None else before
    try:
        yield
    finally:
        _cache.values = before
