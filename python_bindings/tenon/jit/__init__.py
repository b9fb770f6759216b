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

from tenon.jit.builder import Builder
from tenon.jit.control_flow import cond, scan, while_loop
from tenon.jit.dynamic_shapes import Dim
from tenon.jit.program import Program, export, load
from tenon.jit.syntax import not_to_static, rewritten_source

if TYPE_CHECKING:
    from tenon.jit import rewrites as rewrites
    from tenon.jit.compiled import compile as compile
    from tenon.jit.program_graph import ProgramGraph as ProgramGraph
    from tenon.jit.program_graph import add_pass as add_pass
    from tenon.jit.program_graph import remove_pass as remove_pass

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


# Programs that load and run do without these.
def __getattr__(name: str) -> Any:
    if name == "rewrites":
        return _importlib.import_module("tenon.jit.rewrites")
    if name == "compile":
        value = globals()[name] = _importlib.import_module("tenon.jit.compiled").compile
        return value
    if name in ("ProgramGraph", "add_pass", "remove_pass"):
        value = globals()[name] = getattr(_importlib.import_module("tenon.jit.program_graph"), name)
        return value
    raise AttributeError(f"module 'tenon.jit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
