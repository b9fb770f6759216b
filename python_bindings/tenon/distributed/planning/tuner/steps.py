# SPDX-License-Identifier: Apache-2.0
"""A step of a recipe as one rank runs it, on ranks that are there and on ranks that are not."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import Module
from tenon.utils.checkpoint import checkpoint

from ...data_parallel import DistributedDataParallel
from ...dtensor import local_of, redistribute
from ...fully_shard import FullyShardedModule, ShardedParameter, fully_shard
from ...pipelines import pipeline
from ...pipelines.stages import Stage, cut
from ...tensor_parallel import parallelize_module
from ...zero import ZeroRedundancyOptimizer
from ..tracing import mark
from .recipe import Config, Layout, Recipe


def build_step(recipe: Recipe, config: Config) -> Callable[[], Tensor]:
    """The step of this rank, of all ranks of a config."""
    layout = Layout(config)
    model = _model_of(recipe, config, layout)
    x, target = recipe.batch(recipe.rows // config.dp, layout)
    if config.pp > 1:
        _recompute(recipe, config, model)
        return _pipelined(recipe, config, layout, model, x, target)
    called, optimizer, quiet = _divided(recipe, config, layout, model)
    _recompute(recipe, config, model)
    count = config.microbatches
    size = x.shape[0] // count

    def step() -> Tensor:
        optimizer.zero_grad()
        total = None
        for index in range(count):
            rows = slice(size * index, size * (index + 1))
            with quiet(index < count - 1):
                loss = recipe.loss(called(x[rows]), target[rows]) / count
                loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        optimizer.step()
        assert total is not None
        return total

    return step


def build_stages(recipe: Recipe, config: Config) -> Callable[[], dict[int, int]]:
    """Of a pipeline: one micro-batch through all stages, one behind the other, between marks "F0", "B0", "E0" and so on, and
    the updates between "U0" and "V0". Run on the ranks of one stage; returns the bytes that each stage hands on."""
    layout = Layout(config, with_pipeline=False)
    model = _model_of(recipe, config, layout)
    _recompute(recipe, config, model)
    parts = cut(model, None, config.pp * config.chunks)
    stages = [Stage(index, each) for index, each in enumerate(parts)]
    rows = recipe.rows // config.dp // config.microbatches
    x, target = recipe.batch(rows, layout)
    optimizers = [_optimizer(recipe, config, layout, list(s.parameters())) for s in stages]
    handed: dict[int, int] = {}

    def step() -> dict[int, int]:
        given: tuple[Tensor, ...] = (x,)
        held: list[tuple[Stage, tuple[Tensor, ...], tuple[Tensor, ...]]] = []
        for index, stage in enumerate(stages):
            mark(f"F{index}")
            given = tuple(
                each.detach().requires_grad_(bool(index) and each.dtype.is_floating_point)
                for each in given
            )
            outputs = stage(*given)
            if index == len(stages) - 1:
                outputs = (recipe.loss(outputs[0], target) / config.microbatches,)
            else:
                handed[index] = sum(each.nbytes for each in outputs)
            mark(f"G{index}")
            held.append((stage, given, outputs))
            given = outputs
        for index in reversed(range(len(stages))):
            _, given, outputs = held.pop()
            grads = [tenon.zeros_like(each.detach()) for each in outputs if each.requires_grad]
            mark(f"B{index}")
            wanted = [each for each in outputs if each.requires_grad]
            if wanted:
                tenon.autograd.backward(wanted, grads)
            mark(f"E{index}")
        for index, stage in enumerate(stages):
            mark(f"U{index}")
            _average(stage, layout)
            if optimizers[index] is not None:
                optimizers[index].step()
            mark(f"V{index}")
            for p in stage.parameters():
                p.grad = None
        return handed

    return step


def _model_of(recipe: Recipe, config: Config, layout: Layout) -> Module:
    model = recipe.model(layout)
    plan = recipe.plan(config)
    if config.tp > 1 and plan is not None:
        parallelize_module(model, layout.mesh["tp"], plan)
    return model


def _units(recipe: Recipe, model: Module) -> list[Module]:
    assert recipe.units is not None
    found = [
        module
        for name, module in model.named_modules()
        if name
        and fnmatch.fnmatchcase(name, recipe.units)
        and name.count(".") == recipe.units.count(".")
    ]
    if not found:
        raise ValueError(
            f"tune: expected modules that units={recipe.units!r} names, got none; there are "
            f"{', '.join(name for name, _ in model.named_modules() if name)}"
        )
    return found


def _recompute(recipe: Recipe, config: Config, model: Module) -> None:
    """What units keep for their backward pass is their input alone. Around what fully_shard makes of them."""
    for unit in _units(recipe, model) if config.recompute else ():
        _compute_again(unit)


def _compute_again(unit: Module) -> None:
    forward = unit.forward

    def again(*args: Any) -> Any:
        return checkpoint(forward, *args)

    vars(unit)["forward"] = again


def _divided(recipe: Recipe, config: Config, layout: Layout, model: Module) -> tuple[Any, Any, Any]:
    """What is called, the optimizer, and quiet(is_on): a context in which gradients stay on this rank."""
    group = layout.data
    options = dict(recipe.optimizer_options)
    if config.zero == 3:
        for unit in _units(recipe, model):
            fully_shard(unit, group)
        if any(not isinstance(p, ShardedParameter) for p in model.parameters()):
            fully_shard(model, group)
        optimizer = recipe.optimizer(model.parameters(), **options)

        @contextlib.contextmanager
        def quiet(is_on: bool) -> Any:
            for module in model.modules():
                if isinstance(module, FullyShardedModule):
                    module.set_requires_gradient_sync(not is_on, recurse=False)
            yield

        return model, optimizer, quiet
    if config.zero == 2:
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), recipe.optimizer, stage=2, process_group=group, **options
        )
        return (
            model,
            optimizer,
            lambda is_on: optimizer.no_sync() if is_on else contextlib.nullcontext(),
        )
    if group.size == 1:
        optimizer = recipe.optimizer(model.parameters(), **options)
        return model, optimizer, lambda is_on: contextlib.nullcontext()
    called = DistributedDataParallel(model, group)
    if config.zero == 1:
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), recipe.optimizer, stage=1, process_group=group, **options
        )
    else:
        optimizer = recipe.optimizer(model.parameters(), **options)
    return called, optimizer, lambda is_on: called.no_sync() if is_on else contextlib.nullcontext()


def _optimizer(recipe: Recipe, config: Config, layout: Layout, params: list[Any]) -> Any:
    """Of a stage of a pipeline; None where it has nothing to train."""
    if not params:
        return None
    options = dict(recipe.optimizer_options)
    if config.zero == 1:
        return ZeroRedundancyOptimizer(
            params, recipe.optimizer, stage=1, process_group=layout.data, **options
        )
    return recipe.optimizer(params, **options)


def _average(module: Any, layout: Layout) -> None:
    if layout.data.size == 1:
        return
    with tenon.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                grad: Any = parameter.grad
                if grad.layout == "sharded":
                    grad = parameter.grad = redistribute(grad, placements=parameter.placements)
                own = local_of(grad)
                layout.data.all_reduce(own, "mean", out=own)


def _pipelined(
    recipe: Recipe, config: Config, layout: Layout, model: Module, x: Tensor, target: Tensor
) -> Callable[[], Tensor]:
    pipe = pipeline(
        model,
        layout.mesh.get_group("pp"),
        microbatches=config.microbatches,
        schedule=config.schedule,
        chunks=config.chunks if config.chunks > 1 else None,
    )
    optimizer = _optimizer(recipe, config, layout, list(pipe.parameters()))

    def step() -> Tensor:
        if optimizer is not None:
            optimizer.zero_grad()
        loss = pipe.step(x, target=target, loss_fn=recipe.loss)
        _average(pipe, layout)
        if optimizer is not None:
            optimizer.step()
        return loss

    return step
