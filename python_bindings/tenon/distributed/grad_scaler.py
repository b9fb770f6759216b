# SPDX-License-Identifier: Apache-2.0
"""Loss scaling where ranks have parts of the model."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, amp
from tenon.optim import Optimizer
from tenon.optim.optimizer import parts

from .dtensor import DTensor, to_local
from .fully_shard import ShardedParameter
from .group import ProcessGroup
from .world import world


class GradScaler(amp.GradScaler):
    """tenon.amp.GradScaler for parameters of fully_shard, experts and sharded tensors: a gradient that is not finite on one
    rank of the group makes all of them leave out the step, and lower the scale. Every rank of the group calls step() or
    unscale_()."""

    def __init__(
        self, *args: Any, process_group: ProcessGroup | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.process_group = process_group or world()

    def unscale_(self, optimizer: Optimizer) -> None:
        super().unscale_(optimizer)
        if not self.is_enabled():
            return
        found = self._state_of(optimizer).found_inf
        with tenon.no_grad():
            whole = self._found_inf([self._state_of(optimizer)]).to("cpu").reshape([1])
            whole = self.process_group.all_reduce(whole, "max").reshape([])
            for place, flag in found.items():
                found[place] = whole.to(flag.device)

    def _expect_whole(self, params: list[Tensor]) -> None:
        """Parts are what it is for, if all ranks that have some of them take part."""
        for param in params:
            if isinstance(param, ShardedParameter) and param.cut is not None:
                ranks = set(param.cut.mesh.ranks)
            elif isinstance(param, DTensor):
                ranks = set(param.device_mesh.ranks)
            else:
                continue
            if not ranks <= set(self.process_group.ranks):
                raise ValueError(
                    f"GradScaler: expected a process_group of all ranks that have parts of the parameters, {sorted(ranks)} "
                    f"among them, got {list(self.process_group.ranks)}"
                )

    @staticmethod
    def _written(grad: Tensor) -> Tensor:
        return parts(to_local(grad) if isinstance(grad, DTensor) else grad)
