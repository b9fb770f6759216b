#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the part of CHANGELOG.md that belongs to a version: scripts/release_notes.py [VERSION]

Without an argument the version is that of the file VERSION.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def current_version() -> str:
    return (ROOT / "VERSION").read_text(encoding="utf-8").strip()


def notes(changelog: str, version: str) -> str:
    """The text below the heading of a version, up to the next heading."""
    found = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    if not found:
        raise SystemExit(
            f"release_notes.py: expected a heading '## [{version}] - DATE' in CHANGELOG.md, "
            "found none; move the lines under 'Unreleased' below such a heading"
        )
    return found[1].strip()


if __name__ == "__main__":
    version = sys.argv[1] if len(sys.argv) > 1 else current_version()
    if version != current_version():
        raise SystemExit(
            f"release_notes.py: expected the version {current_version()} that the file VERSION has, "
            f"got {version}; change VERSION, or name the tag after it"
        )
    print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
