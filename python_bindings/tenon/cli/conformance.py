# SPDX-License-Identifier: Apache-2.0
"""The command tenon-conformance: the program of that name in this package."""

import os
import sys
from pathlib import Path


def program() -> Path:
    return Path(__file__).parent.parent / "bin" / "tenon-conformance"


def main() -> None:
    path = program()
    if not path.exists():
        sys.exit(f"tenon-conformance: expected the program {path}; install Tenon again")
    os.execv(path, [str(path), *sys.argv[1:]])
