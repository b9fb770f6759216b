# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed and torch.nn.parallel have beside tenon.compat.torch's: models on all GPUs, and how errors are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon import nn

from .absent import absent_function


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
    gather, parallel_apply, replicate, scatter = (
        absent_function(f"torch.nn.parallel.{name}", "there is one device")
        for name in "gather parallel_apply replicate scatter".split()
    )

    @staticmethod
    def data_parallel(
        module: Any,
        inputs: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        module_kwargs: Any = None,
    ) -> Any:
        """The module's result, as there is one device."""
        return module(
            *(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {})
        )


def _record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """The function: the launcher (`tenon run`) prints the error of the rank that failed first in any case."""
    return fn


class Errors:
    """torch.distributed.elastic.multiprocessing.errors."""

    record = staticmethod(_record)
