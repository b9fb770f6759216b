# SPDX-License-Identifier: Apache-2.0
"""What recording costs for each operator, and what finding a known program costs for each call.

    python recording.py [--only gradients] [--rounds 100] [--json results.json]

Chains of small operators (a product, a sum with a row, a sum of all, a product with a number) run as they are and while they are recorded; the
difference, divided by the steps of the program, is the price of an operator. `layer` is that of a recording that is suspended: the way through
a layer that records nothing. `settled` and `optimized` are what tenon.compile adds once two recordings are there. Calls: the compiled
function beside the plain one and beside the program alone. All figures are the least of short turns: they say what the code costs on a
machine that does other things, too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core, nn
from tenon.nn import functional as F

LENGTHS = (10, 100, 1000)
PASSES = "dce,cse,rewrites,copies,views"


def least(call: Callable, rounds: int) -> float:
    """Nanoseconds of a call: the least of turns that are shorter than what a scheduler gives at once."""
    call()
    begin = time.perf_counter()
    call()
    count = max(1, int(2e-4 / (time.perf_counter() - begin)))
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - begin) / count)
    return best * 1e9


def chain(count: int) -> Callable:
    weight, row = tenon.ones(4, 4) * 0.1, tenon.ones(4)

    def function(x: tenon.Tensor) -> tenon.Tensor:
        for step in range(count):
            kind = step % 4
            if kind == 0:
                x = x @ weight
            elif kind == 1:
                x = x + row
            elif kind == 2:
                total = x.sum()
            else:
                x = x * total
        return x

    return function


def with_gradients(forward: Callable) -> Callable:
    def function(x: tenon.Tensor) -> tenon.Tensor:
        x.grad = None
        loss = forward(x).sum()
        loss.backward()
        return loss

    return function


def record(function: Callable, x: tenon.Tensor) -> Any:
    return tenon.jit.program._record(function, (x,), [x])[0]


def suspended(function: Callable, x: tenon.Tensor) -> None:
    recording = _core.Recording([x], tenon.jit.program.PACKAGE)
    try:
        _core.record_suspend()
        function(x)
    finally:
        recording.abandon()


def recording_turns(count: int, gradients: bool) -> tuple[dict[str, Callable], int]:
    """What is timed, and the steps of the program."""
    x, function = tenon.ones(4, 4), chain(count)
    if gradients:
        x.requires_grad_()
        function = with_gradients(function)
    first, second = record(function, x), record(function, x)
    settled = first.settle(second)
    turns = {
        "function": lambda: function(x),
        "layer": lambda: suspended(function, x),
        "recorded": lambda: record(function, x),
        "settled": lambda: first.settle(second),
        "optimized": lambda: settled.optimize(PASSES),
    }
    return turns, second.nsteps


def compare_recordings(options: argparse.Namespace) -> list[dict[str, Any]]:
    results = []
    print("| chain | steps | function | layer | recorded | settled | optimized |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count, gradients in itertools.product(LENGTHS, (False, True)):
        name = f"{count} operators" + (" with gradients" if gradients else "")
        if options.only not in name:
            continue
        turns, steps = recording_turns(count, gradients)
        each = {who: least(turn, options.rounds) / steps for who, turn in turns.items()}
        each["recorded"] -= each["function"]
        each["layer"] -= each["function"]
        results.append({"case": name, "steps": steps, "nanoseconds": each})
        shown = " | ".join(f"{each[who]:.0f} ns" for who in turns)
        print(f"| {name} | {steps} | {shown} |", flush=True)
    return results


def training_step(width: int, batch: int) -> tuple[Callable, tuple[tenon.Tensor, ...]]:
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    optimizer = tenon.optim.SGD(model.parameters(), lr=1e-3)

    def step(x: tenon.Tensor, target: tenon.Tensor) -> tenon.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step, (tenon.ones(batch, width), tenon.zeros(batch, width))


def calls() -> dict[str, tuple[Callable, tuple[tenon.Tensor, ...], bool]]:
    x, y = tenon.ones(4), tenon.ones(4)
    mlp = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    step, arguments = training_step(8, 4)
    return {
        "x + 1": (lambda x: x + 1, (x,), False),
        "sqrt(x + y)": (lambda x, y: tenon.sqrt(x + y), (x, y), False),
        "x + 1, x * 2": (lambda x: (x + 1, x * 2), (x,), False),
        "mlp 8 forward": (mlp, (tenon.ones(4, 8),), False),
        "mlp 8 train": (step, arguments, True),
    }


def call_turns(name: str, function: Callable, arguments: tuple) -> dict[str, Callable]:
    compiled = tenon.compile(function)
    for _ in range(50):  # small groups get machine code at the 32nd run
        compiled(*arguments)
    if not compiled.programs:
        raise RuntimeError(f"{name}: {compiled.explain()}")
    run = compiled.programs[0]._run
    return {
        "function": lambda: function(*arguments),
        "compiled": lambda: compiled(*arguments),
        "program": lambda: run(arguments),
    }


def compare_calls(options: argparse.Namespace) -> list[dict[str, Any]]:
    results = []
    print("\n| call | function | compiled | program alone |")
    print("| --- | --- | --- | --- |")
    for name, (function, arguments, trains) in calls().items():
        if options.only not in name:
            continue
        with tenon.set_grad_enabled(trains):
            turns = call_turns(name, function, arguments)
            each = {who: least(turn, options.rounds) for who, turn in turns.items()}
        results.append({"case": name, "nanoseconds": each})
        shown = " | ".join(f"{each[who]:.0f} ns" for who in turns)
        print(f"| {name} | {shown} |", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    tenon.set_num_threads(1)
    results = {"recordings": compare_recordings(options), "calls": compare_calls(options)}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
