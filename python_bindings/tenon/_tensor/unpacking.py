# SPDX-License-Identifier: Apache-2.0
"""`values, indices = x.max(1)`: PyTorch's meaning, which takes the two rows of the maxima apart here. It is told once for each place."""

from __future__ import annotations

import dis
import sys
import warnings
from types import CodeType
from typing import Final

from tenon._tensor.ports import is_port

# Methods that give two tensors in PyTorch, and what gives the second one here.
_SECOND = {
    "max": "argmax",
    "min": "argmin",
    "sort": "argsort",
}
_MOST: Final = 1 << 14
# Calls by the number of their code object and the offset in it. A code object that is gone may hide a call of another one.
_looked: set[tuple[int, int]] = set()


def look() -> None:
    """Called where a tensor of two rows is iterated, by the frame that does it."""
    frame = sys._getframe(1)
    code, offset = frame.f_code, frame.f_lasti
    place = id(code), offset
    if place in _looked or len(_looked) >= _MOST:
        return
    _looked.add(place)
    if is_port(frame.f_globals):
        return  # told by the method itself
    name = _unpacked_call(code, offset)
    if name is not None:
        warnings.warn(
            f"`values, indices = x.{name}(...)` takes the two rows of the values apart: Tenon's {name} gives the values alone, and "
            f"x.{_SECOND[name]}(...) the indices; write axis= to say that this is meant. `python -m tenon.torch` runs "
            f"programs for PyTorch as they are",
            stacklevel=2,
        )


def _unpacked_call(code: CodeType, offset: int) -> str | None:
    """The method whose result the instruction at `offset` takes apart into two, where it was given an axis without its name."""
    before: list[dis.Instruction] = []
    for each in dis.get_instructions(code):
        if each.offset >= offset:
            if each.opname != "UNPACK_SEQUENCE" or each.arg != 2:
                return None
            break
        if each.opname.startswith(("STORE_", "POP_TOP", "RESUME")):
            before.clear()
        before.append(each)
    if not before or not before[-1].opname.startswith("CALL") or not before[-1].arg:
        return None
    if any(isinstance(each.argval, tuple) and "axis" in each.argval for each in before):
        return None
    if any(each.opname == "KW_NAMES" and "axis" in _names(code, each) for each in before):
        return None
    called = [each.argval for each in before if each.opname in ("LOAD_METHOD", "LOAD_ATTR")]
    return next((name for name in reversed(called) if name in _SECOND), None)


def _names(code: CodeType, instruction: dis.Instruction) -> tuple[object, ...]:
    found = code.co_consts[instruction.arg or 0]
    return found if isinstance(found, tuple) else ()
