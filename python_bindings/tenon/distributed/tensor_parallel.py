# SPDX-License-Identifier: Apache-2.0
"""Tensor parallel models: a plan says how the weights of modules are cut, and rules of operators make the collectives."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any

from tenon import Tensor, nn

from .dtensor import DTensor, distribute_tensor, from_local
from .mesh import DeviceMesh
from .placements import Placement, Replicate, Shard
from .vocabulary import RowsOfVocabulary


class ParallelStyle:
    """What a plan makes of a module. `input_layouts` says what plain tensors the module is called with are parts of, and
    `output_layouts` in which placements its result is; with `use_local_output` that is a plain tensor, this rank's part."""

    input_layouts: Placement = Replicate()
    desired_input_layouts: Placement = Replicate()
    output_layouts: Placement = Replicate()
    use_local_output: bool = True

    def placements_of(self, module: nn.Module, name: str) -> Placement:
        raise NotImplementedError

    def apply(self, module: nn.Module, mesh: DeviceMesh, path: str) -> None:
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(
                module, name, sharded_parameter(parameter, mesh, [self.placements_of(module, name)])
            )
        module.register_forward_pre_hook(lambda module, args: self._inputs(module, args, mesh))
        module.register_forward_hook(lambda _, args, result: self._result(result))

    def _inputs(
        self, module: nn.Module, args: tuple[Any, ...], mesh: DeviceMesh
    ) -> tuple[Any, ...]:
        if not args or not isinstance(args[0], Tensor):
            return args
        x = args[0]
        if not isinstance(x, DTensor):
            x = from_local(x, mesh, [self.input_layouts], shape=self._global_shape(module, x))
        return (x.redistribute([self.desired_input_layouts]), *args[1:])

    def _global_shape(self, module: nn.Module, x: Tensor) -> list[int] | None:
        """Of the tensor of which a plain input is this rank's part, where the module tells it: ranks need not tell each other,
        and programs can hold it. None: they do."""
        at = self.input_layouts
        if isinstance(at, Shard) and at.dim in (-1, x.ndim - 1) and isinstance(module, nn.Linear):
            return [*x.shape[:-1], module.in_features]
        return None

    def _result(self, result: Tensor) -> Tensor:
        whole = result.redistribute([self.output_layouts])
        return whole.to_local() if self.use_local_output else whole


class ColwiseParallel(ParallelStyle):
    """A Linear whose outputs, or an Embedding whose columns, are cut: each rank computes its own. The result is
    Shard(-1) unless `output_layouts` says otherwise."""

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = input_layouts or Replicate()
        self.output_layouts = output_layouts or Shard(-1)
        self.use_local_output = use_local_output

    def placements_of(self, module: nn.Module, name: str) -> Placement:
        if isinstance(module, nn.Embedding):
            if module.sparse:
                raise NotImplementedError(
                    "ColwiseParallel: expected Embedding(sparse=False), got a table whose gradients are rows"
                )
            return Shard(1)
        _expect(module, nn.Linear, self)
        return Shard(0)


class RowwiseParallel(ParallelStyle):
    """A Linear whose inputs are cut, or an Embedding whose rows are: what the ranks compute are summands, which come together
    in `output_layouts`, Replicate() by default, or Shard(1) for sequence parallel models. A bias is added once. Of a table
    each rank looks up what lies in its rows; indices are Replicate() unless `input_layouts` says otherwise."""

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.given_layouts = input_layouts
        self.input_layouts = input_layouts or Shard(-1)
        self.desired_input_layouts = Shard(-1)
        self.output_layouts = output_layouts or Replicate()
        self.use_local_output = use_local_output

    def apply(self, module: nn.Module, mesh: DeviceMesh, path: str) -> None:
        if not isinstance(module, nn.Embedding):
            super().apply(module, mesh, path)
            return
        rows = _TableRows(module, self.given_layouts, self.output_layouts)
        rows.use_local_output = self.use_local_output
        rows.apply(module, mesh, path)

    def placements_of(self, module: nn.Module, name: str) -> Placement:
        _expect(module, nn.Linear, self)
        return Shard(1) if name == "weight" else Replicate()


