# SPDX-License-Identifier: Apache-2.0
"""Find the fastest way of dividing a step of training over ranks.

  tenon tune train.py:recipe -n 64 --machine cluster.json --memory 16GB
  tenon tune train.py:recipe -n 4 --run 3 --output ways.json

A recipe is a tenon.distributed.Recipe, or a function that returns one (docs/distributed.md). Each way is simulated on ranks
that need not be there, on a machine of numbers: `dist.calibrate().save("cluster.json")` measures them on a job's ranks; without
--machine, as many processes of this machine as there are ranks, 8 at most, measure themselves. With --run the fastest are run as
processes of this machine. --space has a JSON object of what is tried, as {"tp": [1, 2], "zero": [0, 1]}; --input goes on with
what an earlier --output wrote.
"""

import json
import sys
from pathlib import Path

from tenon.cli.errors import CommandError
from tenon.cli.output import add_json_option, print_table

HELP = "find the fastest way of dividing a step over ranks"
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MOST = 8  # processes that measure the machine


def add_arguments(parser):
    parser.add_argument("recipe", metavar="FILE.py:NAME", help="the training program")
    parser.add_argument("-n", type=int, required=True, metavar="RANKS", help="ranks")
    parser.add_argument("--machine", metavar="FILE", help="JSON of dist.calibrate().save()")
    parser.add_argument("--memory", metavar="BYTES", help="of a rank at most, as 16GB")
    parser.add_argument("--space", metavar="FILE", help="JSON of the values that are tried")
    parser.add_argument(
        "--run", dest="runs", type=int, default=0, metavar="K", help="run the K fastest"
    )
    parser.add_argument("--show", type=int, default=10, metavar="K", help="rows of the table")
    parser.add_argument(
        "--input", metavar="FILE", help="a report to go on with, instead of a search"
    )
    parser.add_argument("--output", metavar="FILE", help="write the report, as JSON")
    add_json_option(parser)


def run(arguments):
    from tenon.distributed import Machine
    from tenon.distributed.planning.tuner import TuningReport, tune
    from tenon.distributed.planning.tuner.worker import (
        load_recipe,
        measure_machine,
        measure_step,
    )

    if arguments.n < 1:
        raise CommandError(f"expected -n of 1 or more, got {arguments.n}")
    for name, least in (("runs", 0), ("show", 1)):
        if getattr(arguments, name) < least:
            option = "run" if name == "runs" else name
            raise CommandError(
                f"expected --{option} of {least} or more, got {getattr(arguments, name)}"
            )
    if arguments.input:
        for name in ("machine", "memory", "space"):
            if getattr(arguments, name) is not None:
                raise CommandError(
                    f"expected no --{name} with --input, whose search has been made; leave one of them out"
                )
        report = TuningReport.from_json(Path(arguments.input).read_text(encoding="utf-8"))
        if report.ranks != arguments.n:
            raise CommandError(
                f"expected -n {report.ranks}, as in {arguments.input}, got -n {arguments.n}"
            )
    else:
        recipe = load_recipe(arguments.recipe)
        if arguments.machine:
            machine = Machine.load(arguments.machine)
        elif arguments.n > _MOST:
            raise CommandError(
                f"expected --machine, as {arguments.n} ranks are more than the {_MOST} that are measured here"
            )
        else:
            machine = measure_machine(arguments.n)
        memory = None if arguments.memory is None else _bytes(arguments.memory)
        space = json.loads(Path(arguments.space).read_text()) if arguments.space else None
        bar = _Bar("simulated")
        report = tune(recipe, arguments.n, machine, memory=memory, space=space, notify=bar)
        bar.end()
    bar = _Bar("run")
    for index, candidate in enumerate(report.candidates[: arguments.runs]):
        bar(index, min(arguments.runs, len(report.candidates)), candidate.config)
        candidate.measured = measure_step(arguments.recipe, candidate.config)
    bar.end()
    best = report.best  # an error where there is none
    if arguments.output:
        Path(arguments.output).write_text(report.to_json() + "\n", encoding="utf-8")
    if arguments.json:
        print(report.to_json())
        return 0
    print_table(report.rows(arguments.show))
    print(f"best: {best.config}")
    reasons = {}
    for each in report.refused:
        reasons[each.reason] = reasons.get(each.reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda each: -each[1])[:10]:
        print(f"refused {count}: {reason}")
    return 0


def _bytes(text):
    number, unit = text, 1
    for name, size in _UNITS.items():
        if text.upper().endswith(name):
            number, unit = text[: -len(name)], size
    try:
        return int(float(number) * unit)
    except (ValueError, OverflowError):
        raise CommandError(f"expected bytes as 16GB or 500MB, got {text!r}") from None


class _Bar:
    """Progress where a person looks."""

    def __init__(self, what):
        self.what, self.is_shown = what, sys.stderr.isatty()

    def __call__(self, index, count, config):
        if self.is_shown:
            done = 30 * index // max(count, 1)
            text = f"{self.what} {index} of {count} [{'#' * done}{'.' * (30 - done)}] {config}"
            print(f"\r{text[:100]:<100}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.is_shown:
            print(f"\r{'':<100}\r", end="", file=sys.stderr, flush=True)
