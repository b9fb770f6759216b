# SPDX-License-Identifier: Apache-2.0
"""What it costs that a tensor goes from PyTorch to Tenon and back, without a copy of its memory.

    python crossing.py [--rounds 21] [--json results.json]

Both ways are DLPack. Tenon's go by PyTorch's table of C functions, as torch.compile's programs take their inputs and give their
results; beside them stand NumPy and PyTorch, which read a capsule. The memory is the same before and after, which is checked.
"""

from __future__ import annotations

import numpy
import tenon
import torch
from _protocol import interleave
from _report import Report, parser
from tenon import _core


def main() -> None:
    options = parser(__doc__).parse_args()
    report = Report("crossing", options, ["tenon", "numpy", "torch"])
    rounds = min(options.rounds, 7) if options.quick else options.rounds
    theirs = torch.randn(4, 4)
    ours = tenon.from_dlpack(theirs)
    array = theirs.numpy()
    assert _core.dlpack_exchange(ours, torch.Tensor).data_ptr() == theirs.data_ptr()
    assert torch.from_dlpack(ours).data_ptr() == theirs.data_ptr()
    ways = {
        "in: a tensor of PyTorch": {
            "tenon": lambda: tenon.from_dlpack(theirs),
            "numpy": lambda: numpy.from_dlpack(theirs),
        },
        "out: a result of torch.compile": {
            "tenon": lambda: _core.dlpack_exchange(ours, torch.Tensor),
            "torch": lambda: torch.from_dlpack(array),
        },
        "out: torch.from_dlpack": {
            "tenon": lambda: torch.from_dlpack(ours),
            "torch": lambda: torch.from_dlpack(array),
        },
    }
    for name, calls in ways.items():
        report.add(name, interleave(calls, rounds))
    report.close()


if __name__ == "__main__":
    main()
