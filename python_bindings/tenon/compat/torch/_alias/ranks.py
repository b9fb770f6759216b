# SPDX-License-Identifier: Apache-2.0
"""torch.distributed, which says that it is not available, and torch.nn.parallel of one process."""

from __future__ import annotations

from typing import Any

from tenon import nn

from .absent import absent_class, absent_function

_INSTEAD = "tenon.distributed trains on several ranks"


def is_available() -> bool:
    """PyTorch's packages ask this before anything else of torch.distributed."""
    return False


def is_initialized() -> bool:
    return False


is_torchelastic_launched = is_initialized
_FUNCTIONS = """all_gather all_gather_object all_reduce all_to_all barrier broadcast broadcast_object_list
destroy_process_group gather get_backend get_rank get_world_size init_process_group irecv isend new_group recv reduce
reduce_scatter scatter send""".split()
_CLASSES = "ProcessGroup ReduceOp Store Work".split()
__all__ = ["is_available", "is_initialized", "is_torchelastic_launched", *_CLASSES, *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return absent_class(f"torch.distributed.{name}")
    if name in _FUNCTIONS:
        return absent_function(f"torch.distributed.{name}", _INSTEAD)
    raise AttributeError(name)


class _DataParallel(nn.Module):
    """A module on all GPUs: without one it is the module, as in PyTorch."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


class OfModules:
    """torch.nn.parallel."""

    DataParallel = _DataParallel
    DistributedDataParallel = absent_class("torch.nn.parallel.DistributedDataParallel")
