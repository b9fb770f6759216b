#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where code or comments use a word that CONTRIBUTING.md's glossary replaces.

Usage: scripts/words.py [file ...]   without files: every tracked file below FOLDERS
"""

import re
import subprocess
import sys

FOLDERS = (
    "benchmarks",
    "cmake",
    "codegen",
    "conformance",
    "examples",
    "kernel_core",
    "plugins",
    "python_bindings",
    "scripts",
    "tests",
)
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".py", ".cmake", ".txt", ".sh")
# Files that have to name the words.
EXEMPT = ("scripts/words.py", "tests/abi/kept/", "plugins/fft/pocketfft/")

# (regular expression, what to write instead). Only words that have no other use in this code:
# "share", "region" and "window" also occur in their usual meaning and are left to review.
WORDS = [
    (r"\b(kMost|kFewest)\b", "kMax or kMin"),
    (r"\bbring_in\b", "load"),
    (r"\b(take_back|taken_back)\b", "roll back"),
    (r"\b(inside|run)_region\b", "parallel_for"),
    (r"\b(places|Places)\b", "indices"),
    (r"\blook(s|ed)? away\b|\blook_away\b", "what the program does"),
    (r"\b[Ww]hoever\b", "the thread, the caller or the user that does it"),
    (r"\b[Nn]obody\b|\b[Ss]omebody\b|\b[Aa]nybody\b|\b[Ee]verybody\b", "the subject"),
    (r"\basked for\b", "requested"),
    (r"\brest1\b", "one_minus_beta1"),
]
PATTERNS = [(re.compile(pattern), instead) for pattern, instead in WORDS]


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files", "--", *FOLDERS], check=True, capture_output=True, text=True
    )
    return listed.stdout.split()


def faults_of(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            for pattern, instead in PATTERNS:
                if found := pattern.search(line):
                    yield f"{path}:{number}: '{found[0]}': write {instead}"


def is_checked(path):
    return path.startswith(FOLDERS) and path.endswith(SUFFIXES) and not path.startswith(EXEMPT)


def main(paths):
    faults = [
        fault for path in filter(is_checked, paths or tracked_files()) for fault in faults_of(path)
    ]
    for fault in faults:
        print(fault)
    if faults:
        print(f"words: {len(faults)} found; the glossary in CONTRIBUTING.md says why")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
