# SPDX-License-Identifier: Apache-2.0
"""The pre-load note of a built plugin (`tenon_note` of tenon/abi.h)."""

import struct

from ._errors import CompileError

_HEAD = struct.Struct("<III8s")  # name_size, desc_size, type, owner
_BEHIND_HEAD = struct.Struct("<IIII32s32s432s")  # epochs, sanitizer, reserved, name, version, json
_NAME = struct.calcsize("<IIII")


def check(library):
    """Refuse a library that defines no operators. Returns where its note begins."""
    head = _HEAD.pack(6, _BEHIND_HEAD.size, 1, b"TENON\0\0\0")
    at = library.find(head)
    if at < 0:
        raise CompileError(
            "the sources define no operators: expected one TENON_OPERATORS(namespace, m) { ... } "
            "of <tenon/extension.hpp>"
        )
    return at


def renamed(library, name):
    """The library's bytes with another plugin name in its note."""
    at = check(library) + _HEAD.size + _NAME
    return library[:at] + name.encode().ljust(32, b"\0") + library[at + 32 :]
