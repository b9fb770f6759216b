# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tenon") beside PyTorch in eager and beside Inductor.

    python torch_compile.py [--threads 1] [--rounds 21] [--only mlp] [--json results.json]

All three are PyTorch's modules, tensors and optimisers in one process, with the same weights; what differs is who runs the
forward and the backward graph. Inductor needs a C++ compiler. Results, losses and gradients are compared before anything is
timed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import _training_models as models
import tenon
import torch
from _protocol import interleave
from _report import Report, parser

TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}


@dataclasses.dataclass(frozen=True)
class Workload:
    model: Callable
    x: tuple[int, ...]
    target: tuple[int, ...] | int  # a shape, or the number of classes


CASES = {
    "mlp b64": Workload(models.mlp, (64, 784), 10),
    "gpt2 block t64 b2": Workload(models.gpt2_block, (2, 64, 768), (2, 64, 768)),
    "resnet18 b2 64x64": Workload(models.resnet18, (2, 3, 64, 64), 1000),
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


def main() -> None:
    options = parser(__doc__).parse_args()
    torch.set_num_threads(options.threads)
    tenon.set_num_threads(options.threads)
    report = Report("torch_compile", options, ["tenon", "eager", "inductor"])
    rounds = min(options.rounds, 7) if options.quick else options.rounds
    for name, work in CASES.items():
        for group, make in WAYS.items():
            if not report.selects(name, group):
                continue
            torch.manual_seed(0)
            torch._dynamo.reset()
            x = torch.randn(work.x)
            classes = isinstance(work.target, int)
            target = (
                torch.randint(0, work.target, work.x[:1]) if classes else torch.randn(work.target)
            )
            made = contestants(work.model(torch.nn))
            calls = {key: make(*each, x, target) for key, each in made.items()}
            expected = calls["eager"]()
            for key, call in calls.items():
                if key != "eager":
                    torch.testing.assert_close(call(), expected, **TOLERANCE)
            report.add(name, interleave(calls, rounds), group, threads=options.threads)
    report.close()


if __name__ == "__main__":
    main()
