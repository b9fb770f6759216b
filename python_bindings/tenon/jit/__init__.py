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

from tenon.jit import rewrites
from tenon.jit.compiled import compile
from tenon.jit.control_flow import cond, scan, while_loop
from tenon.jit.dynamic_shapes import Dim
from tenon.jit.program import Program, export, load
from tenon.jit.syntax import not_to_static, rewritten_source

__all__ = [
    "Dim",
    "Program",
    "compile",
    "cond",
    "export",
    "load",
    "not_to_static",
    "rewrites",
    "rewritten_source",
    "scan",
    "while_loop",
]
