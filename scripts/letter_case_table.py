#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes plugins/cpu/kernels/text/letter_case_table.hpp: what letters become in small and in capital letters, from the
Unicode data of the running Python.

    python scripts/letter_case_table.py > plugins/cpu/kernels/text/letter_case_table.hpp
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable

CODES = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def simple_lower(code: int) -> int:
    """The one letter of UnicodeData.txt; U+0130 alone becomes two in full."""
    becomes = chr(code).lower()
    return ord(becomes[0])


def simple_upper(code: int) -> int:
    """Letters that become several in full become their title letter, if that is one, or stay."""
    for becomes in (chr(code).upper(), chr(code).title()):
        if len(becomes) == 1:
            return ord(becomes)
    return code


def ranges_of_changes(change: Callable[[int], int]) -> list[tuple[int, int, int, int]]:
    """(first, last, step, what is added): letters of one distance, all or every second one."""
    changed = [(code, change(code) - code) for code in CODES if change(code) != code]
    ranges: list[tuple[int, int, int, int]] = []
    for code, added in changed:
        if ranges:
            first, last, step, before = ranges[-1]
            gap = code - last
            if added == before and gap in ((1, 2) if first == last else (step,)):
                ranges[-1] = (first, code, gap, added)
                continue
        ranges.append((code, code, 1, added))
    return ranges


def ranges_of(codes: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def is_final(text: str) -> bool:
    return (text + "\u03a3").lower()[-1] == "\u03c2"


def rows(entries: Iterable[str]) -> str:
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > 98:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return "\n".join([*lines, line])


def main() -> None:
    # Python tells of these two properties by the final sigma alone, which is what they are for.
    cased = [code for code in CODES if is_final(chr(code))]
    ignorable = sorted({code for code in CODES if is_final("A" + chr(code))} - set(cased))
    several = [code for code in CODES if len(chr(code).upper()) > 1]
    print(f"""// SPDX-License-Identifier: Apache-2.0
// Written by scripts/letter_case_table.py, from Unicode {unicodedata.unidata_version}.
// clang-format off
#pragma once

#include <cstdint>

namespace tenon::cpu {{

struct CodeRange {{
  uint32_t first, last;
}};
// Every `step`-th character from `first` to `last` changes by as much.
struct CaseRange {{
  uint32_t first, last, step;
  int32_t change;
}};
// A character that becomes two or three; 0 is none.
struct SeveralCodes {{
  uint32_t code, becomes[3];
}};
""")
    for name, change in ("kLower", simple_lower), ("kUpper", simple_upper):
        entries = (
            f"{{{first:#x}, {last:#x}, {step}, {added}}}"
            for first, last, step, added in ranges_of_changes(change)
        )
        print(f"inline constexpr CaseRange {name}[] = {{\n{rows(entries)}\n}};\n")
    for name, codes in ("kCased", cased), ("kCaseIgnorable", ignorable):
        entries = (f"{{{first:#x}, {last:#x}}}" for first, last in ranges_of(codes))
        print(f"inline constexpr CodeRange {name}[] = {{\n{rows(entries)}\n}};\n")
    entries = (
        f"{{{code:#x}, {{{', '.join(f'{ord(each):#x}' for each in chr(code).upper())}}}}}"
        for code in several
    )
    print(f"inline constexpr SeveralCodes kUpperOfSeveral[] = {{\n{rows(entries)}\n}};\n")
    print("}  // namespace tenon::cpu")


if __name__ == "__main__":
    main()
