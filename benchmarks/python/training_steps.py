# SPDX-License-Identifier: Apache-2.0
"""Whole training steps, Tenon against PyTorch where it is installed.

    python training_steps.py [--threads 1] [--rounds 21] [--only mlp]

The two frameworks take turns in one process, so that a machine whose clock changes slows both down.
Compare the ratio; the times tell you about the machine of the day.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import tenon
from tenon import nn, optim

try:
    import torch
except ImportError:
    torch = None

Step = Callable[[], object]


def mlp(n) -> object:
    return n.Sequential(n.Linear(784, 256), n.ReLU(), n.Linear(256, 10))


def lenet(n) -> object:
    return n.Sequential(
        n.Conv2d(1, 6, 5, padding=2),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Conv2d(6, 16, 5),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Flatten(),
        n.Linear(400, 120),
        n.ReLU(),
        n.Linear(120, 84),
        n.ReLU(),
        n.Linear(84, 10),
    )


def training(framework, modules, optimizers, build, name: str, rate: float, x, labels) -> Step:
    model = build(modules)
    optimizer = getattr(optimizers, name)(model.parameters(), lr=rate)
    loss_function = modules.CrossEntropyLoss()
    x, labels = framework.tensor(x), framework.tensor(labels)

    def step() -> None:
        loss = loss_function(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def inference(framework, modules, build, x) -> Step:
    model = build(modules).eval()
    x = framework.tensor(x)

    def step() -> None:
        with framework.no_grad():
            model(x)

    return step


def cases(framework, modules, optimizers) -> dict[str, Step]:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(64, 784)).astype(np.float32)
    images = flat.reshape(64, 1, 28, 28)
    labels = rng.integers(0, 10, 64)

    def train(build, name, rate, x):
        return training(framework, modules, optimizers, build, name, rate, x, labels[: len(x)])

    return {
        "mlp b64 train SGD": train(mlp, "SGD", 0.01, flat),
        "mlp b64 train Adam": train(mlp, "Adam", 1e-3, flat),
        "mlp b64 forward": inference(framework, modules, mlp, flat),
        "mlp b1 train SGD": train(mlp, "SGD", 0.01, flat[:1]),
        "mlp b1 forward": inference(framework, modules, mlp, flat[:1]),
        "lenet b64 train SGD": train(lenet, "SGD", 0.01, images),
        "lenet b64 forward": inference(framework, modules, lenet, images),
    }


def milliseconds(step: Step, repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        step()
    return (time.perf_counter() - begin) * 1e3 / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21, help="turns of each framework")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", help="write the times, in milliseconds, to this file")
    options = parser.parse_args()
    tenon.set_num_threads(options.threads)
    if torch:
        torch.set_num_threads(options.threads)
        peers = cases(torch, torch.nn, torch.optim)
    else:
        print("PyTorch is not installed: no ratios")

    results = {}
    print(f"{'ms per step, best / median':24}{'tenon':>16}{'torch':>18}{'ratio':>16}")
    for name, ours in cases(tenon, nn, optim).items():
        if options.only not in name:
            continue
        milliseconds(ours, 3)
        repeats = max(1, int(20 / milliseconds(ours, 3)))  # about 20 ms a turn
        times: list[list[float]] = [[], []]
        for _ in range(options.rounds):
            times[0].append(milliseconds(ours, repeats))
            if torch:
                times[1].append(milliseconds(peers[name], repeats))
        results[name] = dict(zip(("tenon", "torch"), times))
        text = f"{name:24}{min(times[0]):8.3f} /{statistics.median(times[0]):7.3f}"
        if torch:
            ratio = statistics.median(a / b for a, b in zip(*times))
            text += f"{min(times[1]):9.3f} /{statistics.median(times[1]):7.3f}"
            text += f"{min(times[0]) / min(times[1]):8.2f} /{ratio:6.2f}"
        print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
