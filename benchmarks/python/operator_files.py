# SPDX-License-Identifier: Apache-2.0
"""SwiGLU from an operator file beside the same chain of NumPy, PyTorch and Tenon calls.

    python operator_files.py [--rounds 15]

Each beside NumPy, which has one thread; Tenon and PyTorch use two.
"""

from __future__ import annotations

import numpy as np
import tenon
from _protocol import interleave
from _report import Report, parser
from custom_operators import FOLDER, torch

PEER = "numpy"
SIZES = [1, 4096, 1 << 20]


def calls(size: int) -> dict:
    x, g = (np.random.default_rng(i).standard_normal(size, dtype=np.float32) for i in range(2))
    tx, tg = tenon.from_numpy(x), tenon.from_numpy(g)
    swiglu = tenon.ops.load(FOLDER / "tenon_expression.yaml").swiglu_expression
    np.testing.assert_allclose(swiglu(tx, tg).numpy(), x / (1 + np.exp(-x)) * g, 1e-5, 1e-6)
    result = {
        PEER: lambda: x / (1 + np.exp(-x)) * g,
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
    options = parser(__doc__, rounds=15, threads=2).parse_args()
    tenon.set_num_threads(options.threads)
    if torch:
        torch.set_num_threads(options.threads)
    report = Report("operator_files", options, ["way", PEER])
    for size in SIZES:
        times = interleave(calls(size), options.rounds)
        for name in list(times.rounds)[1:]:
            pair = times.between(name, PEER)
            report.add(name, pair, f"{size:,} elements", elements=size, threads=options.threads)
    report.close()


if __name__ == "__main__":
    main()
