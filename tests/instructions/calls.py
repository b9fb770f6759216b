# SPDX-License-Identifier: Apache-2.0
"""Statements on tensors of one element, to be counted instruction by instruction.

python calls.py libtenon_counting.so
"""

import ctypes
import gc
import sys
from itertools import repeat

import tenon

CALLS = 64
STATEMENTS = [
    "x + y",
    "x + 1.0",
    "x += y",
    "exp(x)",
    "x.sum()",
    "m @ m",
    "x[0]",
    "x[0:1]",
    "m[0, 1:]",
    "x[0] = 1.0",
    "x.shape",
    "m.T",
    "m.transpose()",
    "x.reshape(1, 1)",
    "x.flatten()",
    "x.unsqueeze(0)",
    "zeros(1)",
    "empty(1)",
    "tensor([1.0])",
    "w + y",
    "program(x)",
]


def ten_additions(x):
    for _ in range(10):
        x = x + 1.0
    return x


def main() -> None:
    counting = ctypes.PyDLL(sys.argv[1])  # keeps the interpreter's lock
    begin, end = counting.count_begin, counting.count_end
    names = {
        "x": tenon.tensor([1.0]),
        "y": tenon.tensor([2.0]),
        "w": tenon.tensor([1.0], requires_grad=True),
        "m": tenon.ones((2, 2)),
        "program": None,
        **{name: getattr(tenon, name) for name in ("exp", "zeros", "empty", "tensor")},
    }
    gc.disable()  # it comes when it likes
    for statement in STATEMENTS:
        if statement == "program(x)":  # the last: from here on there is a layer
            names["program"] = tenon.export(ten_additions, names["x"])
        # Names as locals: looking them up is not what is to be counted.
        source = f"def run(times, {', '.join(names)}):\n    for _ in times: {statement}\n"
        scope = {}
        exec(source, scope)
        run = scope["run"]
        run(repeat(None, 4 * CALLS), **names)
        for count in (f"{statement} 1".encode(), f"{statement} 2".encode()):
            times = repeat(None, CALLS)
            begin()
            run(times, **names)
            end(count)


main()
