# SPDX-License-Identifier: Apache-2.0
"""How many of PaddlePaddle's public names tenon.compat.paddle has, module by module.

    python -m tests.bridges.paddle_names [--missing]

Runs where PaddlePaddle is installed. Public is what a module lists in `__all__`; for one that lists nothing, what it does not import.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import types
import warnings

from tenon.compat import paddle as compat

SPACES = """paddle paddle.nn paddle.nn.functional paddle.nn.initializer paddle.linalg paddle.fft paddle.signal paddle.geometric paddle.sparse
paddle.regularizer paddle.incubate paddle.incubate.nn.functional paddle.static.nn paddle.nn.utils paddle.vision.ops paddle.vision.models
paddle.vision.transforms paddle.vision.datasets paddle.io paddle.optimizer paddle.optimizer.lr paddle.metric paddle.distribution paddle.amp
paddle.autograd paddle.text paddle.audio paddle.callbacks paddle.jit""".split()


def public(space: str) -> list[str]:
    """PaddlePaddle's names of a module."""
    module = importlib.import_module(space)
    own = getattr(module, "__all__", None) or [
        name for name in dir(module) if not isinstance(getattr(module, name), types.ModuleType)
    ]
    return sorted({name for name in own if not name.startswith("_")})


def found(space: str, name: str) -> bool:
    """Whether the namespace has it."""
    value: object = compat
    try:
        for part in (*space.split(".")[1:], name):
            value = getattr(value, part)
    except AttributeError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--missing", action="store_true", help="print the names that are not there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    there = every = 0
    for space in SPACES:
        names = public(space)
        lacking = [name for name in names if not found(space, name)]
        there, every = there + len(names) - len(lacking), every + len(names)
        print(f"{space}: {len(names) - len(lacking)} of {len(names)}")
        if options.missing and lacking:
            print("  " + " ".join(lacking))
    print(f"{there} of {every} names are there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
