# SPDX-License-Identifier: Apache-2.0
"""torch.compiler, torch.jit and torch.onnx. Functions stay what they are: TorchScript is no other meaning of a function, so
`script` gives the function itself, and what belongs to the compiled form is an error."""

from __future__ import annotations

import re
from typing import Any, Final

from .absent import absent_class, absent_function

__all__ = ["Compiler", "Hub", "Jit", "Onnx"]


def _itself(function: Any = None, *_: Any, **__: Any) -> Any:
    """The function, which nothing needs to be known of; or a decorator that gives it."""
    return function if function is not None and callable(function) else lambda each: each


def _no() -> bool:
    return False


class Compiler:
    """torch.compiler."""

    is_compiling = is_dynamo_compiling = is_exporting = _no
    disable = allow_in_graph = assume_constant_result = _itself

    @staticmethod
    def cudagraph_mark_step_begin() -> None:
        pass

    @staticmethod
    def reset() -> None:
        pass


class Jit:
    """torch.jit."""

    is_scripting = is_tracing = _no
    script = ignore = unused = export = interface = script_if_tracing = _script_if_tracing = script_method = _itself
    Final = Final
    ScriptModule, ScriptFunction = map(absent_class, ("torch.jit.ScriptModule", "torch.jit.ScriptFunction"))
    trace = absent_function("torch.jit.trace", "tenon.export records a program")
    save = absent_function("torch.jit.save", "tenon.export(...).save() writes a program")
    load = absent_function("torch.jit.load", "tenon.jit.load reads a program of Tenon")

    @staticmethod
    def annotate(the_type: Any, the_value: Any) -> Any:
        return the_value


class Onnx:
    """torch.onnx."""

    export = absent_function("torch.onnx.export", "tenon.onnx.export writes models of ONNX")
    is_in_onnx_export = _no


class Hub:
    """torch.hub: nothing is downloaded."""

    HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
    load = absent_function("torch.hub.load")
    download_url_to_file = absent_function("torch.hub.download_url_to_file")
    load_state_dict_from_url = absent_function("torch.hub.load_state_dict_from_url")
    get_dir = absent_function("torch.hub.get_dir")
