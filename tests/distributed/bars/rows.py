# SPDX-License-Identifier: Apache-2.0
"""Rows of a bar: what was measured, and what it has to be."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Rows:
    def __init__(self) -> None:
        self.missed: list[str] = []

    def add(self, what: str, value: str, bar: str = "", is_met: bool = True) -> None:
        verdict = "" if not bar else "ok" if is_met else "MISSED"
        print(f"{what:52} {value:>34}  {bar:28} {verdict}", flush=True)
        if not is_met:
            self.missed.append(what)

    def end(self) -> None:
        """Of the program."""
        if self.missed:
            print(f"{len(self.missed)} missed: {', '.join(self.missed)}")
        sys.exit(bool(self.missed))
