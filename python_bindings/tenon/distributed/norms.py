# SPDX-License-Identifier: Apache-2.0
"""Norms of gradients of which ranks have parts: each element counts once, on however many ranks it is."""

from __future__ import annotations

from collections.abc import Iterable

import tenon
from tenon import Tensor

from .dtensor import DTensor, to_local
from .experts import place_of
from .fully_shard import ShardedParameter
from .group import ProcessGroup
from .mesh import DeviceMesh
from .pipelines import Pipeline
from .placements import Placement, Replicate
from .recorded_calls import recordable
from .world import world


def clip_grad_norm_(
    parameters: Iterable[Tensor],
    max_norm: float,
    group: ProcessGroup | None = None,
    *,
    pipeline: Pipeline | None = None,
) -> Tensor:
    """Scale gradients so that their 2-norm is `max_norm` at most, and return the norm before: that of the whole model,
    the same on all ranks. Rows of fully_shard's parameters and experts count once, on however many ranks of the group they
    are; so does each element of a sharded tensor, on its mesh. Every rank of the group and of the meshes calls it.

    Of stages of a pipeline the norm is that of all of them. Parameters know theirs; `pipeline` is needed on all of its ranks
    where one has stages without parameters. `group` are then ranks with the same stages, needed where these have parts of
    fully_shard or experts."""
    parameters = list(parameters)
    pipeline = pipeline or _pipeline_of(parameters)
    if pipeline is None:
        group = group or world()
    with_grads = [(p, p.grad) for p in parameters if p.grad is not None and p.grad.numel()]
    with tenon.no_grad():
        # Sums meet on the host; of tensors without data (dist.trace_step) there is nothing to bring there.
        place = "meta" if any(grad.device.kind == "meta" for _, grad in with_grads) else "cpu"
        everywhere, parts = tenon.zeros([1], device=place), tenon.zeros([1], device=place)
        cut: dict[tuple[DeviceMesh, tuple[int, ...]], Tensor] = {}  # by the axes that cut them
        for param, grad in with_grads:
            counts = 1.0 if pipeline is None or pipeline.counts(param) else 0.0
            if isinstance(grad, DTensor):
                mesh, axes, local = _cut(grad)
                before = cut.get((mesh, axes), tenon.zeros([1], device=place))
                cut[mesh, axes] = before + _square(local, place) * counts
                continue
            square, copies = _square(grad, place) * counts, _copies(param, group)
            if copies is None:
                everywhere = everywhere + square
            else:
                parts = parts + square / copies
        for (mesh, axes), square in cut.items():
            for axis in axes:
                square = recordable(mesh.get_group(axis)).all_reduce(square)
            everywhere = everywhere + square
        square = everywhere if group is None else recordable(group).all_reduce(parts) + everywhere
        norm = tenon.sqrt(square if pipeline is None else pipeline.group.all_reduce(square))
        scale = tenon.minimum(max_norm / (norm + 1e-6), tenon.ones([1], device=place))
        for _, grad in with_grads:
            # The parts of a sum, or of a largest element, are scaled as it is.
            local = to_local(grad) if isinstance(grad, DTensor) else grad
            local.copy_(local * scale.to(local.dtype).to(local.device))
        return norm.reshape([])


def _pipeline_of(parameters: list[Tensor]) -> Pipeline | None:
    references = [getattr(param, "pipeline", None) for param in parameters]
    found = {id(made): made for each in references if each and (made := each()) is not None}
    if len(found) > 1:
        raise ValueError(
            f"clip_grad_norm_: expected parameters of one pipeline, got those of {len(found)}; clip each by itself, or give "
            "the one whose norm it is as pipeline="
        )
    return next(iter(found.values()), None)


def _square(grad: Tensor, place: str) -> Tensor:
    wide = grad.to(tenon.float32)
    return (wide * wide).sum().to(place)


def _cut(grad: Tensor) -> tuple[DeviceMesh, tuple[int, ...], Tensor]:
    """The mesh, its axes that cut the gradient, and this rank's part; sums are made first."""
    made: list[Placement] = [Replicate() if p.is_partial() else p for p in grad.placements]
    axes = tuple(axis for axis, placement in enumerate(made) if placement.is_shard())
    return grad.device_mesh, axes, to_local(grad.redistribute(made))


def _copies(param: Tensor, group: ProcessGroup | None) -> int | None:
    """On how many ranks of the group the elements of a part are; None: on all."""
    place = place_of(param)
    if isinstance(param, ShardedParameter):
        parts, ranks = param.group.size, set(param.group.ranks)
        if param.cut is not None:
            parts, ranks = parts * param.cut.parts, ranks | set(param.cut.mesh.ranks)
    elif place is not None:
        parts, ranks = place.group.size, set(place.group.ranks)
    else:
        return None
    if group is None:
        raise ValueError(
            "clip_grad_norm_: expected the group of all ranks that have the same stages of the pipeline, because other "
            f"ranks have other parts of a parameter of shape {tuple(param.shape)}, got none"
        )
    if not ranks <= set(group.ranks) or group.size % parts:
        raise ValueError(
            f"clip_grad_norm_: expected a group of all ranks that have parts of the parameters, {sorted(ranks)} among "
            f"them, got {list(group.ranks)}"
        )
    return group.size // parts
