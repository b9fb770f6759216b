# SPDX-License-Identifier: Apache-2.0
"""python -m tenon.torch train.py [ARGUMENTS]: a program for PyTorch, as it is, without PyTorch.

`python -m tenon.torch -m package.module` runs a module. In the program `import torch` means Tenon (docs/torch_alias.md).
"""

from __future__ import annotations

import os
import runpy
import sys

from tenon.compat.torch import alias

_USAGE = "usage: python -m tenon.torch [-m MODULE | SCRIPT] [ARGUMENTS]"


def main(arguments: list[str]) -> int:
    """Runs the program that `arguments` name, with those that follow."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if arguments else 2
    is_module = arguments[0] == "-m"
    if is_module and len(arguments) == 1:
        print(f"{_USAGE}\npython -m tenon.torch: expected a module after -m", file=sys.stderr)
        return 2
    alias()
    # The folder that holds the program's own modules comes first, as if Python had started it.
    if is_module:
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    script = arguments[0]
    if not os.path.exists(script):
        print(
            f"python -m tenon.torch: expected a script, got {script!r}, which is not there",
            file=sys.stderr,
        )
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
