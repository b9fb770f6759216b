# SPDX-License-Identifier: Apache-2.0
"""tenon.distributed.rpc by PyTorch's names. Functions are called by registered name (`tenon.distributed.rpc.register`); programs
that give any function, or send any object, call `init_rpc(..., pickles=True)` in all processes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenon.distributed import rpc as _rpc
from tenon.distributed.environment import read_environment
from tenon.distributed.rpc import RRef, WorkerInfo, get_worker_info
from tenon.distributed.rpc.processes import own_address
from tenon.distributed.world import open_store

__all__ = [
    "RRef",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "get_worker_info",
    "init_rpc",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

_DEFAULT_TIMEOUT = 60.0
_UNSET = -1.0


@dataclass
class TensorPipeRpcBackendOptions:
    """`rpc_timeout` counts; threads are started as they are needed, and tensors arrive in the host's memory."""

    num_worker_threads: int = 16
    rpc_timeout: float = _DEFAULT_TIMEOUT
    init_method: str = "env://"
    device_maps: Mapping[str, Any] | None = None
    devices: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if self.init_method != "env://":
            raise NotImplementedError(
                f"TensorPipeRpcBackendOptions: expected init_method='env://', got {self.init_method!r}; export MASTER_ADDR "
                "and MASTER_PORT, or start the processes with `tenon run`"
            )
        if self.device_maps or self.devices:
            raise NotImplementedError(
                "TensorPipeRpcBackendOptions: expected no device_maps and no devices, as tensors travel through the host's "
                "memory; move them where they arrive"
            )


def init_rpc(
    name: str,
    backend: Any = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: TensorPipeRpcBackendOptions | None = None,
    *,
    pickles: bool = False,
) -> None:
    if backend is not None:
        raise NotImplementedError(f"init_rpc: expected backend=None, got {backend!r}")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    timeout = options.rpc_timeout or 1e9  # 0: without a limit
    if rank < 0 and world_size is None:
        _rpc.init_rpc(name, timeout=timeout, pickles=pickles)
        return
    variables = dict(os.environ)
    if rank >= 0:
        variables["RANK"] = str(rank)
    if world_size is not None:
        variables["WORLD_SIZE"] = str(world_size)
    found = read_environment(variables)
    store = open_store(found, min(timeout, _DEFAULT_TIMEOUT))
    _rpc.init_rpc(
        name,
        rank=found.rank,
        world_size=found.size,
        store=store,
        address=own_address(found.address),
        timeout=timeout,
        pickles=pickles,
    )


def _limit(timeout: float) -> float | None:
    """PyTorch's: -1 is that of init_rpc, and 0 none."""
    if timeout == _UNSET:
        return None
    return timeout or 1e9


def rpc_sync(
    to: Any, func: Any, args: Any = None, kwargs: Any = None, timeout: float = _UNSET
) -> Any:
    return _rpc.rpc_sync(to, func, args or (), kwargs, _limit(timeout))


def rpc_async(
    to: Any, func: Any, args: Any = None, kwargs: Any = None, timeout: float = _UNSET
) -> _rpc.Reply:
    return _rpc.rpc_async(to, func, args or (), kwargs, _limit(timeout))


def remote(
    to: Any, func: Any, args: Any = None, kwargs: Any = None, timeout: float = _UNSET
) -> RRef:
    return _rpc.remote(to, func, args or (), kwargs, _limit(timeout))


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    _rpc.shutdown(graceful, timeout or None)
