# SPDX-License-Identifier: Apache-2.0
"""torch.nn.parallel: DistributedDataParallel by PyTorch's parameters. What it does is docs/distributed.md's."""

from __future__ import annotations

from typing import Any

from tenon import device as _device
from tenon import distributed as _dist
from tenon.compat.torch._groups import expect_group, only
from tenon.nn import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(_dist.DistributedDataParallel):
    """`device_ids` may be the device of the module, of which there is one: inputs are there already."""

    def __init__(
        self,
        module: Module,
        device_ids: list[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        only(
            "DistributedDataParallel",
            dim=(dim, 0),
            init_sync=(init_sync, True),
            check_reduction=(check_reduction, False),
            gradient_as_bucket_view=(gradient_as_bucket_view, False),
            static_graph=(static_graph, False),
            delay_all_reduce_named_params=(delay_all_reduce_named_params, None),
            param_to_hook_all_reduce=(param_to_hook_all_reduce, None),
            mixed_precision=(mixed_precision, None),
            skip_all_reduce_unused_params=(skip_all_reduce_unused_params, False),
        )
        here = {str(param.device) for param in module.parameters()}
        for name, given in (("device_ids", device_ids or []), ("output_device", [output_device])):
            wrong = [each for each in given if each is not None and not _is_here(each, here)]
            if wrong or len(given) > 1:
                raise NotImplementedError(
                    f"DistributedDataParallel: expected {name} to be the one device of the module, {sorted(here)}, got {given}"
                )
        if device_mesh is not None:
            if process_group is not None:
                raise ValueError(
                    "DistributedDataParallel: expected one of process_group and device_mesh, got both"
                )
            process_group = device_mesh.get_group()
        super().__init__(
            module,
            expect_group(process_group),
            25.0 if bucket_cap_mb is None else bucket_cap_mb,
            find_unused_parameters,
            broadcast_buffers,
        )


def _is_here(given: Any, devices: set[str]) -> bool:
    """`given` is a device, its name, or its index."""
    if isinstance(given, int):
        return all(each.endswith(f":{given}") for each in devices)
    return devices == {str(_device(given) if isinstance(given, str) else given)}
