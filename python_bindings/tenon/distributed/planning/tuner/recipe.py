# SPDX-License-Identifier: Apache-2.0
"""What a tuner has to know of a training program, and a way of dividing it over ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tenon import Tensor
from tenon.nn import Module
from tenon.optim import AdamW

from ...context import ContextParallel
from ...group import ProcessGroup
from ...mesh import DeviceMesh, init_device_mesh
from ...tensor_parallel import ParallelStyle


@dataclasses.dataclass(frozen=True)
class Config:
    """A way of dividing a step: its product `dp * cp * tp * pp` is the number of ranks; `ep` is a part of `dp`."""

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    zero: int = 0
    sp: bool = False
    schedule: str = ""  # of pipelines
    chunks: int = 1
    microbatches: int = 1
    recompute: bool = False

    @property
    def ranks(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    def __str__(self) -> str:
        """What differs from one rank that does all."""
        parts = [f"{name}={getattr(self, name)}" for name in ("dp", "tp", "pp", "cp", "ep")]
        parts = [part for part in parts if not part.endswith("=1")]
        parts += [f"zero={self.zero}"] if self.zero else []
        parts += ["sp"] if self.sp else []
        parts += [self.schedule] if self.schedule else []
        parts += [f"v={self.chunks}"] if self.chunks > 1 else []
        parts += [f"m={self.microbatches}"] if self.microbatches > 1 else []
        parts += ["recompute"] if self.recompute else []
        return " ".join(parts) or "one rank"


@dataclasses.dataclass
class Recipe:
    """A training program that a tuner can divide.

        def recipe():
            return dist.Recipe(
                model=lambda layout: gpt(...), batch=lambda rows, layout: (tokens(rows), targets(rows)), loss=loss_of,
                rows=64, tensor_parallel=PLAN, units="blocks.*", divides={"tp": HEADS})

    `model(layout)` makes the model, a Sequential where pipelines are tried; `batch(rows, layout)` what one rank is given of so
    many rows, `loss(output, target)` their mean. `rows` is the batch of all ranks. `units` names the modules that fully_shard
    gathers, and that are computed again. `tensor_parallel` and `sequence_parallel` are plans of parallelize_module. `divides`
    says what an axis has to divide: {"tp": heads, "cp": length, "ep": experts}; cp and ep are tried where it names them, and
    the model then uses `layout.context` or `layout.experts` and `layout.replicas`.
    """

    model: Callable[[Layout], Module]
    batch: Callable[[int, Layout], tuple[Tensor, Tensor]]
    loss: Callable[[Tensor, Tensor], Tensor]
    rows: int
    optimizer: type = AdamW
    optimizer_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tensor_parallel: dict[str, ParallelStyle] | None = None
    sequence_parallel: dict[str, ParallelStyle] | None = None
    units: str | None = None
    divides: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def plan(self, config: Config) -> dict[str, ParallelStyle] | None:
        return self.sequence_parallel if config.sp else self.tensor_parallel


class Layout:
    """Of one rank: the groups of a Config. `mesh` has the axes pp, dp (with cp) and tp."""

    mesh: DeviceMesh

    def __init__(self, config: Config, with_pipeline: bool = True) -> None:
        self.config = config
        pp = config.pp if with_pipeline else 1
        names = ("pp", "dp", "tp")
        sizes = (pp, config.dp * config.cp, config.tp)
        self.mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        self.data: ProcessGroup = self.mesh.get_group("dp")  # of batch shards
        self.context: ContextParallel | None = None
        self.experts: ProcessGroup | None = None
        self.replicas: ProcessGroup | None = None
        if config.cp > 1:
            shape = (pp, config.dp, config.cp, config.tp)
            mesh = init_device_mesh("cpu", shape, mesh_dim_names=("pp", "rows", "cp", "tp"))
            self.context = ContextParallel(mesh.get_group("cp"))
        if config.ep > 1:
            shape = (pp, config.dp // config.ep, config.ep, config.tp)
            mesh = init_device_mesh("cpu", shape, mesh_dim_names=("pp", "replicas", "ep", "tp"))
            self.experts, self.replicas = mesh.get_group("ep"), mesh.get_group("replicas")
