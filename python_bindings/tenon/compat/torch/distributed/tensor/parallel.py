# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.tensor.parallel: plans by PyTorch's rules, in which a `*` stands for a name between two dots. A pattern that
names no module is an error."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Sequence
from typing import Any

from tenon import Tensor, nn
from tenon import distributed as _dist
from tenon.compat.torch._groups import only
from tenon.compat.torch.distributed.device_mesh import expect_mesh
from tenon.distributed import (
    ColwiseParallel,
    DeviceMesh,
    DTensor,
    ParallelStyle,
    Placement,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
]

_Layouts = Placement | Sequence[Placement | None]


class PrepareModuleInput(ParallelStyle):
    """A module whose arguments are brought from `input_layouts` to `desired_input_layouts`, those with None left alone; its
    parameters stay."""

    def __init__(
        self,
        *,
        input_layouts: _Layouts | None = None,
        desired_input_layouts: _Layouts | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        only(
            "PrepareModuleInput",
            input_kwarg_layouts=(input_kwarg_layouts, None),
            desired_input_kwarg_layouts=(desired_input_kwarg_layouts, None),
        )
        before, after = _each(input_layouts), _each(desired_input_layouts)
        if len(before) != len(after):
            raise ValueError(
                "PrepareModuleInput: expected as many input_layouts as desired_input_layouts, got "
                f"{len(before)} and {len(after)}"
            )
        self._layouts = list(zip(before, after, strict=True))
        if any((one is None) != (other is None) for one, other in self._layouts):
            raise ValueError(
                "PrepareModuleInput: expected None in both of input_layouts and desired_input_layouts, or in none, got "
                f"{input_layouts} and {desired_input_layouts}"
            )
        self.use_local_output = use_local_output

    def apply(self, module: nn.Module, mesh: DeviceMesh, path: str) -> None:
        def prepare(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            if len(args) != len(self._layouts):
                raise ValueError(
                    f"PrepareModuleInput of {path!r}: expected {len(self._layouts)} arguments, as input_layouts say, got "
                    f"{len(args)}"
                )
            return tuple(self._prepared(arg, mesh, i) for i, arg in enumerate(args))

        module.register_forward_pre_hook(prepare)

    def _prepared(self, arg: Any, mesh: DeviceMesh, index: int) -> Any:
        before, after = self._layouts[index]
        if before is None or after is None or not isinstance(arg, Tensor):
            return arg
        if not isinstance(arg, DTensor):
            arg = _dist.from_local(arg, mesh, [before])
        arg = _dist.dtensor.redistribute(arg, mesh, [after])
        return _dist.dtensor.to_local(arg) if self.use_local_output else arg


def _each(layouts: _Layouts | None) -> list[Placement | None]:
    if layouts is None:
        return []
    return [layouts] if isinstance(layouts, Placement) else list(layouts)


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    only("parallelize_module", src_data_rank=(src_data_rank, 0))
    mesh = expect_mesh("parallelize_module", device_mesh)
    if parallelize_plan is None:
        warnings.warn("parallelize_module: there is no plan, and nothing is done", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        return _dist.parallelize_module(module, mesh, parallelize_plan)
    paths = [path for path, _ in module.named_modules()]
    plan: dict[str, ParallelStyle] = {}
    for pattern, style in parallelize_plan.items():
        fitting = [path for path in paths if _fits(path, pattern)]
        if not fitting:
            raise ValueError(
                f"parallelize_module: expected a module that {pattern!r} names, got none; there are {paths[1:]}"
            )
        for path in fitting:
            if path in plan:
                raise ValueError(
                    f"parallelize_module: expected one line of the plan for {path!r}, got two"
                )
            plan[path] = style
    return _dist.parallelize_module(module, mesh, plan)


def _fits(path: str, pattern: str) -> bool:
    names, patterns = path.split("."), pattern.split(".")
    return len(names) == len(patterns) and all(map(fnmatch.fnmatchcase, names, patterns))
