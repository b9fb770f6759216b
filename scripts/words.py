#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where code or comments use a word that CONTRIBUTING.md's glossary replaces.

Usage: scripts/words.py [file ...]   without files: every tracked file
"""

import re
import subprocess
import sys

CODE = (".cpp", ".hpp", ".c", ".h", ".cu", ".inc", ".py", ".pyi", ".cmake", ".sh")
PROSE = (".md", ".txt", ".yaml")
# Files that have to name the words, binaries' sources that are kept as they were, and pages that are
# never rewritten.
EXEMPT = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/decisions/",
    "python_bindings/tenon/compat/paddle/io.py",
    "scripts/words.py",
    "tests/abi/kept/",
    "tests/docs/test_words.py",
    "tests/python/jit/kept/",
)

# (regular expression, what to write instead). Only words that have no other use in this code:
# "share", "region" and "window" also occur in their usual meaning and are left to review.
WORDS = [
    (r"\bkMost\w*", "kMax..."),
    (r"\bk(Fewest|Least)\w*", "kMin..."),
    (r"\bbring_in\b", "load"),
    (r"\b(take_back|taken_back)\b", "roll back"),
    (r"\b(inside|run)_region\b", "parallel_for"),
    (r"\blook(s|ed)? away\b|\blook_away\b", "what the program does"),
    (r"\b[Ww]hoever\b", "the thread, the caller or the user that does it"),
    (r"\b[Nn]obody\b|\b[Ss]omebody\b|\b[Aa]nybody\b|\b[Ee]verybody\b", "the subject"),
    (r"\basked for\b", "requested"),
    (r"\brest1\b", "one_minus_beta1"),
]
# In sentences these have their usual meaning, in code they were ours.
CODE_WORDS = [(r"\b(places|Places)\b", "indices")]


def compiled(words):
    return [(re.compile(pattern), instead) for pattern, instead in words]


PATTERNS = {PROSE: compiled(WORDS), CODE: compiled(WORDS + CODE_WORDS)}


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True)
    return listed.stdout.split()


def faults_of(path):
    patterns = PATTERNS[CODE if path.endswith(CODE) else PROSE]
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            for pattern, instead in patterns:
                if found := pattern.search(line):
                    yield f"{path}:{number}: '{found[0]}': write {instead}"


def is_checked(path):
    return path.endswith(CODE + PROSE) and not path.startswith(EXEMPT)


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
