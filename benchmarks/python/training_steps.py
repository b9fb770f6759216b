# SPDX-License-Identifier: Apache-2.0
"""Whole training steps: forward, backward, update; and the memory they take.

    python training_steps.py [--threads 1] [--quick] [--only mlp] [--memory]

Each library is in a process of its own and starts from the same weights; the losses of the first
steps are compared before anything is timed. Steps with "autocast" are in mixed precision,
bfloat16. JAX runs a step that it has compiled whole, ONNX Runtime forward passes only. With
`--memory`, the figures are how many MiB the resident size of a fresh process grows at most during
three steps, model and data not counted.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import timeit
from collections.abc import Callable

import _training_models as models
import numpy as np
from _libraries import Built, Case, measure
from _report import Report, parser
from _training_memory import growth

CHECKED_STEPS = 3
# How each library takes a step.
STEPS = {
    "tenon": "_training_modules",
    "torch": "_training_modules",
    "paddle": "_training_paddle",
    "jax": "_training_jax",
    "onnxruntime": "_training_onnxruntime",
}


@dataclasses.dataclass(frozen=True)
class Workload:
    model: Callable
    x: tuple[int, ...]
    target: tuple[int, ...] | int  # a shape, or the number of classes
    optimizer: str = "SGD"
    options: dict = dataclasses.field(default_factory=lambda: {"lr": 0.01})
    trains: bool = True
    autocast: bool = False  # mixed precision in bfloat16: Tenon and PyTorch


_MOMENTUM = {"lr": 0.001, "momentum": 0.9}
SMALL = {
    "mlp b64 train SGD": Workload(models.mlp, (64, 784), 10),
    "mlp b64 train Adam": Workload(models.mlp, (64, 784), 10, "Adam", {"lr": 1e-3}),
    "mlp b64 train Adam autocast": Workload(
        models.mlp, (64, 784), 10, "Adam", {"lr": 1e-3}, autocast=True
    ),
    "mlp b64 forward": Workload(models.mlp, (64, 784), 10, trains=False),
    "mlp b1 train SGD": Workload(models.mlp, (1, 784), 10),
    "mlp b1 forward": Workload(models.mlp, (1, 784), 10, trains=False),
    "lenet b64 train SGD": Workload(models.lenet, (64, 1, 28, 28), 10),
    "lenet b64 forward": Workload(models.lenet, (64, 1, 28, 28), 10, trains=False),
    "lstm h128 t32 b32 train Adam": Workload(models.lstm, (32, 32, 128), 10, "Adam", {"lr": 1e-3}),
    "lstm h128 t32 b32 forward": Workload(models.lstm, (32, 32, 128), 10, trains=False),
}
LARGE = {
    "gpt2 block t256 b4 train AdamW": Workload(
        models.gpt2_block, (4, 256, 768), (4, 256, 768), "AdamW", {"lr": 1e-4}
    ),
    "gpt2 block t256 b4 train AdamW autocast": Workload(
        models.gpt2_block, (4, 256, 768), (4, 256, 768), "AdamW", {"lr": 1e-4}, autocast=True
    ),
    "gpt2 block t256 b4 forward": Workload(
        models.gpt2_block, (4, 256, 768), (4, 256, 768), trains=False
    ),
    "resnet18 b8 forward": Workload(models.resnet18, (8, 3, 224, 224), 1000, trains=False),
    "resnet18 b8 train momentum": Workload(
        models.resnet18, (8, 3, 224, 224), 1000, "SGD", _MOMENTUM
    ),
    "resnet18 b8 train momentum autocast": Workload(
        models.resnet18, (8, 3, 224, 224), 1000, "SGD", _MOMENTUM, autocast=True
    ),
}
LARGE_ROUNDS = 7


def data(work: Workload) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=work.x).astype(np.float32)
    if isinstance(work.target, int):
        batch = work.x[1] if work.model is models.lstm else work.x[0]
        return x, rng.integers(0, work.target, batch)
    return x, rng.normal(size=work.target).astype(np.float32)


def weight(shape: tuple[int, ...], is_scale: bool, rng: np.random.Generator) -> np.ndarray:
    """The same start for every library."""
    if len(shape) == 1:
        return np.full(shape, 1.0 if is_scale else 0.0, np.float32)
    fan_in = int(np.prod(shape[1:]))
    return (rng.normal(size=shape) / np.sqrt(fan_in)).astype(np.float32)


def starts(work: Workload) -> dict[str, np.ndarray]:
    """Every parameter's first value, the same for all libraries, under Tenon's names."""
    rng = np.random.default_rng(1)
    model = work.model(importlib.import_module("tenon.nn"))
    return {
        name: weight(tuple(parameter.shape), name.endswith("weight"), rng)
        for name, parameter in model.named_parameters()
    }


def training_step(library: str, name: str) -> Callable | None:
    work = (SMALL | LARGE)[name]
    if work.autocast and STEPS[library] != "_training_modules":
        return None
    kind = importlib.import_module(STEPS[library])
    return kind.training_step(library, work, starts(work), *data(work))


def forward_step(library: str, name: str, threads: int) -> Callable:
    work = (SMALL | LARGE)[name]
    kind = importlib.import_module(STEPS[library])
    return kind.forward_step(library, work, starts(work), data(work)[0], threads)


def build(library: str, case: Case, options) -> Built | None:
    if (SMALL | LARGE)[case.name].trains:
        step = training_step(library, case.name)
    else:
        step = forward_step(library, case.name, options.threads)
    return step and Built(timeit.Timer(step), lambda: [step() for _ in range(CHECKED_STEPS)])


def main() -> None:
    arguments = parser(__doc__, peers=tuple(STEPS)[1:])
    arguments.add_argument("--memory", action="store_true", help="measure memory, not time")
    options = arguments.parse_args()
    few = copy.copy(options)
    few.rounds = 3 if options.quick else min(options.rounds, LARGE_ROUNDS)
    report = Report("training_memory" if options.memory else "training_steps", options)
    group = f"{options.threads} thread" + "s" * (options.threads > 1)
    for works, settings in ((SMALL, options), (LARGE, few)):
        names = [name for name, work in works.items() if report.selects(name)]
        if options.memory:
            for name in filter(lambda name: works[name].trains, names):
                grown = {
                    each: growth(each, name, options.threads)
                    for each in report.columns
                    if each != "onnxruntime"
                }
                report.figures(name, grown, "MiB", group=group)
        elif names:
            cases = [
                Case(name, group, tolerance=2e-2 if works[name].autocast else 2e-3)
                for name in names
            ]
            measure(cases, build, settings, report)
    report.close()


if __name__ == "__main__":
    main()
