# SPDX-License-Identifier: Apache-2.0
"""`import torch` that means Tenon, for programs that stay as they are and need no PyTorch.

A process has one dialect: alias() gives tenon.Tensor the methods of PyTorch for good, and Tenon's own code calls operators
where a method could mean either.
"""

from __future__ import annotations

import sys
from types import ModuleType

from tenon import _core

from . import modules
from .constructors import construct
from .layers import adopt
from .methods import attributes
from .shapes import Size

__all__ = ["alias"]


def alias() -> ModuleType:
    """From here on `import torch` means Tenon in this process; gives the module.

    RuntimeError if PyTorch has been imported: its tensors would meet functions of Tenon. A second call does nothing.
    """
    if modules.is_installed():
        return sys.modules["torch"]
    for name in ("torch", "torchvision"):
        if name in sys.modules:
            version = getattr(sys.modules[name], "__version__", "of unknown version")
            raise RuntimeError(
                f"alias(): expected a process without PyTorch, got {name} {version}, which is imported already; call alias() "
                f"before, or run the program by `python -m tenon.torch`"
            )
    _core.load()  # type: ignore[attr-defined]  # operators are methods from here on
    _core._adopt_dialect(attributes(), construct, Size)
    adopt()
    return modules.install()
