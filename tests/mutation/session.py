# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs collected tests once for each mutant.

Tests are collected once; each mutant then has a fork of this process, in which its switch is set.
The first run has no mutant. It must pass, and tells which test asks which switch, so that a mutant
is shown only to the tests that can notice it, the fastest first.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

MEMORY = 12 << 30  # a wrong size should fail, and not take the machine's memory


class Switches:
    """The library of the mutated build that holds the chosen mutant."""

    def __init__(self, library: str):
        loaded = ctypes.CDLL(library)
        self.chosen = ctypes.c_int.in_dll(loaded, "tenon_mutant")
        self.reached = (ctypes.c_ubyte * 4096).in_dll(loaded, "tenon_mutant_reached")

    def record(self):
        """Nothing to do: compiled code always notes which switches it asks."""

    def choose(self, number: int):
        self.chosen.value = number

    def take_reached(self) -> list[int]:
        numbers = [i for i, asked in enumerate(bytes(self.reached)) if asked]
        ctypes.memset(self.reached, 0, len(self.reached))
        return numbers


class Runner:
    """`state` is the folder of baseline.jsonl and results.jsonl, which grow while this runs."""

    def __init__(self, state: Path, switches, numbers: list[int], jobs: int):
        self.state, self.numbers, self.jobs = state, numbers, jobs
        self.switches = switches

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed:
            return None  # tests could not be collected, which pytest says
        loading = self.switches.take_reached()
        self.items = {item.nodeid: item for item in session.items}
        baseline = self.baseline(session.items)
        self.mutants(baseline, set(loading))
        return True

    # -- without a mutant --------------------------------------------------------------------------
    def baseline(self, items) -> dict:
        path = self.state / "baseline.jsonl"
        known = {row["test"]: row for row in read_lines(path)}
        missing = [item for item in items if item.nodeid not in known]
        with path.open("a") as out:
            while missing:
                child = Child(self.switches, 0, missing, {}, record=True)
                for row in child.rows():
                    out.write(json.dumps(row) + "\n")
                    out.flush()
                    known[row["test"]] = row
                    progress("baseline", len(known), len(items))
                started = child.started
                missing = [item for item in missing if item.nodeid not in known]
                if started and started not in known:  # it took the process with it
                    row = {"test": started, "seconds": 0, "outcome": child.ending, "reached": []}
                    out.write(json.dumps(row) + "\n")
                    known[started] = row
                    missing = [item for item in missing if item.nodeid != started]
        failed = [row for row in known.values() if row["outcome"] not in ("passed", "skipped")]
        for row in failed[:20]:
            print(f"\nmutation: without a mutant {row['test']} {row['outcome']}; it is left out")
        if failed:
            print(f"mutation: {len(failed)} tests are left out, because they fail without a mutant")
        return {
            t: row for t, row in known.items() if row["outcome"] == "passed" and t in self.items
        }

    # -- with one ----------------------------------------------------------------------------------
    def mutants(self, baseline: dict, loading: set):
        path = self.state / "results.jsonl"
        known = {row["number"] for row in read_lines(path)}
        waiting = [number for number in self.numbers if number not in known]
        running: dict = {}
        with path.open("a") as out:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    number = waiting.pop(0)
                    child = self.start(number, baseline, loading)
                    if child:
                        running[child.pipe] = child
                    else:
                        finish(out, {"number": number, "outcome": "not reached", "tests": 0})
                for pipe in select.select(list(running), [], [], 1.0)[0] if running else ():
                    child = running[pipe]
                    row = child.result()
                    if row:
                        del running[pipe]
                        finish(out, row)
                progress(
                    "mutants", len(self.numbers) - len(waiting) - len(running), len(self.numbers)
                )

    def start(self, number: int, baseline: dict, loading: set):
        # A switch that is asked while the library loads concerns every test.
        rows = [r for r in baseline.values() if number in loading or number in r["reached"]]
        if not rows:
            return None
        rows.sort(key=lambda row: row["seconds"])
        limits = {row["test"]: row["seconds"] for row in rows}
        return Child(self.switches, number, [self.items[r["test"]] for r in rows], limits)


