# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX as programs.

    model = tenon.onnx.load("resnet50.onnx")
    scores = model(image)

Opsets 1 to 28 of ai.onnx, IR versions 3 to 14. The package `onnx` is not needed. docs/onnx.md lists the operators.
"""

from tenon.onnx._load import describe, load
from tenon.onnx._table import table

__all__ = ["describe", "load", "table"]
