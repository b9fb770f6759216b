# SPDX-License-Identifier: Apache-2.0
"""Models of timm, transformers and scikit-learn as models of ONNX in a predictor: what agrees, what is refused and why.

    PYTHONPATH=build/release/python PYTHON_WITH_THEM tests/onnx/model_suite.py [--results FILE] [--kind KIND ...] [-k TEXT]

Networks come by both exporters of PyTorch, models of scikit-learn by skl2onnx; each runs with two batches where it leaves sizes open
and is compared with ONNX Runtime and with what it was made from. A line for each model is kept in FILE: what is there is not run
again, so that a run goes on where the last one ended. What cannot be exported, or what ONNX Runtime does not run, is counted apart:
it says nothing about us.

Fails if a result is wrong, a model ends its process, or fewer than --least in a hundred of those that say something agree. Needs
torch, timm, transformers, onnx, onnxscript, onnxruntime, scikit-learn and skl2onnx. Weights are drawn: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import logging
import multiprocessing
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

KINDS = {  # and the module that makes them
    "sklearn": "sklearn_models",
    "transformers": "torch_networks",
    "transformers-torchscript": "torch_networks",
    "timm": "torch_networks",
    "timm-torchscript": "torch_networks",
}
COUNTED = ("agrees", "wrong", "refused", "crashed")  # states that say something about us
MINUTES = 20  # for one model; then its process is ended
MODELS_OF_A_PROCESS = 25  # what libraries keep of a model is given back with its process


def short(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:300]}"


def result_of(kind: str, name: str, folder: Path) -> dict[str, Any]:
    """A line of the results: kind, name, state, differences or the reason."""
    row: dict[str, Any] = {"kind": kind, "name": name, "state": "not exported"}
    compared = importlib.import_module("compared")
    began = time.perf_counter()
    try:
        written = importlib.import_module(KINDS[kind]).network(kind, name)
    except Exception as error:
        return row | {"reason": short(error)}
    for is_open in (True, False) if kind != "sklearn" else (True,):
        try:
            row["state"] = "not exported"
            case = written(folder / "model.onnx", is_open)
            row["export_s"] = round(time.perf_counter() - began, 1)
            compared.compare(case, row)
        except Exception as error:
            row["reason"] = short(error)
        if row["state"] in COUNTED:
            break
    if row["state"] == "agrees":
        row.pop("reason", None)
    return row


def work(connection: Any) -> None:
    """The life of a process that runs models."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    importlib.import_module("tenon").set_num_threads(1)
    while (asked := connection.recv()) is not None:
        with tempfile.TemporaryDirectory() as folder:
            kind, name = asked
            connection.send(result_of(kind, name, Path(folder)))


class Worker:
    """A process that runs one model after another, and whose end is a result, too."""

    def __init__(self) -> None:
        self.process: Any = None

    def result_of(self, kind: str, name: str) -> dict[str, Any]:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(target=work, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
            self.models = 0
        self.connection.send((kind, name))
        self.models += 1
        lost = {"kind": kind, "name": name, "state": "crashed"}
        try:
            if self.connection.poll(MINUTES * 60):
                row = self.connection.recv()
                if self.models == MODELS_OF_A_PROCESS:
                    self.end()
                return row
            lost |= {"state": "not run", "reason": f"took more than {MINUTES} minutes"}
        except EOFError:
            self.process.join()
            lost["reason"] = f"its process ended with {self.process.exitcode}"
        self.end()
        return lost

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.join()
        self.process = None


def line_of(row: dict[str, Any]) -> str:
    if row["state"] != "agrees":
        return f"{row['state']}: {row['reason']}"
    text = f"agrees: {row['difference']:.1e}, {row['origin_difference']:.1e} of the origin"
    return f"{text}; {row['sizes']}"


def summary(rows: list[dict[str, Any]]) -> str:
    states = collections.Counter(row["state"] for row in rows)
    tried = sum(states[state] for state in COUNTED)
    others = ", ".join(f"{count} {state}" for state, count in states.items() if state != "agrees")
    return f"{states['agrees']} of {tried} agree" + (f"; {others}" if others else "")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument(
        "-k", nargs="*", default=[""], help="models whose name contains one of these"
    )
    parser.add_argument("--results", type=Path, default=Path("build/onnx_models.jsonl"))
    parser.add_argument("--again", nargs="*", default=[], help="states whose models run again")
    parser.add_argument("--least", type=float, default=95, help="in a hundred of those counted")
    options = parser.parse_args()
    known = {}
    if options.results.exists():
        for line in options.results.read_text().splitlines():
            row = json.loads(line)
            known[row["kind"], row["name"]] = row
    asked = []
    for kind in options.kind:
        names = importlib.import_module(KINDS[kind]).names(kind)
        asked += [(kind, name) for name in names if any(text in name for text in options.k)]
    worker = Worker()
    for place, (kind, name) in enumerate(asked, 1):
        row = known.get((kind, name))
        if row is None or row["state"] in options.again:
            row = known[kind, name] = worker.result_of(kind, name)
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"[{place}/{len(asked)}] {kind}/{name}: {line_of(row)}", flush=True)
    worker.end()
    rows = [known[each] for each in asked]
    for kind in options.kind:
        print(f"{kind}: {summary([row for row in rows if row['kind'] == kind])}")
    tried = [row for row in rows if row["state"] in COUNTED]
    agree = sum(row["state"] == "agrees" for row in tried)
    failed = any(row["state"] in ("wrong", "crashed") for row in tried)
    return int(failed or agree * 100 < options.least * len(tried))


if __name__ == "__main__":
    sys.exit(main())