class _TableRows(ParallelStyle):
    """RowwiseParallel of an Embedding: indices are whole on every rank, by default."""

    def __init__(
        self, module: nn.Embedding, input_layouts: Placement | None, output_layouts: Placement
    ) -> None:
        if module.sparse or module.max_norm is not None or module.scale_grad_by_freq:
            raise NotImplementedError(
                "RowwiseParallel: expected Embedding(sparse=False, max_norm=None, scale_grad_by_freq=False), got a table "
                "that one of these was given for; use ColwiseParallel, or a plain table"
            )
        self.input_layouts = input_layouts or Replicate()
        self.output_layouts = output_layouts
        kind = type(module)
        module.__class__ = type(kind.__name__, (RowsOfVocabulary, kind), {})

    def placements_of(self, module: nn.Module, name: str) -> Placement:
        return Shard(0)


class SequenceParallel(ParallelStyle):
    """A module that works on each position by itself (LayerNorm, RMSNorm, Dropout): its input is cut along the sequence,
    axis `sequence_dim`, and its parameters are whole on every rank."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.input_layouts = self.desired_input_layouts = self.output_layouts = Shard(sequence_dim)
        self.use_local_output = use_local_output

    def placements_of(self, module: nn.Module, name: str) -> Placement:
        return Replicate()


class PrepareModuleInput(ParallelStyle):
    """A module whose first argument is brought from `input_layouts` to `desired_input_layouts`; its parameters stay."""

    def __init__(
        self,
        *,
        input_layouts: Placement,
        desired_input_layouts: Placement,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = input_layouts, desired_input_layouts
        self.use_local_output = use_local_output

    def apply(self, module: nn.Module, mesh: DeviceMesh, path: str) -> None:
        def prepare(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            first, *rest = self._inputs(module, args, mesh)
            return (first.to_local() if self.use_local_output else first, *rest)

        module.register_forward_pre_hook(prepare)


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle],
) -> nn.Module:
    """`module` with the parameters of those below it that the plan names, by patterns such as "blocks.*.qkv", as sharded
    tensors on a mesh of one axis. Do this before an optimizer takes the parameters. A name that fits no module is an
    error."""
    if device_mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: expected a mesh of one axis, such as mesh['tp'], got {device_mesh}"
        )
    plan = parallelize_plan if isinstance(parallelize_plan, dict) else {"": parallelize_plan}
    modules = dict(module.named_modules())
    chosen: dict[str, ParallelStyle] = {}
    for pattern, style in plan.items():
        fitting = [path for path in modules if fnmatch.fnmatchcase(path, pattern)]
        if not fitting:
            raise ValueError(
                f"parallelize_module: expected a module that {pattern!r} names, got none; there are {list(modules)[1:]}"
            )
        for path in fitting:
            if path in chosen:
                raise ValueError(
                    f"parallelize_module: expected one line of the plan for {path!r}, got two"
                )
            chosen[path] = style
    for path, style in chosen.items():
        style.apply(modules[path], device_mesh, path)
    return module


def sharded_parameter(
    parameter: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> nn.Parameter:
    """A parameter of which every rank has its part, and whose gradient comes in the same placements."""
    made = nn.Parameter(
        distribute_tensor(parameter.detach(), mesh, placements), parameter.requires_grad
    )
    if parameter.requires_grad:
        made.register_hook(lambda grad: grad.redistribute(placements))
    return made


def _expect(module: nn.Module, kind: type, style: ParallelStyle) -> None:
    if not isinstance(module, kind):
        raise TypeError(
            f"{type(style).__name__}: expected a {kind.__name__}, got {type(module).__name__}"
        )
