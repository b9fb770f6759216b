# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tenon") beside PyTorch in eager and beside Inductor.

    python torch_compile.py [--threads 1] [--rounds 21] [--only mlp] [--first] [--json results.json]

All three are PyTorch's modules, tensors and optimisers in one process, with the same weights; what differs is who runs the
forward and the backward graph. Inductor needs a C++ compiler. Results and losses are compared before anything is timed. The last
lines have the means over the models. `--first` tells of the first call of each, too, compilation included, and turns Inductor's
caches off for it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable

import _compiled_models as compiled
import _training_models as models
import tenon
import torch
from _protocol import Times, interleave
from _report import Report, parser

TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}


@dataclasses.dataclass(frozen=True)
class Workload:
    model: Callable
    x: tuple[int, ...]
    target: tuple[int, ...] | int  # a shape, or the number of classes
    words: int = 0  # the input has whole numbers below this
    targets: int = 0  # for classes: how many, where there is more than one for each of the batch


CASES = {
    "mlp b64": Workload(models.mlp, (64, 784), 10),
    "lenet b32 28x28": Workload(models.lenet, (32, 1, 28, 28), 10),
    "convolutions b8 32x32": Workload(compiled.convolutions, (8, 3, 32, 32), 10),
    "depthwise b4 64x64": Workload(compiled.depthwise, (4, 3, 64, 64), 100),
    "resnet18 b2 64x64": Workload(models.resnet18, (2, 3, 64, 64), 1000),
    "unet b1 64x64": Workload(compiled.unet, (1, 3, 64, 64), (1, 3, 64, 64)),
    "gpt2 block t64 b2": Workload(models.gpt2_block, (2, 64, 768), (2, 64, 768)),
    "gpt 4x256 t64 b2": Workload(compiled.gpt, (2, 64), 1000, words=1000, targets=128),
    "bert 2x64 t32 b8": Workload(compiled.bert, (8, 32), 3, words=1000),
    "vit 4x192 b4 64x64": Workload(compiled.vit, (4, 3, 64, 64), 100),
    "mixer 4x128 b4 64x64": Workload(compiled.mixer, (4, 3, 64, 64), 100),
    "recommender b256": Workload(compiled.recommender, (256, 8), 2, words=1000),
}


def contestants(model) -> dict[str, tuple]:
    """A module of its own and what calls it, for each way."""
    made = {}
    for name, backend in (
        ("tenon", tenon.torch.backend),
        ("eager", None),
        ("inductor", "inductor"),
    ):
        module = copy.deepcopy(model)
        step = module if backend is None else torch.compile(module, backend=backend)
        made[name] = (module, step)
    return made


def forward(module, step, x, _target) -> Callable:
    module.eval()

    def call():
        with torch.no_grad():
            return step(x)

    return call


def train(module, step, x, target) -> Callable:
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    loss_of = torch.nn.MSELoss() if target.is_floating_point() else torch.nn.CrossEntropyLoss()

    def call():
        optimizer.zero_grad()
        loss = loss_of(step(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return call


WAYS: dict[str, Callable] = {"forward": forward, "training step, SGD": train}


def inputs(work: Workload) -> tuple:
    """What the model gets, and what its result is compared with."""
    x = torch.randint(0, work.words, work.x) if work.words else torch.randn(work.x)
    if isinstance(work.target, int):
        return x, torch.randint(0, work.target, (work.targets or work.x[0],))
    return x, torch.randn(work.target)


def mean(ratios: list[float]) -> float:
    """The geometric one, which is the same whichever is divided by which."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--first", action="store_true", help="first calls, too, with compilation")
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    tenon.set_num_threads(options.threads)
    if options.first:
        from torch._inductor import config

        config.force_disable_caches = True
        # PyTorch itself and what it imports to compile come first.
        for each in (tenon.torch.backend, "inductor"):
            torch.compile(torch.nn.Linear(1, 1), backend=each)(torch.ones(1)).sum().backward()
    report = Report("torch_compile", options, ["tenon", "eager", "inductor"])
    rounds = min(options.rounds, 7) if options.quick else options.rounds
    found: dict[str, dict[str, Times]] = {group: {} for group in WAYS}
    for group, make in WAYS.items():
        first: dict[str, Times] = {}
        for name, work in CASES.items():
            if not report.selects(name, group):
                continue
            torch.manual_seed(0)
            torch._dynamo.reset()
            x, target = inputs(work)
            made = contestants(work.model(torch.nn))
            calls = {key: make(*each, x, target) for key, each in made.items()}
            expected, seconds = {}, {}
            for key, call in calls.items():
                begin = time.perf_counter()
                expected[key] = call()
                seconds[key] = [time.perf_counter() - begin]
            for key in ("tenon", "inductor"):
                torch.testing.assert_close(expected[key], expected["eager"], **TOLERANCE)
            if options.first:
                first[name] = Times(seconds, clean=True, foreign=0.0)
                report.add(name, first[name], f"{group}, first call", threads=options.threads)
            found[group][name] = interleave(calls, rounds)
            report.add(name, found[group][name], group, threads=options.threads)
        if first:
            found[f"{group}, first call"] = first
    report.close()
    for group, each in found.items():
        for peer in ("eager", "inductor"):
            ratios = {name: times.ratio(peer) for name, times in each.items()}
            if ratios:
                worst = max(ratios, key=lambda name: ratios[name])
                print(
                    f"{group}: {len(ratios)} models, mean {mean(list(ratios.values())):.2f} of {peer}, "
                    f"at most {ratios[worst]:.2f} ({worst})"
                )


if __name__ == "__main__":
    main()
