# SPDX-License-Identifier: Apache-2.0
"""Networks with weights and activations of few bits (docs/quantization.md).

`quantize_weights` and `gptq` store weights in blocks, `quantize_float8` in float8; `observe`, `prepare_training` and
`convert` make layers of 8 bits; `smooth` and `awq` prepare a network for either; `report` measures what was lost. All
return changed copies.
"""

from . import fake
from .float8 import quantize_float8
from .gptq import gptq
from .layers import BlockEmbedding, BlockLinear, Float8Linear, Int8Conv, Int8Linear
from .observers import MeanSquaredError, MinMax, MovingAverage, Observer, Percentile, Steps
from .program_layers import ProgramLayers
from .report import LayerReport, Report, report
from .search import Found, search
from .smoothing import awq, smooth
from .static import FakeQuantized, Int8, Observed, convert, observe, prepare_training
from .weight_only import quantize_weights

__all__ = [
    "BlockEmbedding",
    "BlockLinear",
    "FakeQuantized",
    "Float8Linear",
    "Found",
    "Int8",
    "Int8Conv",
    "Int8Linear",
    "LayerReport",
    "MeanSquaredError",
    "MinMax",
    "MovingAverage",
    "Observed",
    "Observer",
    "Percentile",
    "ProgramLayers",
    "Report",
    "Steps",
    "awq",
    "convert",
    "fake",
    "gptq",
    "observe",
    "prepare_training",
    "quantize_float8",
    "quantize_weights",
    "report",
    "search",
    "smooth",
]
