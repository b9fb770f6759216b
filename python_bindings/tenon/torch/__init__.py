# SPDX-License-Identifier: Apache-2.0
"""PyTorch models as programs.

    program = tenon.torch.load(torch.export.export(model, (x,)))
    y = program(tenon.from_dlpack(x))

PyTorch is imported by what needs it, and never by `import tenon`. docs/torch.md says what works and what is refused.
"""

from __future__ import annotations

from tenon.torch import device
from tenon.torch._backend import backend
from tenon.torch._load import load
from tenon.torch._report import Report, report

__all__ = ["Report", "backend", "device", "load", "report"]
