# SPDX-License-Identifier: Apache-2.0
"""What in a library will cause faults in the process that loads it. Read as data; nothing is run.

None of it is a reason to refuse the plugin: it loads, and then cannot be unloaded, or binds to its
neighbours' symbols, or is found only on the machine that built it.
"""

import re
import struct

_SHT_DYNAMIC, _SHT_DYNSYM = 6, 11
DT_NEEDED, DT_RPATH, _DT_TEXTREL, DT_RUNPATH, _DT_FLAGS = 1, 15, 22, 29, 30
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF
_TEXTS = (DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_AUXILIARY, DT_FILTER)
_DF_TEXTREL = 4
_PT_GNU_STACK, _PF_X = 0x6474E551, 1
_STB_LOCAL, _STB_GNU_UNIQUE = 0, 10
_STV_DEFAULT, _STV_PROTECTED = 0, 3
_ENTRY_POINT = "tenon_plugin_query"
_SHOWN = 4


def lint(path):
    """Warnings about the library at `path`, as texts. Empty if there are none."""
    try:
        with open(path, "rb") as file:
            return Elf(file.read()).warnings()
    except OSError as error:
        return [f"it cannot be read: {error.strerror}"]
    except (struct.error, IndexError, ValueError, OverflowError, MemoryError):
        return ["its tables cannot be read: the file is damaged"]


class Elf:
    """The tables of a 64-bit ELF file. What is wrong with them raises struct.error, IndexError,
    ValueError, OverflowError or MemoryError."""

    def __init__(self, data):
        if data[:4] != b"\x7fELF" or data[4] != 2:
            raise ValueError("no 64-bit ELF file")
        self.data = data
        self.order = "<" if data[5] == 1 else ">"
        header = self.unpack("QQQIHHHHHH", 24)
        _, program_at, sections_at, _, _, program_size, programs, section_size, sections, _ = header
        if program_size != 56 or section_size != 64:
            raise ValueError("unknown table layout")
        self.programs = [self.unpack("IIQQQQQQ", program_at + 56 * i) for i in range(programs)]
        self.sections = [self.unpack("IIQQQQIIQQ", sections_at + 64 * i) for i in range(sections)]

    def unpack(self, layout, offset):
        return struct.unpack_from(self.order + layout, self.data, offset)

    def text(self, strings, offset):
        at = self.sections[strings][4] + offset
        return self.data[at : self.data.index(b"\0", at)].decode("utf-8", "replace")

    def entries(self, kind, layout):
        """Rows of the tables of that type, each with the section of its strings."""
        size = struct.calcsize(self.order + layout)
        for section in self.sections:
            if section[1] != kind:
                continue
            at, count = section[4], section[5] // size
            if at + count * size > len(self.data):
                raise ValueError("a table lies outside the file")
            for i in range(count):
                yield self.unpack(layout, at + i * size), section[6]

    def dynamic(self):
        """(tag, value, text) of every dynamic entry; a text where the tag has one."""
        for (tag, value), strings in self.entries(_SHT_DYNAMIC, "QQ"):
            if tag == 0:
                break
            yield tag, value, self.text(strings, value) if tag in _TEXTS else ""

    def warnings(self):
        return [*self.symbol_warnings(), *self.dynamic_warnings(), *self.stack_warnings()]

    def symbol_warnings(self):
        exported, unique = [], []
        for (name, info, other, section, _, _), strings in self.entries(_SHT_DYNSYM, "IBBHQQ"):
            is_shown = other & 3 in (_STV_DEFAULT, _STV_PROTECTED)
            if section == 0 or info >> 4 == _STB_LOCAL or not is_shown:
                continue
            text = self.text(strings, name)
            if info >> 4 == _STB_GNU_UNIQUE:
                unique.append(text)
            elif text != _ENTRY_POINT:
                exported.append(text)
        if exported:
            yield (
                f"it exports {_count(exported, 'symbol')} besides {_ENTRY_POINT}: {_some(exported)}; "
                "link it with tenon_add_plugin(), or a version script that makes all others local"
            )
        if unique:
            yield (
                f"it has {_count(unique, 'GNU_UNIQUE symbol')}: {_some(unique)}; the system will never "
                "unmap it: compile with -fno-gnu-unique and link with a version script"
            )

    def dynamic_warnings(self):
        has_textrel = False
        for tag, value, text in self.dynamic():
            has_textrel |= tag == _DT_TEXTREL or (tag == _DT_FLAGS and bool(value & _DF_TEXTREL))
            if tag == DT_NEEDED:
                library = text
                if library.startswith(("libtenon", "libpython")):
                    yield (
                        f"it is linked with {library}: it will load only where exactly that is found; "
                        "take what it needs from tenon_host, and leave the library out"
                    )
            if tag in (DT_RPATH, DT_RUNPATH):
                for folder in text.split(":") if text else ():
                    if not folder.startswith(("/", "$ORIGIN", "${ORIGIN}")):
                        yield (
                            f"it looks for libraries in the current folder of the program (RUNPATH "
                            f"{text!r} has the entry {folder!r}), where any user may have put one; use a "
                            "RUNPATH of $ORIGIN"
                        )
                    elif "$" in re.sub(r"^\$(ORIGIN|{ORIGIN})(?=/|$)", "", folder):
                        yield (
                            f"it looks for libraries in {folder}, with a variable other than a leading "
                            "$ORIGIN, which the host refuses as it cannot know what the system makes of "
                            "it; write the folder out"
                        )
                    elif folder.startswith("/"):
                        yield (
                            f"it looks for libraries in {folder}, a path of the machine that built it; "
                            "use a RUNPATH below $ORIGIN"
                        )
        if has_textrel:
            yield "its code is changed at load (TEXTREL), which hardened systems forbid; compile with -fPIC"

    def stack_warnings(self):
        stacks = [flags for kind, flags, *_ in self.programs if kind == _PT_GNU_STACK]
        if not stacks or stacks[0] & _PF_X:
            yield "it makes the stack executable; link with -Wl,-z,noexecstack"


def _count(items, what):
    return f"{len(items)} {what}" + ("s" if len(items) != 1 else "")


def _some(items):
    return ", ".join(sorted(items)[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")
