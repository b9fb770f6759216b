# SPDX-License-Identifier: Apache-2.0
"""Files of tensors: save and load, and the formats that they write and read.

`safetensors` is the module of that format (also `tenon.safetensors`). Files of PyTorch and Paddle are read without running what they hold.
"""

from tenon.io import safetensors
from tenon.io.serialization import load, save

__all__ = ["load", "safetensors", "save"]
