# SPDX-License-Identifier: Apache-2.0
"""SwiGLU from an operator file beside the same chain of NumPy, PyTorch and Tenon calls.

    python operator_files.py [--rounds 15]

Medians of microseconds for a call, and ratios to NumPy in the same round. Tenon and PyTorch use two
threads; NumPy has one.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import tenon
from custom_operators import FOLDER, measure, torch

THREADS = 2
SIZES = [1, 4096, 1 << 20]


def calls(size: int) -> dict:
    x, g = (np.random.default_rng(i).standard_normal(size, dtype=np.float32) for i in range(2))
    tx, tg = tenon.from_numpy(x), tenon.from_numpy(g)
    swiglu = tenon.ops.load(FOLDER / "tenon_expression.yaml").swiglu_expression
    np.testing.assert_allclose(swiglu(tx, tg).numpy(), x / (1 + np.exp(-x)) * g, 1e-5, 1e-6)
    result = {
        "numpy": lambda: x / (1 + np.exp(-x)) * g,
        "tenon operator file": lambda: swiglu(tx, tg),
        "tenon, the same chain": lambda: tx * tenon.sigmoid(tx) * tg,
        "tenon, silu(x) * g": lambda: tenon.silu(tx) * tg,
    }
    if torch:
        px, pg = torch.from_numpy(x), torch.from_numpy(g)
        result["torch, the same chain"] = lambda: px * torch.sigmoid(px) * pg
        result["torch, silu(x) * g"] = lambda: torch.nn.functional.silu(px) * pg
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    tenon.set_num_threads(THREADS)
    if torch:
        torch.set_num_threads(THREADS)
    for size in SIZES:
        times = measure(calls(size), options.rounds)
        print(f"{size} elements: us, and ratio to NumPy (medians)")
        for name, rounds in times.items():
            ratio = statistics.median(a / b for a, b in zip(rounds, times["numpy"]))
            print(f"  {name:<24}{statistics.median(rounds):>12.2f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
