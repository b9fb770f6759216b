# SPDX-License-Identifier: Apache-2.0
"""paddle.distributed.fleet of jobs whose ranks have the whole model: what splits a model over ranks is refused by name.

from tenon.compat import paddle
fleet = paddle.distributed.fleet
fleet.init(is_collective=True)
model, optimizer = fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
"""

from __future__ import annotations

from typing import Any

from tenon import distributed as _dist
from tenon.distributed import DistributedDataParallel, ProcessGroup
from tenon.nn import Module

__all__ = [
    "DistributedStrategy",
    "HybridCommunicateGroup",
    "barrier_worker",
    "distributed_model",
    "distributed_optimizer",
    "get_hybrid_communicate_group",
    "init",
    "is_first_worker",
    "is_server",
    "is_worker",
    "stop_worker",
    "worker_index",
    "worker_num",
]

_INSTEAD = {
    "mp_degree": "parts of parameters",
    "pp_degree": "tenon.distributed.pipeline",
    "sharding_degree": "tenon.distributed.fully_shard or ZeroRedundancyOptimizer",
    "sep_degree": "tenon.distributed.ContextParallel",
    "ep_degree": "tenon.distributed.MoELayer",
}


class DistributedStrategy:
    """`hybrid_configs`, of which dp_degree may be other than 1, and find_unused_parameters."""

    hybrid_configs: dict[str, Any]
    find_unused_parameters: bool

    def __init__(self) -> None:
        object.__setattr__(self, "find_unused_parameters", False)
        object.__setattr__(self, "hybrid_configs", {"dp_degree": -1})

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hybrid_configs":
            self.hybrid_configs.update(_only_data_parallel(value))
        elif name == "find_unused_parameters":
            object.__setattr__(self, name, bool(value))
        else:
            raise NotImplementedError(
                f"DistributedStrategy: expected hybrid_configs or find_unused_parameters, got {name}"
            )


def _only_data_parallel(configs: dict[str, Any]) -> dict[str, Any]:
    for name, value in configs.items():
        if name == "dp_degree" or value in (1, -1) and name in _INSTEAD:
            continue
        instead = f"; use {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise NotImplementedError(
            f"hybrid_configs: expected dp_degree alone, got {name}={value!r}{instead}"
        )
    return configs


class HybridCommunicateGroup:
    """All ranks have a part of the batch, and the whole model."""

    def get_data_parallel_group(self) -> ProcessGroup:
        return _dist.world()

    def get_data_parallel_rank(self) -> int:
        return _dist.get_rank()

    def get_data_parallel_world_size(self) -> int:
        return _dist.get_world_size()

    def get_model_parallel_rank(self) -> int:
        return 0

    get_stage_id = get_sharding_parallel_rank = get_model_parallel_rank

    def get_model_parallel_world_size(self) -> int:
        return 1

    get_pipe_parallel_world_size = get_sharding_parallel_world_size = get_model_parallel_world_size


_strategy = DistributedStrategy()


def init(
    role_maker: Any = None,
    is_collective: bool = False,
    strategy: DistributedStrategy | None = None,
    log_level: int | str = "INFO",
) -> None:
    """Meet the other ranks, unless that has been done."""
    global _strategy
    if role_maker is not None or not is_collective:
        raise NotImplementedError(
            "fleet.init: expected is_collective=True and no role_maker, as parameter servers are those of tenon.distributed.ps (tenon run --servers)"
        )
    if log_level != "INFO":
        raise NotImplementedError("fleet.init: expected log_level to be left out")
    strategy = strategy or DistributedStrategy()
    if not _dist.is_initialized():
        _dist.init_process_group()
    degree, size = strategy.hybrid_configs["dp_degree"], _dist.get_world_size()
    if degree not in (-1, size):
        raise ValueError(
            f"fleet.init: expected a dp_degree of {size}, as there are ranks, got {degree}"
        )
    _strategy = strategy


def worker_index() -> int:
    return _dist.get_rank()


def worker_num() -> int:
    return _dist.get_world_size()


def is_first_worker() -> bool:
    return _dist.get_rank() == 0


def is_worker() -> bool:
    return True


def is_server() -> bool:
    return False


def barrier_worker() -> None:
    _dist.barrier()


def stop_worker() -> None:
    _dist.destroy_process_group()


def get_hybrid_communicate_group() -> HybridCommunicateGroup:
    return HybridCommunicateGroup()


def distributed_model(model: Module) -> Module:
    """Gradients are means over the ranks when backward() returns. With one rank, the model itself."""
    if _dist.get_world_size() == 1:
        return model
    return DistributedDataParallel(model, find_unused_parameters=_strategy.find_unused_parameters)


def distributed_optimizer(optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
    """The optimizer itself: every rank updates the whole model."""
    if strategy is not None:
        raise NotImplementedError(
            "distributed_optimizer: expected the strategy at fleet.init(), got one here"
        )
    return optimizer
