# SPDX-License-Identifier: Apache-2.0
"""Builds one copy of the sources that has every mutant, each behind a switch.

The technique is that of mutant schemata: a mutant is chosen when the program runs, so that one build
serves them all.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from plan import GENERATED, Mutant

SECTION = ".tenon_mutants"
LIBRARY = "mutation/libtenon_mutants.so"
# C++ tests for what Python cannot call.
PROGRAMS = {"primitives_opcode_test": "tests/primitives/primitives_opcode_test"}
# The device level1 has primitives and no other kernels: tests/primitives asks their shape rules.
TARGETS = ("_core", "cpu", "standard_ops", "autograd", "level1", "level1_half", *PROGRAMS)
HEADER = """\
#pragma once
extern "C" {
extern int tenon_mutant;                      // the number of the mutant that runs, 0 for none
extern unsigned char tenon_mutant_reached[];  // which switches were asked
}
namespace tenon_mutation {
// The section lists the switches that the compiler kept: code may be for other instruction sets.
template <int kNumber>
[[gnu::always_inline]] inline bool is() {
  asm volatile(".pushsection .tenon_mutants\\n\\t.int %c0\\n\\t.popsection" : : "i"(kNumber));
  tenon_mutant_reached[kNumber] = 1;
  return tenon_mutant == kNumber;
}
}  // namespace tenon_mutation
"""
LIBRARY_SOURCE = """\
#include <stdlib.h>
int tenon_mutant;
unsigned char tenon_mutant_reached[4096];
__attribute__((constructor)) static void read_choice(void) {
  const char* choice = getenv("TENON_MUTANT");
  if (choice) tenon_mutant = atoi(choice);
}
"""
CMAKE = """
# -- added by tests/mutation ------------------------------------------------------------------------
add_library(tenon_mutants SHARED mutation/mutants.c)
set_target_properties(tenon_mutants PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/mutation")
foreach(target cpu standard_ops autograd)
  target_link_libraries(${target} PRIVATE tenon_mutants)
endforeach()
"""


def switched(text: str, mutant: Mutant) -> str:
    """The span's text as it is, and the mutant behind its switch."""
    chosen = f"::tenon_mutation::is<{mutant.number}>()"
    span, change = mutant.span, mutant.change
    original = text[span.start : span.end]
    if change.what == "drop":
        return f"{{ if (!{chosen}) {{ {original} }} }}"
    if change.what == "never":
        return f"(!{chosen} && ({original}))"
    if span.kind == "statement":
        return f"{{ if ({chosen}) {{ {mutant.after} }} else {{ {original} }} }}"
    if span.kind == "return":
        return f"{{ if ({chosen}) {{ {mutant.after} }} {original} }}"
    return f"({chosen} ? ({mutant.after}) : ({original}))"


def instrument(text: str, mutants: list[Mutant], header: Path) -> str:
    """A file with its mutants; lines keep their numbers."""
    for mutant in sorted(mutants, key=lambda each: -each.span.start):
        span = mutant.span
        text = text[: span.start] + switched(text, mutant) + text[span.end :]
    return f'#include "{header}"\n#line 1\n{text}' if mutants else text


class Copy:
    """The copy and its build tree, which lies in it as a checkout's does: the compiler's cache then
    knows whatever has no mutant."""

    def __init__(self, checkout: Path, root: Path):
        self.checkout, self.root = checkout, root
        self.tree = root / "build/release"
        self.pristine = root / "pristine"  # generated files without mutants

    def refresh(self):
        """Brings the sources; files that did not change keep their time."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached"],
            cwd=self.checkout,
            capture_output=True,
            check=True,
        )
        names = [n for n in listed.stdout.decode().split("\0") if n]
        for name in names:
            source = self.checkout / name
            if source.is_file():
                copied = self.root / name
                copied.parent.mkdir(parents=True, exist_ok=True)
                write_if_changed(copied, source.read_bytes(), source)
        folder = self.root / "mutation"
        folder.mkdir(exist_ok=True)
        write_if_changed(folder / "mutation.hpp", HEADER.encode())
        write_if_changed(folder / "mutants.c", LIBRARY_SOURCE.encode())
        lists = (self.checkout / "CMakeLists.txt").read_bytes() + CMAKE.encode()
        write_if_changed(self.root / "CMakeLists.txt", lists)

    def configure(self, isa: str, python: str):
        command = ["cmake", "--preset", "release", f"-DPython_EXECUTABLE={python}",
                   f"-DTENON_CPU_ISAS={isa}"]  # fmt: skip
        subprocess.run(command, cwd=self.root, check=True, stdout=subprocess.DEVNULL)

    def generate(self, jobs: int):
        """Generated files are the generator's before mutants go in."""
        stamp = self.pristine / "stamp"
        if self.pristine.exists():
            for path in sorted(self.pristine.rglob("*.cpp")):
                write_if_changed(
                    self.tree / "gen" / path.relative_to(self.pristine), path.read_bytes()
                )
        self.ninja(["tenon_generated"], jobs, check=True)
        shutil.rmtree(self.pristine, ignore_errors=True)
        shutil.copytree(self.tree / "gen", self.pristine)
        stamp.touch()

    def source_of(self, file: str) -> Path:
        """The unchanged text of a file that mutants go into."""
        if file.startswith(GENERATED):
            return self.pristine / Path(file).relative_to(GENERATED)
        return self.checkout / file

    def write(self, mutants: list[Mutant]):
        by_file: dict = {}
        for mutant in mutants:
            by_file.setdefault(mutant.file, []).append(mutant)
        header = self.root / "mutation/mutation.hpp"
        for file, some in by_file.items():
            text = instrument(self.source_of(file).read_text(), some, header)
            write_if_changed(self.root / file, text.encode())
        # -O1 compiles in a third of the time, and tests run long enough on what it gives.
        kernels = [str(self.root / f) for f in by_file if "/cpu/" in f and f.endswith(".cpp")]
        lists = (self.checkout / "plugins/cpu/CMakeLists.txt").read_text()
        lists += "\nset_source_files_properties(\n  " + "\n  ".join(sorted(kernels))
        lists += "\n  PROPERTIES COMPILE_OPTIONS -O1)\n"
        write_if_changed(self.root / "plugins/cpu/CMakeLists.txt", lists.encode())

    def ninja(self, targets, jobs: int, check=False):
        command = ["ninja", "-C", str(self.tree), "-k", "0", "-j", str(jobs), *targets]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "CCACHE_DEPEND": "1"})  # fmt: skip
        if check and done.returncode:
            sys.exit(done.stdout[-4000:] + done.stderr[-2000:])
        return done

    def build(self, mutants: list[Mutant], jobs: int) -> dict:
        """Builds, dropping what does not compile. Returns why each dropped mutant was."""
        dropped: dict = {}
        for attempt in range(8):
            kept = [each for each in mutants if each.number not in dropped]
            self.write(kept)
            done = self.ninja(TARGETS, jobs)
            (self.root / f"build/attempt{attempt}.log").write_text(done.stdout + done.stderr)
            if done.returncode == 0:
                for each in kept:
                    if each.number not in self.built():
                        dropped[each.number] = "not part of this build"
                return dropped
            failed = self.blamed(kept, done.stdout + done.stderr)
            print(f"mutation: {len(failed)} mutants do not compile", flush=True)
            if not failed:
                sys.exit(done.stdout[-6000:])
            dropped.update({number: "does not compile" for number in failed})
        sys.exit("mutation: expected a build after 8 attempts; see build/attempt*.log of the copy")

    def blamed(self, mutants: list[Mutant], log: str) -> set:
        """The mutants on lines that the compiler's errors name, or else of files that they name."""
        lines, context = set(), []
        for line in log.splitlines():
            place = re.match(r"(\S+?):(\d+):\d+: (?:fatal )?(error:|  required from)", line)
            inlined = re.search(r" at (\S+?):(\d+):\d+[,:]?$", line)
            if place and place.group(3) == "error:":
                # An error in a header of the system is blamed on what called it.
                lines |= set(self.of_copy([place.groups()[:2]]) or self.of_copy(context))
                context = []
            elif found_at := place or inlined:
                context.append(found_at.groups()[:2])
            elif line.startswith(("In function", "In member", "In static", "[")):
                context = []
        found, unexplained = set(), set()
        for file, line in lines:
            here = [m for m in mutants if m.file == file and self.covers(m, line)]
            found |= {m.number for m in here}
            if not here:
                unexplained.add(file)
        return found or {m.number for m in mutants if m.file in unexplained}

    def of_copy(self, lines) -> list:
        """Those of the files and lines that belong to the copy, as its own names."""
        found = [((self.tree / name).resolve(), int(line)) for name, line in lines]
        return [(str(p.relative_to(self.root)), n) for p, n in found if p.is_relative_to(self.root)]

    def covers(self, mutant: Mutant, line: int) -> bool:
        text = self.source_of(mutant.file).read_text()
        first = text.count("\n", 0, mutant.span.start) + 1
        last = text.count("\n", 0, mutant.span.end) + 1
        return first <= line <= last

    def built(self) -> set:
        """The switches that the libraries have."""
        if not hasattr(self, "_built"):
            self._built = set()
            for path in (self.tree / "python/tenon/plugins").rglob("*.so"):
                self._built |= numbers_in(path.read_bytes())
        return self._built

    @property
    def library(self) -> Path:
        return self.tree / LIBRARY


def numbers_in(elf: bytes) -> set:
    """The numbers in the section of an ELF file that lists its switches."""
    if elf[:5] != b"\x7fELF\x02":
        return set()
    table = struct.unpack_from("<Q", elf, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    strings = headers[names][4]
    found = set()
    for name, _, _, _, offset, length in headers:
        end = elf.index(b"\0", strings + name)
        if elf[strings + name : end] == SECTION.encode():
            found |= set(struct.unpack_from(f"<{length // 4}i", elf, offset))
    return found


def write_if_changed(path: Path, content: bytes, like: Path | None = None):
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if like is not None:
        path.chmod(like.stat().st_mode)
