# SPDX-License-Identifier: Apache-2.0
"""Steps of the models of examples/ beside the same models in PyTorch.

    python examples.py [--threads 1] [--quick] [--only gpt] [--curves]

Each library starts from the same weights and sees the same batches. Before anything is timed, the
losses of the first steps of both are compared; `--curves` prints them. Batches are made here and
repeat after some steps, so that losses fall as they do in the examples.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import itertools
import sys
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _libraries import Built, Case, as_array, measure
from _report import Report, parser

EXAMPLES = Path(__file__).parents[2] / "examples"
BATCHES, STEPS = 4, 30


@dataclasses.dataclass(frozen=True)
class Workload:
    script: str
    model: str
    settings: tuple[int, ...]
    batch: Callable[[np.random.Generator], list[np.ndarray]]
    optimizer: str
    options: dict


def digits(rng: np.random.Generator) -> list[np.ndarray]:
    """Noise around ten pictures."""
    labels = rng.integers(0, 10, 64)
    pictures = np.random.default_rng(5).normal(size=(10, 1, 8, 8))
    images = pictures[labels] + 0.3 * rng.normal(size=(64, 1, 8, 8))
    return [images.astype(np.float32), labels]


def characters(rng: np.random.Generator) -> list[np.ndarray]:
    """Numbers that follow one another in one of three strides."""
    start, stride = rng.integers(0, 96, (32, 1)), rng.integers(1, 4, (32, 1))
    text = (start + stride * np.arange(65)) % 96
    return [text[:, :-1].copy(), text[:, 1:].copy()]


def sequences(rng: np.random.Generator) -> list[np.ndarray]:
    """Words of which each class has its own."""
    labels = rng.integers(0, 6, 32)
    words = labels[:, None] * 500 + rng.integers(0, 500, (32, 48))
    return [words, rng.integers(8, 49, 32), labels]


def images_and_noise(rng: np.random.Generator) -> list[np.ndarray]:
    images, _ = digits(rng)
    ink = (1 / (1 + np.exp(-images))).reshape(64, 64)
    return [ink, rng.normal(size=(64, 8)).astype(np.float32)]


def diffused(rng: np.random.Generator) -> list[np.ndarray]:
    images, labels = digits(rng)
    noise = rng.normal(size=images.shape).astype(np.float32)
    return [np.tanh(images), labels, rng.uniform(size=64).astype(np.float32), noise]


def club(rng: np.random.Generator) -> list[np.ndarray]:
    """A graph of the size of the karate club."""
    edges = rng.integers(0, 34, (2, 156))
    return [np.eye(34, dtype=np.float32), edges, np.array([0, 33]), np.array([0, 1])]


def neighbourhood(rng: np.random.Generator) -> list[np.ndarray]:
    """A part of a graph, of the size of what is sampled around 64 nodes."""
    edges = rng.integers(0, 4000, (2, 6600))
    y = rng.integers(0, 6, 64)
    return [rng.normal(size=(4000, 16)).astype(np.float32), edges, np.arange(64), y]


WORKLOADS = {
    "classify_digits b64": Workload(
        "classify_digits", "ResidualNetwork", (), digits, "AdamW", {"lr": 1e-3}
    ),
    "character_gpt b32 t64": Workload(
        "character_gpt", "GPT", (96,), characters, "AdamW", {"lr": 1e-3, "weight_decay": 0.1}
    ),
    "lstm_modules b32 t48": Workload(
        "lstm_modules", "Classifier", (3000, 6), sequences, "Adam", {"lr": 1e-3}
    ),
    "vae_digits b64": Workload("vae_digits", "VAE", (), images_and_noise, "Adam", {"lr": 1e-3}),
    "graph_network karate": Workload(
        "graph_network", "GCN", (34, 16, 2), club, "Adam", {"lr": 0.01, "weight_decay": 5e-4}
    ),
    "graph_network sampled": Workload(
        "graph_network", "SampledNetwork", (16, 32, 6), neighbourhood, "Adam", {"lr": 0.01}
    ),
    "diffusion_digits b64": Workload(
        "diffusion_digits", "UNet", (), diffused, "AdamW", {"lr": 1e-3}
    ),
}


def module_of(library: str, script: str):
    """An example, or the same for PyTorch."""
    if library == "tenon":
        sys.path.insert(0, str(EXAMPLES))
        return importlib.import_module(script)
    return importlib.import_module(f"examples_in_torch.{script}")


def starts(work: Workload) -> dict[str, np.ndarray]:
    """Every parameter's first value: those that the example draws."""
    import tenon

    tenon.manual_seed(1)
    model = getattr(module_of("tenon", work.script), work.model)(*work.settings)
    return {name: value.detach().numpy() for name, value in model.named_parameters()}


def training_step(library: str, work: Workload) -> Callable:
    """A function that takes one step after another and returns the loss before each."""
    values = starts(work)
    module, script = importlib.import_module(library), module_of(library, work.script)
    model = getattr(script, work.model)(*work.settings)
    # The scripts of PyTorch import tenon for these values alone.
    for name, parameter in model.named_parameters():
        parameter.data = module.tensor(values.pop(name))
    assert not values, f"{work.script} lacks {list(values)} in {library}"
    for each in model.modules():
        if type(each).__name__ == "Dropout":  # its random numbers differ
            each.p = 0.0
    optim = importlib.import_module(f"{library}.optim")
    optimizer = getattr(optim, work.optimizer)(model.parameters(), **work.options)
    rng = np.random.default_rng(0)
    batches = itertools.cycle(
        [[module.tensor(each) for each in work.batch(rng)] for _ in range(BATCHES)]
    )

    def step():
        loss = script.loss_of(model, *next(batches))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def build(library: str, case: Case, options: argparse.Namespace) -> Built | None:
    if library not in ("tenon", "torch"):
        return None
    step = training_step(library, WORKLOADS[case.name])
    return Built(timeit.Timer(step), lambda: [step() for _ in range(STEPS)])


def print_curves(names: list[str], libraries: list[str]) -> None:
    for name in names:
        print(name)
        for library in libraries:
            step = training_step(library, WORKLOADS[name])
            losses = [float(as_array(step())) for _ in range(STEPS)]
            shown = [0, 1, 2, 4, 9, 19, STEPS - 1]
            print(f"  {library:6}" + "".join(f"{losses[i]:10.5f}" for i in shown))


def main() -> None:
    arguments = parser(__doc__, peers=("torch",))
    arguments.add_argument("--curves", action="store_true", help="print losses, measure nothing")
    options = arguments.parse_args()
    report = Report("examples", options)
    names = [name for name in WORKLOADS if report.selects(name)]
    if options.curves:
        print_curves(names, list(report.columns))
        return
    group = f"{options.threads} thread" + "s" * (options.threads > 1)
    measure([Case(name, group, tolerance=5e-3) for name in names], build, options, report)
    report.close()


if __name__ == "__main__":
    main()
