# SPDX-License-Identifier: Apache-2.0
"""Files of tensors: save and load, and the formats that they write and read.

A file holds nothing that can run. A dict of tensors becomes a plain safetensors file that every other reader understands;
anything nested (an optimizer's state dict) is flattened, and its structure goes, as JSON, into the metadata. Files of PyTorch
and Paddle are read, too, without running what they hold. `safetensors` is the module of that format (also `tenon.safetensors`).
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from tenon.io import safetensors

if TYPE_CHECKING:
    from tenon.io.serialization import load as load
    from tenon.io.serialization import save as save

__all__ = ["load", "safetensors", "save"]


# What reads the files of others needs much of the standard library, and programs that only map weights do without.
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tenon.io' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module("tenon.io.serialization"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
