# SPDX-License-Identifier: Apache-2.0
"""torch.utils.tensorboard: numbers over time, in files that TensorBoard reads."""

from __future__ import annotations

import time
from typing import Any

from tenon.training.event_writer import EventWriter

__all__ = ["SummaryWriter"]


class SummaryWriter(EventWriter):
    """Writes curves of numbers; pictures, texts, histograms and graphs are refused."""

    def __init__(self, log_dir: Any = None, comment: str = "", **options: Any) -> None:
        if options:
            raise NotImplementedError(
                f"SummaryWriter(): expected log_dir and comment, got {', '.join(options)}"
            )
        self.log_dir = log_dir or f"runs/{time.strftime('%b%d_%H-%M-%S')}{comment}"
        self._steps: dict[str, int] = {}
        super().__init__(self.log_dir)

    def add_scalar(  # type: ignore[override]
        self, tag: str, scalar_value: Any, global_step: int | None = None
    ) -> None:
        """A point of the curve `tag`; without a step, one after the last."""
        if global_step is None:
            global_step = self._steps.get(tag, -1) + 1
        self._steps[tag] = int(global_step)
        super().add_scalar(tag, float(scalar_value), int(global_step))

    def add_scalars(
        self, main_tag: str, values: dict[str, Any], global_step: int | None = None
    ) -> None:
        """Points of several curves."""
        for tag, value in values.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("add_"):
            raise NotImplementedError(
                f"SummaryWriter.{name}(): curves of numbers alone are written"
            )
        raise AttributeError(name)
