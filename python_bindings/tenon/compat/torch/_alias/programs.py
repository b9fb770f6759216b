# SPDX-License-Identifier: Apache-2.0
"""torch.compiler, torch.jit and torch.onnx. Functions stay what they are: TorchScript is no other meaning of a function, so
`script` gives the function itself, and what belongs to the compiled form is an error."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlparse

from tenon import nn
from tenon.compat.torch import _layers

from .absent import absent_class, absent_function
from .mentioned import itself, no

__all__ = ["Annotations", "Compiler", "Hub", "Jit", "Onnx", "OptimizedModule", "compile"]


def compile(model: Any = None, **options: Any) -> Any:
    """tenon.compile, of a module a module."""
    if model is None:
        return lambda each: compile(each, **options)
    compiled = _layers.compile(model, **options)
    return OptimizedModule(model, compiled) if isinstance(model, nn.Module) else compiled


class OptimizedModule(nn.Module):
    """A module whose calls are compiled; all else of it is the module's."""

    def __init__(self, module: nn.Module, compiled: Any) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = (compiled,)  # in a tuple, where no module is looked for

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled[0](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            raise AttributeError(name)
        return getattr(self._orig_mod, name)


class Compiler:
    """torch.compiler."""

    is_compiling = is_dynamo_compiling = is_exporting = no
    disable = allow_in_graph = assume_constant_result = itself

    @staticmethod
    def cudagraph_mark_step_begin() -> None:
        pass

    @staticmethod
    def reset() -> None:
        pass

    @staticmethod
    def list_backends(exclude_tags: Any = None) -> list[str]:
        """None but Tenon's own, which has no name."""
        return []

    set_stance = absent_function("torch.compiler.set_stance")


class Jit:
    """torch.jit."""

    is_scripting = is_tracing = no
    script = ignore = unused = export = interface = script_if_tracing = _script_if_tracing = (
        script_method
    ) = itself
    Final = Final
    ScriptModule, ScriptFunction = map(
        absent_class, ("torch.jit.ScriptModule", "torch.jit.ScriptFunction")
    )
    trace = absent_function("torch.jit.trace", "tenon.export records a program")
    save = absent_function("torch.jit.save", "tenon.export(...).save() writes a program")
    load = absent_function("torch.jit.load", "tenon.jit.load reads a program of Tenon")

    @staticmethod
    def annotate(the_type: Any, the_value: Any) -> Any:
        return the_value


class Annotations:
    """torch.jit.annotations."""

    List, Dict, Optional, Tuple = list, dict, None, tuple


class Onnx:
    """torch.onnx."""

    export = absent_function("torch.onnx.export", "tenon.onnx.export writes models of ONNX")
    is_in_onnx_export = no


class Hub:
    """torch.hub: nothing is downloaded."""

    HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
    load = absent_function("torch.hub.load")
    download_url_to_file = absent_function("torch.hub.download_url_to_file")
    load_state_dict_from_url = absent_function("torch.hub.load_state_dict_from_url")
    get_dir = _get_torch_home = absent_function("torch.hub.get_dir")
    urlparse = staticmethod(urlparse)
