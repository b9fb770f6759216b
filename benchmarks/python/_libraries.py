# SPDX-License-Identifier: Apache-2.0
"""Each library in a process of its own, which runs a benchmark's cases when it is its turn.

    def build(library: str, case: Case, options) -> Callable | Built | None: ...
    if __name__ == "__main__":
        compare("overhead", CASES, build, parser(__doc__).parse_args())

In one process the thread pools of several libraries spin at each other's expense, their allocators share
a heap, and some cannot be imported together. Here all others sleep while one is timed: a process answers
when its own threads have come to rest. `build` runs in the library's process and returns what to time, or
None if the library lacks the case; what the call returns is compared with Tenon's before anything is timed.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import dataclasses
import gc
import importlib
import multiprocessing
import os
import sys
import time
import timeit
import traceback
from collections.abc import Callable, Iterable

from _protocol import Turns, interleave
from _report import Report

# Seconds between two looks whether a library's idle threads still spin, and of looking at most: OpenBLAS's spin
# for 0.1 s after a call, those of Intel's OpenMP for 0.2 s.
LOOK, PATIENCE = 0.01, 1.0
# Seconds of work before a turn on several threads: the system may wake them on one processor, and takes a
# while to part them.
WAKE = 0.03
# Seconds of a turn from which on a call is not preceded by another one, which would leave in the caches as much
# as fits of what it reads. Without that, what a library finds there is what the others happened to leave.
LONG = 0.1
# Contestants that are other ways to call a library, or are found by it.
WAYS = {"channels last": "torch", "onednn": "torch", "packed": "torch"}

Build = Callable[[str, "Case", argparse.Namespace], object]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    group: str = ""
    work: tuple[float, str] | None = None  # as Report.add has it
    limit: tuple[str, float] | None = None
    tolerance: float = 1e-4  # of outputs, relative to each and to the largest
    parameters: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Built:
    """What to time, where that is not a callable whose result is the output."""

    timer: timeit.Timer
    output: Callable[[], object] | None = None


def start(library: str, threads: int) -> object:
    """The library's module, on that many threads."""
    library = WAYS.get(library, library)
    if library == "jax":  # whose compiler spreads work over all processors it may use
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    module = importlib.import_module(library)
    if hasattr(module, "set_num_threads"):
        module.set_num_threads(threads)
    if library == "paddle":
        module.set_device("cpu")
    return module


def limit_threads(threads: int) -> None:
    """What libraries read when they start: processes inherit it."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"


def as_array(value):
    """An output as NumPy has it."""
    import numpy as np

    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [as_array(each) for each in value]
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def wake_threads(timer: timeit.Timer) -> None:
    deadline = time.perf_counter() + WAKE
    while time.perf_counter() < deadline:
        timer.timeit(1)


def rest() -> None:
    """Returns when this process uses no processor any more, but for the looking."""
    deadline = time.perf_counter() + PATIENCE
    used = time.process_time()
    while time.perf_counter() < deadline:
        time.sleep(LOOK)
        before, used = used, time.process_time()
        if used - before < LOOK / 10:
            return


def serve(connection, library: str, build: Build, options: argparse.Namespace) -> None:
    """The library's process: prepares cases and runs them, until told to stop."""
    start(library, options.threads)
    turns, seconds = None, 0.0
    while (request := connection.recv()) is not None:
        try:
            if isinstance(request, Case):
                turns, seconds = None, 0.0  # the last case's data
                gc.collect()
                built = build(library, request, options)
                if built is not None and not isinstance(built, Built):
                    built = Built(timeit.Timer(built), built)
                turns = built and Turns(built.timer)
                answer = built and built.output and as_array(built.output()), bool(built)
            else:
                if options.threads > 1:
                    wake_threads(turns.timer)
                elif seconds < LONG:
                    turns.timer.timeit(1)  # brings back what others drove out of the caches
                answer = turns.run(request)
                seconds = answer[0]
            if options.threads > 1:
                rest()
            connection.send(answer)
        except Exception:
            connection.send(traceback.format_exc())


class Library:
    """A contestant of `interleave` in a process of its own."""

    def __init__(self, name: str, build: Build, options: argparse.Namespace):
        context = multiprocessing.get_context("spawn")
        self.name = name
        self.connection, theirs = context.Pipe()
        arguments = (theirs, name, build, options)
        # Not a daemon, which may have no processes of its own; loaders of data start some.
        self.child = context.Process(target=serve, args=arguments)
        self.child.start()
        atexit.register(self.child.terminate)
        theirs.close()
        self.process = self.child.pid

    def ask(self, request):
        self.connection.send(request)
        answer = self.connection.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"{self.name}: {answer}")
        return answer

    def prepare(self, case: Case) -> tuple[object, bool]:
        """The case's output, and whether the library has it."""
        return self.ask(case)

    def run(self, count: int) -> tuple[float, float]:
        return self.ask(count)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.child.join(1)
        self.child.terminate()


def check(case: Case, outputs: dict[str, object]) -> None:
    """All libraries compute the same."""
    import numpy as np

    subject = next(iter(outputs), None)
    for name, got in outputs.items():
        expected = outputs[subject]
        many = isinstance(expected, list)
        for a, b in zip(*(x if many else [x] for x in (got, expected))):
            b = np.asarray(b, np.float64)
            largest = np.max(np.abs(b), where=np.isfinite(b), initial=1.0)
            np.testing.assert_allclose(
                np.asarray(a, np.float64).reshape(np.shape(b)),
                b,
                rtol=case.tolerance,
                atol=case.tolerance * largest,
                equal_nan=True,
                err_msg=f"{case.name}: {name} and {subject}",
            )


def measure(
    cases: Iterable[Case], build: Build, options: argparse.Namespace, report: Report
) -> None:
    """Times the cases in Tenon and its peers, and adds them to the report."""
    limit_threads(options.threads)
    libraries = [Library(each, build, options) for each in report.columns]
    for case in cases:
        if not report.selects(case.name, case.group):
            continue
        contestants, outputs = prepare(case, libraries)
        check(case, outputs)
        times = interleave(contestants, min(options.rounds, 7) if options.quick else options.rounds)
        details = {"threads": options.threads, **case.parameters}
        report.add(case.name, times, group=case.group, work=case.work, limit=case.limit, **details)
    for library in libraries:
        library.stop()


def prepare(case: Case, libraries: list[Library]) -> tuple[dict[str, Library], dict[str, object]]:
    """The libraries that have the case, and its outputs there. A peer's failure is told, Tenon's is one."""
    contestants, outputs = {}, {}
    for library in libraries:
        try:
            output, present = library.prepare(case)
        except RuntimeError as error:
            if library is libraries[0]:
                raise
            print(f"{case.name}: not measured: {str(error).splitlines()[-1]}", file=sys.stderr)
            continue
        if present:
            contestants[library.name] = library
        if output is not None:
            outputs[library.name] = output
    return contestants, outputs


def compare(name: str, cases: Iterable[Case], build: Build, options: argparse.Namespace) -> None:
    """A whole benchmark."""
    report = Report(name, options)
    measure(cases, build, options, report)
    report.close()
