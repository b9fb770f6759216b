# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of the contract's types with abidiff: tables may grow at their end, nothing else changes.

growth.py <abidiff> <abi.h> <old library> <new library> [struct that grew before it was frozen ...]
"""

import re
import subprocess
import sys

# Plugins fill arrays of these, and the reader steps through them: their size is their stride.
FROZEN = {"tenon_device_info"}


def sized_structs(header: str) -> set[str]:
    """Structs that begin with the size that their writer knows."""
    return set(re.findall(r"struct (\w+) \{\s+uint32_t struct_size;", header)) - FROZEN


def forbidden(report: str, may_grow: set[str]) -> list[str]:
    """The lines of a leaf-changes report that are more than growth at the end. What is not understood counts."""
    wrong = []
    table, end = None, None
    for line in report.splitlines():
        if re.match(r"(Leaf changes|Changed leaf types|Removed/Changed/Added \w+) summary: ", line):
            if re.match(r"Removed/Changed/Added", line) and not re.search(
                r": 0 Removed, 0 Changed.*, 0 Added", line
            ):
                wrong.append(line)
        elif match := re.match(r"'struct (\w+)' changed:", line):
            table, end = match[1], None
            if table not in may_grow:
                wrong.append(line)
        elif match := re.match(r"  type size changed from (\d+) to (\d+) \(in bits\)", line):
            end = int(match[1])
            if int(match[2]) < end:
                wrong.append(line)
        elif match := re.match(r"    '.*', at offset (\d+) \(in bits\)", line):
            if end is None or int(match[1]) < end:
                wrong.append(f"{table}: {line.strip()}")
        elif line.strip() and not re.match(r"  \d+ data member insertions?:", line):
            wrong.append(f"{table}: {line.strip()}" if table else line)
    return wrong


def main() -> int:
    abidiff, header, old, new, *grew = sys.argv[1:]
    command = [abidiff, "--leaf-changes-only", "--no-show-locs", old, new]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode & 3:  # 1: error, 2: usage; 4 and 8 are changes
        sys.exit(f"{' '.join(command)} failed: {result.stderr}")
    with open(header, encoding="utf-8") as file:
        may_grow = sized_structs(file.read()) | set(grew)
    if not may_grow or "tenon_host" not in may_grow:
        sys.exit("no table with struct_size found in tenon/abi.h: adapt growth.py")
    wrong = forbidden(result.stdout, may_grow)
    if wrong:
        print("\n".join(wrong))
        print(
            "\nThis breaks every plugin that is already built. Undo it: append to a table that has struct_size,\n"
            "or raise TENON_ABI_EPOCH."
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
