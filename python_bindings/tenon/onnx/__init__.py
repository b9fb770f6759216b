# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX as programs.

    model = tenon.onnx.load("resnet50.onnx")
    scores = model(image)
    tenon.onnx.export(model, "out.onnx")

Reads opsets 1 to 28 of ai.onnx, 1 to 5 of ai.onnx.ml, IR versions 3 to 14, and writes opsets 18 to 23. The package `onnx` is not needed. docs/onnx.md lists the operators.
"""

from tenon.onnx._bisect import Divergence, bisect
from tenon.onnx._differences import Difference
from tenon.onnx._load import describe, load
from tenon.onnx._model_file import operators
from tenon.onnx._runner import Runner
from tenon.onnx._shapes import ShapeDifference, ShapeReport, check_shapes
from tenon.onnx._table import table
from tenon.onnx._verify import Verification, read_tensor, verify
from tenon.onnx.exporter import export

__all__ = [
    "Difference",
    "Divergence",
    "Runner",
    "ShapeDifference",
    "ShapeReport",
    "Verification",
    "bisect",
    "check_shapes",
    "describe",
    "export",
    "load",
    "operators",
    "read_tensor",
    "table",
    "verify",
]
