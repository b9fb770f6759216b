# SPDX-License-Identifier: Apache-2.0
"""Names of torch.autograd and torch.profiler that tenon.autograd and tenon.profiler lack."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from tenon import autograd as _autograd
from tenon._core import Tensor

__all__ = ["Variable", "set_detect_anomaly"]


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """The tensor itself, as PyTorch has it since 0.4."""
    return data.requires_grad_() if requires_grad else data


class set_detect_anomaly:
    """detect_anomaly() for the rest of the program, or in a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        if mode and not check_nan:
            raise NotImplementedError("set_detect_anomaly(): expected check_nan=True, got False")
        self._region: Any = _autograd.detect_anomaly() if mode else None
        if self._region is not None:
            self._region.__enter__()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        if self._region is not None:
            self._region.__exit__(*exception)


class _Activity(enum.Enum):
    CPU, CUDA, XPU = "cpu", "cuda", "xpu"


def _trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    if use_gzip:
        raise NotImplementedError(
            "tensorboard_trace_handler(): expected use_gzip=False, got True; compress the file afterwards"
        )

    def handle(profile: Any) -> None:
        profile.export_tensorboard(dir_name, worker_name)

    return handle


class Profiler:
    """What torch.profiler names besides."""

    ProfilerActivity = _Activity
    tensorboard_trace_handler = staticmethod(_trace_handler)

    @staticmethod
    def supported_activities() -> set[_Activity]:
        return {_Activity.CPU}
