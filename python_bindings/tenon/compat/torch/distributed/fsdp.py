# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.fsdp: fully_shard by PyTorch's parameters. What it does is docs/distributed.md's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tenon import distributed as _dist
from tenon.compat.torch._groups import only
from tenon.distributed import DeviceMesh
from tenon.distributed.fully_shard import FullyShardedModule as FSDPModule
from tenon.nn import Module

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "fully_shard",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtype of whole parameters, and of a module's arguments; and that of gradients on their way."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """None: rows stay where they are."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Is not there: fully_shard says so."""

    pin_memory: bool = True


def fully_shard(
    module: Module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Any = None,
) -> Module:
    """On a mesh of one axis, or of two, of which the first has replicas. `reshard_after_forward` is None, as True, or True or False, for every module alike."""
    policy = mp_policy or MixedPrecisionPolicy()
    only(
        "fully_shard",
        shard_placement_fn=(shard_placement_fn, None),
        ignored_params=(ignored_params or None, None),
        offload_policy=(offload_policy or OffloadPolicy(), OffloadPolicy()),
    )
    only("MixedPrecisionPolicy", output_dtype=(policy.output_dtype, None))
    if policy.param_dtype is not None:
        only("MixedPrecisionPolicy", cast_forward_inputs=(policy.cast_forward_inputs, True))
    if not isinstance(module, Module):
        raise NotImplementedError(
            f"fully_shard: expected a module, got {type(module).__name__}; call it with the module around several"
        )
    if type(reshard_after_forward) is int:
        raise NotImplementedError(
            f"fully_shard: expected reshard_after_forward to be True or False, got {reshard_after_forward}"
        )
    return _dist.fully_shard(
        module,
        reshard_after_forward=reshard_after_forward is not False,
        dtype=policy.param_dtype,
        reduce_dtype=policy.reduce_dtype,
        mesh=mesh,
    )


class FullyShardedDataParallel:
    """Is not there: fully_shard took its place."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        raise NotImplementedError(
            "FullyShardedDataParallel: expected fully_shard(module), which took its place, for each block and then for the "
            "model"
        )
