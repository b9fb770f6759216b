# SPDX-License-Identifier: Apache-2.0
"""Networks with weights and activations of few bits (docs/quantization.md).

`quantize_weights` and `gptq` store weights in blocks; `observe`, `prepare_training` and `convert` make layers of 8 bits;
`smooth` and `awq` prepare a network for either; `report` measures what was lost. All return changed copies.
"""

from . import fake
from .gptq import gptq
from .layers import BlockEmbedding, BlockLinear, Int8Conv, Int8Linear
from .observers import MeanSquaredError, MinMax, MovingAverage, Observer, Percentile, Steps
from .report import LayerReport, Report, report
from .smoothing import awq, smooth
from .static import FakeQuantized, Int8, Observed, convert, observe, prepare_training
from .weight_only import quantize_weights

__all__ = [
    "BlockEmbedding",
    "BlockLinear",
    "FakeQuantized",
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
    "Report",
    "Steps",
    "awq",
    "convert",
    "fake",
    "gptq",
    "observe",
    "prepare_training",
    "quantize_weights",
    "report",
    "smooth",
]
