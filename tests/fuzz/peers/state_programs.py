# SPDX-License-Identifier: Apache-2.0
"""Random programs with state (tests/python/jit/random_state_programs.py): compiled, exported under memory budgets, or with
what they read changed between calls, and compared with the functions themselves to the bit.

    python -m tests.fuzz.peers.state_programs [--first 0] [--minutes 10]

Prints a line for each seed that differs, and counts at the end.
"""

import argparse
import collections
import contextlib
import random
import sys
import time
from pathlib import Path
from typing import Any

import tenon

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "jit"))
from random_state_programs import StateProgram, bits

MODES = ("compiled", "compiled", "budget", "compiled budget", "no gradients")


def outcome(function: Any, x: tenon.Tensor) -> Any:
    try:
        return bits(function(x))
    except (NotImplementedError, RuntimeError, ValueError) as error:
        return type(error).__name__


def with_budget(seed: int, draw: random.Random) -> tuple[StateProgram, Any, StateProgram] | None:
    """A function, a program of another one like it under a budget, and the state of that one."""
    plain, recorded, fresh = (StateProgram(seed, gradients=False) for _ in range(3))
    try:
        program = tenon.export(recorded, recorded.input.clone())
    except (NotImplementedError, RuntimeError, ValueError):
        return None
    for tensor, start in zip(
        recorded.state + recorded.weights, fresh.state + fresh.weights, strict=True
    ):
        tensor.copy_(start)
    budget = max(1, int(program.memory()["stepwise"] * draw.uniform(0.05, 1.1)))
    return plain, program.optimize((), memory_budget=budget), recorded


def judge(seed: int) -> str:
    """What became of the program, or "differs" with where it does."""
    draw = random.Random(seed * 7 + 1)
    mode = draw.choice(MODES)
    is_off = mode in ("budget", "no gradients")
    with tenon.no_grad() if is_off else contextlib.nullcontext():
        if mode == "budget":
            made = with_budget(seed, draw)
            if made is None:
                return "refused"
            function, program, other = made
        else:
            function, other = StateProgram(seed), StateProgram(seed)
            budget = draw.randint(1, 4000) if mode == "compiled budget" else None
            program = tenon.compile(other, memory_budget=budget)
        for call in range(3 if mode == "budget" else 8):
            if mode != "budget" and draw.random() < 0.15:
                change = draw.random()
                function.mutate(random.Random(change))
                other.mutate(random.Random(change))
            xs = [function.input * (1 + call * 0.1) for _ in range(2)]
            results = [outcome(f, x) for f, x in zip((function, program), xs, strict=True)]
            states = [bits(each.state + each.weights) for each in (function, other)]
            for what, pair in (("results", results), ("argument", bits(xs)), ("state", states)):
                if pair[0] != pair[1]:
                    return f"differs: {mode}, call {call}, {what}"
    if mode == "budget" or program.programs:
        return mode
    return f"{mode}, without a program"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    end, seed = time.monotonic() + options.minutes * 60, options.first
    while time.monotonic() < end:
        found = judge(seed)
        if found.startswith("differs"):
            print(f"seed {seed} {found}", flush=True)
            found = "differs"
        counts[found] += 1
        seed += 1
    for what, count in counts.most_common():
        print(f"{count:8} {what}")
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    main()
