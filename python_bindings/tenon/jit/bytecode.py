# SPDX-License-Identifier: Apache-2.0
"""The names that the code of a function reads: globals, attributes, modules that it imports."""

from __future__ import annotations

import dis
import functools
import re
import sys
import types
from typing import NamedTuple

# The versions of CPython whose instructions are known here. Another one may have instructions that read names in
# other ways, and what is not seen would be taken for unchanged.
_FIRST, _LAST = (3, 10), (3, 14)

_GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"}
# Of calls of `getattr`: what makes a name, and what ends the arguments.
_READERS = {"getattr", "hasattr"}
_MAKERS = {"BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "BINARY_OP", "BINARY_ADD"}


class Names(NamedTuple):
    """Of the code of a function and of those inside of it."""

    of_globals: frozenset[str]
    of_attributes: frozenset[str]
    of_modules: frozenset[tuple[str, int]]  # imported inside: (name, level)
    are_computed: bool  # it reads attributes whose names are made while it runs
    of_parts: frozenset[tuple[str, str]]  # attributes of globals, as ("os", "stat")
    computed_of: frozenset[str]  # globals whose attributes have such names, as getattr(tenon, name)


def refusal(version: tuple[int, ...] = (), name: str = "") -> str:
    """Why the code of functions cannot be read, or "". Without a version: in this Python."""
    version = version or tuple(sys.version_info[:2])
    name = name or sys.implementation.name
    if name == "cpython" and _FIRST <= version[:2] <= _LAST:
        return ""
    known = " to ".join(".".join(map(str, each)) for each in (_FIRST, _LAST))
    return (
        f"the code of functions cannot be read in {name} {version[0]}.{version[1]}; expected CPython "
        f"{known}, whose instructions are known"
    )


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> Names:
    of_globals, of_attributes = set[str](), set[str]()
    of_modules = set[tuple[str, int]]()
    are_computed, computed_of = False, set[str]()
    of_parts = set[tuple[str, str]]()
    instructions = list(dis.get_instructions(code))
    constants: list[object] = []  # that were loaded last, for imports
    for index, instruction in enumerate(instructions):
        name, value = instruction.opname, instruction.argval
        if name in _GLOBALS:
            of_globals.add(value)
            after = instructions[index + 1]
            if after.opname in _ATTRIBUTES:
                of_parts.add((value, after.argval))
            if value in _READERS and _computes(instructions, index):
                owner = instructions[index + 1]
                if owner.opname == "LOAD_GLOBAL" and not _is_attribute(instructions[index + 2]):
                    computed_of.add(owner.argval)
                else:
                    are_computed = True
        elif name in _ATTRIBUTES:
            of_attributes.add(value)
            are_computed = are_computed or value in ("__dict__", "__getattribute__")
            if value in ("format", "format_map"):
                are_computed = are_computed or _names_parts(instructions[index - 1].argval)
        elif name == "IMPORT_NAME":
            levels = [each for each in constants[-2:] if type(each) is int]
            of_modules.add((value, levels[0] if levels else 0))
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants.append(value)
            of_attributes.update(_texts(value))  # getattr(x, "scale")
        if isinstance(value, types.CodeType):
            inner = names_in(value)
            of_globals |= inner.of_globals
            of_attributes |= inner.of_attributes
            of_modules |= inner.of_modules
            are_computed = are_computed or inner.are_computed
            computed_of |= inner.computed_of
            of_parts |= inner.of_parts
    return Names(
        frozenset(of_globals),
        frozenset(of_attributes),
        frozenset(of_modules),
        are_computed,
        frozenset(of_parts),
        frozenset(computed_of),
    )


def _names_parts(template: object) -> bool:
    """Whether a format string asks for attributes or items, as "{0.scale}"; or may."""
    return not isinstance(template, str) or bool(re.search(r"\{[^{}:!]*[.\[]", template))


def _is_attribute(instruction: dis.Instruction) -> bool:
    """Whether something of the value before is taken, in the place of the value."""
    return instruction.opname in (*_ATTRIBUTES, "BINARY_SUBSCR") or instruction.opname.startswith(
        ("CALL", "PRECALL")
    )


def _texts(constant: object) -> list[str]:
    if isinstance(constant, str):
        return [constant] if constant.isidentifier() else []
    if isinstance(constant, (tuple, frozenset)):
        return [text for item in constant for text in _texts(item)]
    return []


def _computes(instructions: list[dis.Instruction], index: int) -> bool:
    """Whether the call of `getattr` that begins here has no constant as its name."""
    has_name = False
    for instruction in instructions[index + 1 :]:
        if instruction.opname in _MAKERS:
            return True
        if instruction.opname.startswith(("CALL", "PRECALL")):
            return not has_name
        has_name = has_name or bool(
            instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, str)
        )
    return True
