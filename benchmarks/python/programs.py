# SPDX-License-Identifier: Apache-2.0
"""Programs (tenon.export) beside the functions that they were recorded from, in turns in one process.

    python programs.py [--only train] [--threads 1] [--rounds 11] [--inductor] [--json results.json]

A ratio below 1 is faster than the function. The rows `recording` are the time for one recording beside one
call of the function. Chains of elementwise operators are also compiled by JAX and run by PyTorch, where these are
installed, and with --inductor compiled by it, too, which takes some ten seconds each; those results have to be equal to 1e-5. Whole training steps and forward passes are compiled by tenon.compile and
by JAX, and run as they are by Tenon and PyTorch, forward passes of small models also by ONNX Runtime; the losses of the
first steps, or the results, have to agree.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import types
from collections.abc import Callable, Iterable
from typing import Any

import _blocks_by_hand
import numpy as np
import tenon
import training_steps
from _protocol import Times, interleave
from tenon import nn
from tenon.nn import functional as F

try:
    import jax
except ImportError:
    jax = None
try:
    import torch
except ImportError:
    torch = None
try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def chain(count: int) -> Callable:
    def function(x: tenon.Tensor) -> tenon.Tensor:
        for _ in range(count):
            x = x + 1.0
        return x

    return function


# Chains of elementwise operators. Each takes a namespace of functions, so that every library runs the same text.
def gelu(m: Any, x: Any, y: Any) -> Any:
    return x * 0.5 * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) * y


def gelu_of_erf(m: Any, x: Any, y: Any) -> Any:
    return x * 0.5 * (1 + m.erf(x * 0.7071067811865476)) * y


def softened(m: Any, x: Any, y: Any) -> Any:
    return m.exp(-x * x) * m.tanh(y * 2 + 1) + m.erf(x - y)


def polynomial(m: Any, x: Any, y: Any) -> Any:
    return ((((x * 2 + 1) * x + 3) * x + 4) * x + 5) * x + y


def two_steps(m: Any, x: Any, y: Any) -> Any:
    return m.sqrt(x + y)


ELEMENTWISE = {
    "gelu of 9 steps": gelu,
    "gelu of erf": gelu_of_erf,
    "exp, tanh and erf": softened,
    "polynomial of 10 steps": polynomial,
    "2 steps": two_steps,
}
SIZES = (20_000, 1_000_000, 10_000_000)


def functions_of_jax() -> Any:
    names = {name: getattr(jax.numpy, name) for name in ("exp", "tanh", "sqrt")}
    return types.SimpleNamespace(**names, erf=jax.scipy.special.erf)


def compare_chain(
    chain: Callable, size: int, rounds: int, has_inductor: bool
) -> tuple[dict[str, Callable], Times]:
    """Turns of every library, each of about 2 ms."""
    x, y = tenon.rand([size]) + 0.5, tenon.rand([size]) + 0.5
    program = tenon.export(lambda x, y: chain(tenon, x, y), (x, y))
    turns = {"program": lambda: program(x, y), "function": lambda: chain(tenon, x, y)}
    if jax is not None:
        operands = [jax.numpy.asarray(t.numpy()) for t in (x, y)]
        compiled = jax.jit(lambda x, y: chain(functions_of_jax(), x, y))
        turns["jax"] = lambda: compiled(*operands).block_until_ready()
    if torch is not None:
        tensors = [torch.from_numpy(t.numpy()) for t in (x, y)]
        turns["torch"] = lambda: chain(torch, *tensors)
        if has_inductor:
            fused = torch.compile(lambda x, y: chain(torch, x, y), dynamic=False)
            turns["inductor"] = lambda: fused(*tensors)
    expected = turns["function"]().numpy()
    for name, turn in turns.items():
        # The differences of one chain are close to 0.
        np.testing.assert_allclose(np.asarray(turn()), expected, rtol=1e-5, atol=1e-6, err_msg=name)
    return turns, interleave(turns, rounds)


def compare_chains(options: argparse.Namespace) -> list[dict[str, Any]]:
    print(
        "\n| chain | elements | program | program / function | program / JAX | program / PyTorch | program / Inductor |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    results = []
    for name, chain in ELEMENTWISE.items():
        for size in SIZES:
            if options.only not in name:
                continue
            with tenon.no_grad():
                turns, times = compare_chain(chain, size, options.rounds, options.inductor)
            ratios = {who: times.ratio(who) for who in turns if who != "program"}
            results.append({"case": name, "size": size, "ratios": ratios})
            shown = [
                f"{ratios[who]:.2f}" if who in ratios else ""
                for who in ("function", "jax", "torch", "inductor")
            ]
            print(
                f"| {name} | {size} | {times.median() * 1e6:.1f} us | {' | '.join(shown)} |",
                flush=True,
            )
    return results


def compare_blocks(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Blocks written by hand, with numerics="fast": the operator behind them is found (tenon.jit.rewrites)."""
    print(
        "\n| block | program | program / exact | program / function | program / JAX | program / PyTorch |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    results = []
    for name, (block, arrays) in _blocks_by_hand.cases().items():
        if options.only not in name:
            continue
        with tenon.no_grad():
            turns, changes = block_turns(block, arrays)
            times = interleave(turns, options.rounds)
        ratios = {who: times.ratio(who) for who in turns if who != "program"}
        results.append({"case": name, "ratios": ratios, "changes": changes})
        shown = [
            f"{ratios[who]:.2f}" if who in ratios else ""
            for who in ("exact", "function", "jax", "torch")
        ]
        print(f"| {name} | {times.median() * 1e6:.0f} us | {' | '.join(shown)} |", flush=True)
    return results


def block_turns(block: Callable, arrays: list[np.ndarray]) -> tuple[dict[str, Callable], str]:
    own, tensors = _blocks_by_hand.namespace(tenon), [tenon.tensor(each) for each in arrays]
    fast = tenon.export(lambda *args: block(own, *args), tensors, numerics="fast")
    exact = tenon.export(lambda *args: block(own, *args), tensors)
    turns = {
        "program": lambda: fast(*tensors),
        "exact": lambda: exact(*tensors),
        "function": lambda: block(own, *tensors),
    }
    if jax is not None:
        jnp, operands = _blocks_by_hand.namespace(jax.numpy), [jax.numpy.asarray(a) for a in arrays]
        compiled = jax.jit(lambda *args: block(jnp, *args))
        turns["jax"] = lambda: compiled(*operands).block_until_ready()
    if torch is not None:
        theirs, copies = _blocks_by_hand.namespace(torch), [torch.from_numpy(a) for a in arrays]
        turns["torch"] = lambda: block(theirs, *copies)
    expected = turns["function"]().numpy()
    for name, turn in turns.items():
        # Attention sums and rounds in another order in each library.
        np.testing.assert_allclose(np.asarray(turn()), expected, rtol=1e-3, atol=1e-5, err_msg=name)
    return turns, fast.changes()


STEPS = (
    "mlp b64 train SGD",
    "lenet b64 train SGD",
    "lstm h128 t32 b32 train Adam",
    "gpt2 block t256 b4 train AdamW",
    "resnet18 b8 train momentum",
    "mlp b64 forward",
    "mlp b1 forward",
    "lenet b64 forward",
    "lstm h128 t32 b32 forward",
    "gpt2 block t256 b4 forward",
    "resnet18 b8 forward",
)
COMPARED = 4  # steps: the third call of a compiled function is the first that runs a program


def step_turns(name: str) -> tuple[dict[str, Callable], Any]:
    """A step of each library, from the same weights; and the compiled function of Tenon. Of forward passes, ONNX Runtime's,
    too."""
    work = (training_steps.SMALL | training_steps.LARGE)[name]
    start, data = training_steps.starts(work), training_steps.data(work)

    def step_of(library: str) -> Callable:
        module = importlib.import_module(training_steps.STEPS[library])
        if not work.trains:
            return module.forward_step(library, work, start, data[0], tenon.get_num_threads())
        return module.training_step(library, work, start, *data)

    compiled = tenon.compile(step_of("tenon"))
    turns = {"program": compiled, "function": step_of("tenon")}
    turns |= {peer: step_of(peer) for peer in ("jax", "torch") if globals()[peer] is not None}
    if not work.trains and onnxruntime is not None:
        turns["onnxruntime"] = step_of("onnxruntime")
    results = {who: [np.asarray(turn()) for _ in range(COMPARED)] for who, turn in turns.items()}
    for who, values in results.items():
        # Losses of several steps in float32: each library rounds in its own order.
        np.testing.assert_allclose(values, results["function"], rtol=1e-3, atol=1e-4, err_msg=who)
    if not compiled.programs:
        raise RuntimeError(f"{name}: {compiled.explain()}")
    return turns, compiled.programs[0]


def compare_steps(options: argparse.Namespace) -> list[dict[str, Any]]:
    print(
        "\n| step | program | program / function | program / JAX | program / PyTorch | program / ONNX Runtime "
        "| results at most at once | step by step | none freed |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    results = []
    for name in STEPS:
        if options.only not in name:
            continue
        turns, program = step_turns(name)
        # Threads of the others spin for a while after their turns, at the expense of the next library.
        own = interleave({who: turns[who] for who in ("program", "function")}, options.rounds)
        times = interleave(turns, options.rounds)
        ratios = {who: times.ratio(who) for who in turns if who != "program"}
        ratios["function"] = own.ratio("function")
        memory = program.memory()
        results.append({"case": name, "ratios": ratios, "memory": memory})
        shown = [
            f"{ratios[who]:.2f}" if who in ratios else ""
            for who in ("function", "jax", "torch", "onnxruntime")
        ]
        shown += [f"{memory[key] / 2**20:.1f} MiB" for key in ("planned", "stepwise", "kept")]
        print(f"| {name} | {own.median() * 1e6:.0f} us | {' | '.join(shown)} |", flush=True)
    return results


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
        "recording": lambda: tenon.jit.program._record(function, arguments, list(arguments)),
    }
    return interleave(turns, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--inductor", action="store_true", help="compile chains by Inductor, too")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads :])  # JAX counts these
    tenon.set_num_threads(options.threads)
    if torch is not None:
        torch.set_num_threads(options.threads)
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
    results += compare_chains(options)
    results += compare_blocks(options)
    results += compare_steps(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"threads": options.threads, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
