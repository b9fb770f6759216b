# SPDX-License-Identifier: Apache-2.0
"""Programs (tenon.export) beside the functions that they were recorded from, in turns in one process.

    python programs.py [--only train] [--threads 1] [--rounds 11] [--json results.json]

A ratio below 1 is faster than the function. The rows `recording` are the time for one recording beside one
call of the function.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable

import tenon
from _protocol import Times, interleave
from tenon import nn
from tenon.nn import functional as F


def chain(count: int) -> Callable:
    def function(x: tenon.Tensor) -> tenon.Tensor:
        for _ in range(count):
            x = x + 1.0
        return x

    return function


def mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def train(model: nn.Module) -> Callable:
    optimizer = tenon.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step(x: tenon.Tensor, target: tenon.Tensor) -> tenon.Tensor:
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def cases() -> Iterable[tuple[str, Callable, tuple[tenon.Tensor, ...], bool]]:
    """Name, function, arguments, and whether gradients are on."""
    for count in (1, 100):
        yield f"{count} additions", chain(count), (tenon.ones(1),), False
    for width, batch in ((8, 4), (64, 16), (512, 64)):
        x = tenon.randn((batch, width))
        yield f"mlp {width} forward", mlp(width), (x,), False
        yield f"mlp {width} train", train(mlp(width)), (x, tenon.zeros_like(x)), True
    x = tenon.randn((4, 32, 64))
    block = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    yield "transformer layer 64 train", train(block), (x, tenon.zeros_like(x)), True


def compare(function: Callable, arguments: tuple[tenon.Tensor, ...], rounds: int) -> Times:
    program = tenon.export(function, arguments)
    turns = {
        "program": lambda: program(*arguments),
        "function": lambda: function(*arguments),
        "recording": lambda: tenon.jit._record(function, arguments, list(arguments)),
    }
    return interleave(turns, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    tenon.set_num_threads(options.threads)
    results = []
    print("| case | function | program | program / function | recording / function |")
    print("| --- | --- | --- | --- | --- |")
    for name, function, arguments, is_training in cases():
        if options.only not in name:
            continue
        with tenon.set_grad_enabled(is_training):
            times = compare(function, arguments, options.rounds)
        ratio = times.ratio("function")
        recording = times.between("recording", "function").ratio("function")
        results.append({"case": name, "ratio": ratio, "recording": recording})
        results[-1].update({who: times.median(who) for who in ("function", "program")})
        print(
            f"| {name} | {times.median('function') * 1e6:.2f} us | {times.median() * 1e6:.2f} us "
            f"| {ratio:.2f} | {recording:.1f} |{'' if times.clean else ' *'}",
            flush=True,
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"threads": options.threads, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
