# SPDX-License-Identifier: Apache-2.0
"""Calls in another process, whose kernels are those of another instruction set."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

from .arrays import dtype_name, numpy_of
from .call import PRELUDE, SEED, evaluate, results_of
from .compare import close_difference, spreads
from .report import mismatch

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
_ROOT = Path(__file__).parents[2]


class Remote:
    """A process that evaluates texts; None as an answer if it has ended."""

    def __init__(self, isa):
        self.isa = isa
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env={**os.environ, "TENON_CPU_ISA": isa},
        )

    def ask(self, text):
        """("results", [(dtype, values)]), ("error", text), or None."""
        try:
            pickle.dump(text, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (OSError, EOFError):
            return None


@cache
def remote(isa):
    """The process of an instruction set; None where this processor or build does not have it."""
    one = Remote(isa)
    answer = one.ask("tenon.ones((1,))")
    if answer and answer[0] == "results":
        return one
    one.process.kill()
    one.process.wait()
    return None


def serve():
    """What the other process does: its standard input and output are pipes of pickles."""
    import tenon

    np.seterr(all="ignore")
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints must not come between
    while True:
        try:
            text = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            tenon.manual_seed(SEED)
            results = results_of(evaluate(text))
            answer = "results", [(dtype_name(r), numpy_of(r)) for r in results]
        except Exception as error:
            answer = "error", f"{type(error).__name__}: {error}"
        pickle.dump(answer, output)
        output.flush()


def isa(name):
    """An oracle: kernels of another instruction set."""

    def compare(call, results, rng):
        other = remote(name)
        if other is None or call.op in ("empty", "empty_like"):
            return
        seeding = call.seeding()
        script = (
            f"{PRELUDE}; {seeding}print({call.text()})  # with and without TENON_CPU_ISA={name}"
        )
        answer = other.ask(call.text())
        if answer is None or answer[0] == "error":
            text = "the process ended" if answer is None else answer[1]
            remote.cache_clear()
            yield mismatch(f"isa {name}", call, text, script)
            return
        spread = spreads(call, rng)
        for i, (mine, (dtype, values)) in enumerate(zip(results, answer[1])):
            near = 0.0 if spread is None else spread[i]
            text = close_difference(values, numpy_of(mine), dtype, near)
            if text:
                yield mismatch(f"isa {name}", call, f"result {i}: {text}", script)
                return

    compare.__doc__ = f"The kernels of {name}."
    return compare


def active_isa():
    """The instruction set of this process's kernels."""
    import tenon

    return tenon.device_properties("cpu")["arch"]
