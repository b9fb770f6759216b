# SPDX-License-Identifier: Apache-2.0
"""Programs: what a function asks of operators, recorded once and run without it.

    program = tenon.jit.export(model, (x,))
    y = program(x)
    program.save("model.tenon")
    y = tenon.jit.load("model.tenon")(x)

`compile` makes programs of a function as it is called; `rewrites` holds the expressions that may stand for others in
a program (`tenon.graph` is the same module). `tenon.compile`, `tenon.export` and `tenon.Dim` are the names here.
docs/graphs.md says what a program can hold.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenon.jit import rewrites as rewrites
    from tenon.jit.builder import Builder as Builder
    from tenon.jit.compiled import compile as compile
    from tenon.jit.control_flow import cond as cond
    from tenon.jit.control_flow import scan as scan
    from tenon.jit.control_flow import while_loop as while_loop
    from tenon.jit.dynamic_shapes import Dim as Dim
    from tenon.jit.program import Program as Program
    from tenon.jit.program import export as export
    from tenon.jit.program import load as load
    from tenon.jit.program_graph import ProgramGraph as ProgramGraph
    from tenon.jit.program_graph import add_pass as add_pass
    from tenon.jit.program_graph import remove_pass as remove_pass
    from tenon.jit.syntax import not_to_static as not_to_static
    from tenon.jit.syntax import rewritten_source as rewritten_source

__all__ = [
    "Builder",
    "Dim",
    "Program",
    "ProgramGraph",
    "add_pass",
    "compile",
    "cond",
    "export",
    "load",
    "not_to_static",
    "remove_pass",
    "rewrites",
    "rewritten_source",
    "scan",
    "while_loop",
]


# Where names lie: most of the package reads the source of functions, and a service that loads a file has none.
_PLACES = {
    "builder": "Builder",
    "compiled": "compile",
    "control_flow": "cond scan while_loop",
    "dynamic_shapes": "Dim",
    "program": "Program export load",
    "program_graph": "ProgramGraph add_pass remove_pass",
    "syntax": "not_to_static rewritten_source",
}
_LAZY = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _PLACES or name == "rewrites":
        return _importlib.import_module(f"tenon.jit.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'tenon.jit' has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"tenon.jit.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
