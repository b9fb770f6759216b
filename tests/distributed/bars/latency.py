# SPDX-License-Identifier: Apache-2.0
"""all_reduce of 64 bytes and of 4 KB among processes of this machine, beside PyTorch over Gloo: in turns, and
half of its time is the bar."""

from __future__ import annotations

import distributed  # benchmarks/python
from rows import HAS_TORCH, Rows


def main() -> None:
    rows = Rows()
    libraries = ["tenon", *(["torch"] if HAS_TORCH else [])]
    for size in (2, 4):
        for length in ("64 bytes", "4 KB"):
            found = distributed.measure(libraries, size, 3, f"all_reduce of {length}")
            for title, row in found.items():
                text = " ".join(f"{name} {row[name]:.1f}" for name in libraries)
                bar = f"ratio {row['ratio']:.2f}, 0.5" if HAS_TORCH else ""
                rows.add(title, text, bar, not HAS_TORCH or row["ratio"] <= 0.5)
    if not HAS_TORCH:
        print("PyTorch is not there: set PYTHON to an interpreter that has it")
    rows.end()


if __name__ == "__main__":
    main()
