# SPDX-License-Identifier: Apache-2.0
"""python -m tenon.torch train.py [ARGUMENTS]: a program for PyTorch, as it is, without PyTorch.

`python -m tenon.torch -m package.module` runs a module. In the program, and in the processes that it starts by
multiprocessing, `import torch` means Tenon (docs/torch_alias.md).
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from types import CodeType, ModuleType
from typing import Any

from tenon.compat.torch import alias

_USAGE = "usage: python -m tenon.torch [-m MODULE | SCRIPT] [ARGUMENTS]"
# What processes that multiprocessing starts run in their turn: the path of a script, or "-m" and a module.
_PROGRAM = "TENON_TORCH_PROGRAM"


def _found(program: str) -> tuple[CodeType, str, str]:
    """The code of a program, its path, and its package."""
    if program.startswith("-m "):
        name = program[3:]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        code = getattr(spec.loader, "get_code", lambda _: None)(spec.name) if spec else None
        if spec is None or code is None:
            raise ImportError(
                f"python -m tenon.torch: expected a module, got {name!r}, which has no code"
            )
        return code, str(spec.origin), spec.parent or ""
    with open(program, "rb") as file:
        return compile(file.read(), program, "exec"), program, ""


def _run(program: str, module: ModuleType) -> None:
    """Runs a program in `module`. multiprocessing takes its main module by the name in __spec__, which leads here."""
    code, module.__file__, module.__package__ = _found(program)
    module.__spec__ = importlib.machinery.ModuleSpec("tenon.torch", None)
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    exec(code, vars(module))


def main(arguments: list[str]) -> int:
    """Runs the program that `arguments` name, with those that follow."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if arguments else 2
    is_module = arguments[0] == "-m"
    if is_module and len(arguments) == 1:
        print(f"{_USAGE}\npython -m tenon.torch: expected a module after -m", file=sys.stderr)
        return 2
    if not is_module and not os.path.isfile(arguments[0]):
        what = f"expected a script, got {arguments[0]!r}, which is not there"
        print(f"python -m tenon.torch: {what}", file=sys.stderr)
        return 2
    alias()
    # As if Python had started the program: its own modules come first.
    if is_module:
        program, sys.path[0] = f"-m {arguments[1]}", os.getcwd()
        sys.argv = [_found(program)[1], *arguments[2:]]
    else:
        program = os.path.abspath(arguments[0])
        sys.argv, sys.path[0] = arguments, os.path.dirname(program)
    os.environ[_PROGRAM] = program
    module = sys.modules["__main__"] = ModuleType("__main__")
    _run(program, module)
    return 0


def _names_in_a_child() -> dict[str, Any]:
    """What the program defines, in a process that multiprocessing has started."""
    alias()
    module = ModuleType("__mp_main__")
    _run(os.environ[_PROGRAM], module)
    return vars(module)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
elif __name__ == "__mp_main__":
    globals().update(_names_in_a_child())
