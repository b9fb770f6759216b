# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.optim: the optimizer whose state is divided over ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenon import distributed as _dist
from tenon.compat.torch._groups import expect_group, only

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(_dist.ZeroRedundancyOptimizer):
    """Stage 1, by PyTorch's parameters. `state_dict()` is whole on every rank, so that consolidate_state_dict() has nothing to do."""

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: Any,
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        only(
            "ZeroRedundancyOptimizer",
            parameters_as_bucket_view=(parameters_as_bucket_view, False),
            overlap_with_ddp=(overlap_with_ddp, False),
        )
        group = expect_group(process_group)
        super().__init__(params, optimizer_class, process_group=group, **defaults)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Nothing: `state_dict()` gathers it, on all ranks."""