class Child:
    """A fork that runs tests and reports each as a line of JSON; it ends at the first that fails."""

    def __init__(self, switches, number: int, items, limits: dict, record=False):
        self.number, self.started, self.ending = number, "", ""
        self.count, self.begin, self.rest = 0, time.monotonic(), b""
        sys.stdout.flush()
        self.pipe, writing = os.pipe()
        self.process = os.fork()
        if self.process:
            os.close(writing)
            return
        try:
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with os.fdopen(writing, "w", buffering=1) as out:
                run_tests(switches, number, items, limits, record, out)
        finally:
            os._exit(0)

    def lines(self):
        """What has arrived; None at the end."""
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return None
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def rows(self):
        while (lines := self.lines()) is not None:
            for row in lines:
                if "start" in row:
                    self.started = row["start"]
                else:
                    yield row
        self.wait()

    def wait(self):
        os.close(self.pipe)
        status = os.waitpid(self.process, 0)[1]
        name = ""
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
        self.ending = "hung" if name in ("SIGPROF", "SIGALRM") else f"crashed ({name})"
        return bool(name)

    def result(self):
        """The mutant's row once the child is done."""
        lines = self.lines()
        for row in lines or ():
            if "start" in row:
                self.started = row["start"]
                self.count += 1
            else:
                self.last = row
        if lines is not None:
            return None
        killed = self.wait()
        row = {"number": self.number, "tests": self.count,
               "seconds": round(time.monotonic() - self.begin, 1)}  # fmt: skip
        last = getattr(self, "last", {})
        if last.get("outcome") == "done":
            return {**row, "outcome": "survived"}
        if last.get("outcome") == "failed":
            return {**row, "outcome": "failed", "test": last["test"], "error": last["error"]}
        return {**row, "outcome": self.ending if killed else "exited", "test": self.started}


def run_tests(switches, number, items, limits, record, out):
    def say(**row):
        out.write(json.dumps(row) + "\n")

    switches.choose(number)
    for item, following in zip(items, [*items[1:], None]):
        say(start=item.nodeid)
        if not record:
            set_limit(limits[item.nodeid])
        if record:
            switches.record()  # for each test, as one may have a profile function of its own
        begin = time.process_time()
        reports = runtestprotocol(item, nextitem=following, log=False)
        seconds = round(time.process_time() - begin, 4)
        bad = [report for report in reports if report.failed]
        outcome = "failed" if bad else "passed" if reports[-2].passed else "skipped"
        error = str(bad[0].longrepr)[-300:] if bad else ""
        if record:
            say(test=item.nodeid, seconds=seconds, outcome=outcome, error=error,
                reached=switches.take_reached())  # fmt: skip
        elif bad:
            say(test=item.nodeid, outcome="failed", error=error)
            return
    if not record:
        say(outcome="done")


def set_limit(seconds: float):
    """Time of the processor, which other work on the machine does not take; and of the clock, for
    threads that wait for each other."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, 5 + 10 * seconds)
    signal.setitimer(signal.ITIMER_REAL, 60 + 60 * seconds)


def finish(out, row: dict):
    out.write(json.dumps(row) + "\n")
    out.flush()


def read_lines(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def progress(what: str, done: int, total: int):
    if sys.stdout.isatty() or done == total or done % 50 == 0:
        width = 40 * done // max(total, 1)
        print(f"\r{what} [{'#' * width:40}] {done}/{total} ", end="", flush=True)
        if done == total:
            print()


def run_pytest(runner: Runner, arguments: list[str]) -> int:
    options = [
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        "--continue-on-collection-errors",
    ]
    code = pytest.main([*options, *arguments], plugins=[runner])
    # To pytest no test has run, as forks of it ran them.
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


def main():
    """session.py STATE LIBRARY JOBS NUMBERS -- pytest's arguments"""
    split = sys.argv.index("--")
    state, library, jobs, numbers = sys.argv[1:split]
    import tenon  # noqa: F401  the libraries, before the switches are looked for

    numbers = [int(n) for n in numbers.split(",") if n]
    runner = Runner(Path(state), Switches(library), numbers, int(jobs))
    sys.exit(run_pytest(runner, sys.argv[split + 1 :]))


if __name__ == "__main__":
    main()
