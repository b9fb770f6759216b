# SPDX-License-Identifier: Apache-2.0
"""torch.nn: what modules of PyTorch have and those of Tenon lack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import tenon
from tenon import multiprocessing, nn
from tenon._core import Tensor
from tenon.nn.hooks import HookHandle

from .ranks import OfModules

__all__ = ["DataParallel", "NonDynamicallyQuantizableLinear", "_IncompatibleKeys"]

DataParallel = OfModules.DataParallel
NonDynamicallyQuantizableLinear = nn.Linear
_IncompatibleKeys = nn.LoadReport


class _Parts(MutableMapping):
    """module._parameters and its relatives: the parts of one kind among a module's attributes, to read and to write."""

    def __init__(self, module: nn.Module, kind: type) -> None:
        self._module, self._kind = module, kind

    def _names(self) -> list[str]:
        return [name for name, value in vars(self._module).items() if isinstance(value, self._kind)]

    def __getitem__(self, name: str) -> Any:
        value = vars(self._module).get(name)
        if not isinstance(value, self._kind):
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        vars(self._module).pop(name, None)
        setattr(self._module, name, nn.Buffer(value) if self._kind is nn.Buffer else value)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def _apply(
    self: nn.Module, function: Callable[[Tensor], Tensor], recurse: bool = True
) -> nn.Module:
    """Each parameter, buffer and gradient becomes what `function` makes of it."""
    with tenon.no_grad():
        for module in self.modules() if recurse else [self]:
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                tensor.data = function(tensor.data)
                if tensor.grad is not None:
                    tensor.grad = function(tensor.grad)
    return self


def _cuda(self: nn.Module, device: Any = None) -> nn.Module:
    return self.to(device="cuda" if device is None else device)


_ATTRIBUTES = {
    "_parameters": property(lambda self: _Parts(self, nn.Parameter)),
    "_buffers": property(lambda self: _Parts(self, nn.Buffer)),
    "_modules": property(lambda self: _Parts(self, nn.Module)),
    "_non_persistent_buffers_set": property(
        lambda self: {
            name for name, value in _Parts(self, nn.Buffer).items() if not value.persistent
        }
    ),
    "_apply": _apply,
    "share_memory": lambda self: self._apply(multiprocessing.share),
    "_get_name": lambda self: type(self).__name__,
    "cuda": _cuda,
}


def adopt() -> None:
    """Modules have these attributes from here on."""
    for name, value in _ATTRIBUTES.items():
        if not hasattr(nn.Module, name):
            setattr(nn.Module, name, value)


class Utils:
    """torch.nn.utils."""

    clip_grad_norm = staticmethod(nn.utils.clip_grad_norm_)

    @staticmethod
    def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> nn.Module:
        """A module whose parameters are anything, here what its class gives them."""
        return module_cls(*args, **kwargs)


class Hooks:
    """torch.utils.hooks."""

    RemovableHandle = HookHandle


class Init:
    """torch.nn.init."""

    _calculate_fan_in_and_fan_out = staticmethod(nn.init.fans)
    # Names of before 0.4, which programs still have.
    constant, dirac, eye, normal, orthogonal, sparse, uniform = (
        staticmethod(getattr(nn.init, f"{name}_"))
        for name in "constant dirac eye normal orthogonal sparse uniform".split()
    )
    kaiming_normal, kaiming_uniform, xavier_normal, xavier_uniform = (
        staticmethod(getattr(nn.init, f"{name}_"))
        for name in "kaiming_normal kaiming_uniform xavier_normal xavier_uniform".split()
    )


def _ntuple(n: int, name: str = "") -> Callable[[Any], tuple[Any, ...]]:
    return lambda x: tuple(x) if isinstance(x, (tuple, list)) else (x,) * n


class Tuples:
    """torch.nn.modules.utils: one number for all axes, or one for each."""

    _ntuple = staticmethod(_ntuple)
    _single, _pair, _triple, _quadruple = map(staticmethod, map(_ntuple, (1, 2, 3, 4)))
