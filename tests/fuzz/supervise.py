# SPDX-License-Identifier: Apache-2.0
"""Runs cases in a child process, so that a crash or a hang is one more finding.

The child writes one line of JSON for every mismatch, and before every case its number and program
into a file, which tells what it was at when it died.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .cases import Cases, load_plugins
from .differences import explanation
from .report import Mismatch

ROOT = Path(__file__).parents[2]
# A case that takes longer hangs.
HANG_SECONDS = 60
_MEMORY = 4 << 30
# Cases between two lines of totals, which a crash loses.
_REPORTED = 50


@dataclass
class Outcome:
    cases: int = 0
    served: Counter = field(default_factory=Counter)  # calls by operator
    refused: Counter = field(default_factory=Counter)
    mismatches: list = field(default_factory=list)
    explained: list = field(default_factory=list)  # (mismatch, row of the table)

    def add(self, found, shown=None):
        row = explanation(found)
        if row is not None:
            self.explained.append((found, row))
            return
        self.mismatches.append(found)
        if shown:
            shown(found)


@dataclass(frozen=True)
class Settings:
    seed: int
    only: tuple[str, ...] = ()
    oracles: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    isas: tuple[str, ...] = ()

    def cases(self):
        load_plugins(self.plugins)
        return Cases(self.seed, self.only, self.oracles, self.devices, self.isas)


def run(settings, seconds, first=0, most=None, shown=None, setup=""):
    """An Outcome of the cases from `first` on, for a time or as many as `most`.

    `shown` is called with every mismatch. `setup` is Python that the child runs before it begins.
    """
    outcome, number, deadline = Outcome(), first, time.monotonic() + seconds
    while time.monotonic() < deadline and (most is None or number < first + most):
        left = max(1.0, deadline - time.monotonic())
        count = None if most is None else first + most - number
        number = _child(settings, number, left, count, outcome, shown, setup)
    return outcome


def _child(settings, first, seconds, count, outcome, shown, setup):
    """Runs one child until it ends; the number of the next case."""
    with tempfile.NamedTemporaryFile("w+", suffix=".case") as progress:
        job = {
            "settings": vars(settings),
            "first": first,
            "seconds": seconds,
            "count": count,
            "progress": progress.name,
            "setup": setup,
        }
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--worker", json.dumps(job)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        errors = []
        reader = threading.Thread(target=lambda: errors.extend(child.stderr), daemon=True)
        reader.start()
        watch = threading.Thread(target=_watch, args=(child, progress.name), daemon=True)
        watch.start()
        for line in child.stdout:
            record = json.loads(line)
            if "mismatch" in record:
                found = Mismatch.from_record(record["mismatch"])
                outcome.add(found, shown)
            else:
                outcome.served.update(record["served"])
                outcome.refused.update(record["refused"])
                outcome.cases += record["cases"]
        status = child.wait()
        reader.join(5)
        if status == 0:
            return sys.maxsize if count is not None else first + 10**9
        return _died(settings, status, progress, outcome, shown, errors)


def _died(settings, status, progress, outcome, shown, errors):
    """Reports what the child was at; the number of the case after it."""
    progress.seek(0)
    text = progress.read()
    if not text:
        raise RuntimeError(f"tests.fuzz: the child process ended with {status}:\n{''.join(errors)}")
    at = json.loads(text)
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    if status == -signal.SIGALRM:
        how = f"no end within {HANG_SECONDS} s"
    tail = "".join(errors[-12:]).strip()
    detail = f"the process ended with {how}" + (f"\n{tail}" if tail else "")
    found = Mismatch("crash", at["op"], detail, at["script"], case=(settings.seed, at["number"]))
    outcome.add(found, shown)
    outcome.cases += 1
    return at["number"] + 1


def _watch(child, path):
    """Ends a child that stays at one case: by its own time, as others may have the processors."""
    last, since, spent = None, time.monotonic(), 0.0
    while child.poll() is None:
        time.sleep(1)
        try:
            now, used = Path(path).read_text(), _processor_seconds(child.pid)
        except OSError:
            return
        if now != last:
            last, since, spent = now, time.monotonic(), used
        elif used - spent > HANG_SECONDS or time.monotonic() - since > 10 * HANG_SECONDS:
            child.send_signal(signal.SIGALRM)
            return


def _processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work(job):
    """What the child does."""
    if "ASAN_OPTIONS" not in os.environ:  # its shadow memory is larger than any limit
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    settings = Settings(
        **{k: tuple(v) if isinstance(v, list) else v for k, v in job["settings"].items()}
    )
    cases = settings.cases()
    np.seterr(all="ignore")
    names = {}
    exec(job["setup"], names)
    served, refused, number = Counter(), Counter(), job["first"]
    cases_done = 0
    end = None if job["count"] is None else number + job["count"]
    deadline = time.monotonic() + job["seconds"]
    progress = os.open(job["progress"], os.O_WRONLY)
    while time.monotonic() < deadline and number != end:
        operator, drawn, rng = cases.draw(number)
        at = {"number": number, "op": operator.name, "script": cases.script(drawn)}
        text = json.dumps(at).encode()
        os.ftruncate(progress, 0)
        os.pwrite(progress, text, 0)
        was_served, found = cases.examine(operator, drawn, rng)
        if was_served is not None:
            (served if was_served else refused)[operator.name] += 1
        for one in found:
            record = one.record() | {"case": [settings.seed, number]}
            print(json.dumps({"mismatch": record}), flush=True)
        number += 1
        cases_done += 1
        if cases_done == _REPORTED:
            _report(served, refused, cases_done)
            cases_done = 0
    _report(served, refused, cases_done)


def _report(served, refused, done):
    """Writes what was counted since the last report."""
    print(json.dumps({"served": served, "refused": refused, "cases": done}), flush=True)
    served.clear()
    refused.clear()
