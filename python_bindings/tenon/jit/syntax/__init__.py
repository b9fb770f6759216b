# SPDX-License-Identifier: Apache-2.0
"""Control flow over tensors, by rewriting the syntax tree of functions that are exported.

`source` finds the tree of a function and makes a function of what became of it, `jumps` turns `return`, `break` and
`continue` inside of branches and loops into flags, `rewriter` puts calls in the place of `if`, `while` and the like,
and `runtime` holds what they call: it looks at the value that decides, and does what Python does unless that is a
tensor that is being recorded. `regions` records branches and loops then, with the variables in `state`.
"""

from tenon.jit.syntax import runtime as _runtime  # noqa: F401  rewritten functions close over it
from tenon.jit.syntax.session import Session
from tenon.jit.syntax.source import not_to_static, rewritten, rewritten_source

__all__ = ["Session", "not_to_static", "rewritten", "rewritten_source"]
