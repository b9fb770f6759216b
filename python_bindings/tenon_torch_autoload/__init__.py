# SPDX-License-Identifier: Apache-2.0
"""What PyTorch calls when it is imported (entry point `torch.backends`), where Tenon is installed beside it.

A package of its own, because importing anything of `tenon` loads its libraries: a process that uses
PyTorch alone neither waits for them nor fails with them.
"""

import os


def autoload() -> None:
    """Registers the kind of device that TENON_TORCH_DEVICE names, if it names one."""
    kind = os.environ.get("TENON_TORCH_DEVICE")
    if kind:
        import tenon.torch.device

        tenon.torch.device.register(kind)
