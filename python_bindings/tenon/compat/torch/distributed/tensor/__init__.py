# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.tensor: tensors of which every rank of a mesh has a part. What they do is docs/distributed.md's: of an
axis of `size` elements that n ranks share, rank r has those from `size * r // n` to `size * (r + 1) // n`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon import distributed as _dist
from tenon.compat.torch._groups import only
from tenon.compat.torch.distributed.device_mesh import expect_mesh
from tenon.distributed import DeviceMesh, Partial, Placement, Replicate, Shard

from . import parallel

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "parallel",
    "rand",
    "randn",
    "zeros",
]


def _placements(mesh: DeviceMesh, placements: Sequence[Placement] | None) -> Sequence[Placement]:
    return [Replicate()] * mesh.ndim if placements is None else placements


class DTensor(_dist.DTensor):
    """What `isinstance` calls a sharded tensor, and how one is made of parts."""

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> Tensor:
        """Without `shape` ranks tell each other how long their parts are."""
        only(
            "DTensor.from_local",
            run_check=(run_check, False),
            stride=(stride, None),
            grad_placements=(grad_placements, None),
        )
        mesh = expect_mesh("DTensor.from_local", device_mesh)
        return _dist.from_local(local_tensor, mesh, _placements(mesh, placements), shape=shape)


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Tensor:
    """Of a sharded tensor: itself, if it is on the mesh in these placements."""
    mesh = expect_mesh("distribute_tensor", device_mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh is not mesh or list(tensor.placements) != list(
            _placements(mesh, placements)
        ):
            raise ValueError(
                f"distribute_tensor: expected a plain tensor, or one on the mesh in the placements {placements}, got one "
                f"in {tensor.placements} on {tensor.device_mesh!r}; use redistribute"
            )
        return tensor
    return _dist.distribute_tensor(tensor, mesh, placements, src_data_rank=src_data_rank)


def distribute_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
) -> nn.Module:
    """`partition_fn` cuts parameters of each module below; all others and buffers are Replicate() afterwards."""
    mesh = expect_mesh("distribute_module", device_mesh)
    whole = [Replicate()] * mesh.ndim
    for path, each in list(module.named_modules()):
        if partition_fn is not None:
            partition_fn(path, each, mesh)
        for name, value in list(vars(each).items()):
            if isinstance(value, DTensor):
                continue
            if isinstance(value, nn.Parameter):
                setattr(each, name, _dist.tensor_parallel.sharded_parameter(value, mesh, whole))
            elif isinstance(value, nn.Buffer):
                setattr(each, name, _dist.distribute_tensor(value.detach(), mesh, whole))
    if input_fn is not None:
        module.register_forward_pre_hook(lambda called, args: input_fn(called, args, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda called, _, result: output_fn(called, result, mesh))
    return module


# -- tensors that are made in parts


def _made(
    call: str,
    make: Callable[..., Tensor],
    size: Sequence[Any],
    requires_grad: bool,
    dtype: Any,
    layout: Any,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> Tensor:
    mesh = expect_mesh(call, device_mesh)
    only(call, layout=(layout, None))
    shape = list(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else list(size)
    whole = make(shape) if dtype is None else make(shape, dtype=dtype)
    return _dist.distribute_tensor(whole, mesh, placements).requires_grad_(requires_grad)


def _factory(call: str, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def factory(
        *size: Any,
        requires_grad: bool = False,
        dtype: Any = None,
        layout: Any = None,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> Tensor:
        return _made(call, make, size, requires_grad, dtype, layout, device_mesh, placements)

    factory.__name__ = factory.__qualname__ = call
    factory.__doc__ = f"The first rank's tenon.{call}, of which every rank keeps its part."
    return factory


empty, ones, zeros = (_factory(name, getattr(tenon, name)) for name in ("empty", "ones", "zeros"))
rand, randn = (_factory(name, getattr(tenon, name)) for name in ("rand", "randn"))


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Tensor:
    def make(shape: list[int], **options: Any) -> Tensor:
        return tenon.full(shape, fill_value, **options)

    return _made("full", make, [size], requires_grad, dtype, layout, device_mesh, placements)
