# SPDX-License-Identifier: Apache-2.0
"""python -m tests.fuzz --seed 1 --minutes 10 --only add,sum --oracle numpy,hostile"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys

import numpy as np

from .operators import table
from .oracles import ORACLES
from .peers.evaluate import missing_peers
from .remote import INSTRUCTION_SETS, active_isa, remote, serve
from .supervise import Settings, run, work


def _names(text):
    return tuple(filter(None, text.split(",")))


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, help="as many cases as that, whatever the time")
    parser.add_argument("--case", type=int, help="this case alone, in this process")
    parser.add_argument("--only", type=_names, default=(), help="operators, with commas between")
    parser.add_argument(
        "--oracle",
        type=_names,
        default=(),
        help=f"oracles, with commas between: {', '.join(ORACLES)}, device KIND, hostile",
    )
    parser.add_argument(
        "--devices",
        type=_names,
        default=_names(os.environ.get("TENON_TEST_DEVICES", "cpu")),
        help="device kinds to compare with cpu; TENON_TEST_DEVICES by default",
    )
    parser.add_argument(
        "--plugins",
        type=lambda text: tuple(filter(None, text.split(os.pathsep))),
        default=tuple(filter(None, os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep))),
        help="plugins to load, with colons between; TENON_TEST_PLUGINS by default",
    )
    parser.add_argument(
        "--isas",
        type=_names,
        default=INSTRUCTION_SETS,
        help="instruction sets to compare with this process's; all that this build has by default",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="operators one after another, with equal shares of the time",
    )
    parser.add_argument("--all", action="store_true", help="print every mismatch of a group")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = _arguments()
    if arguments.serve:
        serve()
        return 0
    if arguments.worker:
        work(json.loads(arguments.worker))
        return 0
    devices = tuple(kind for kind in arguments.devices if kind != "cpu")
    isas = tuple(name for name in arguments.isas if name != active_isa() and remote(name))
    settings = Settings(
        arguments.seed, arguments.only, arguments.oracle, devices, arguments.plugins, isas
    )
    for reason in missing_peers():
        print(f"left out: {reason}")
    absent = sorted(set(arguments.isas) - {active_isa()} - set(isas))
    if absent:
        print(f"left out: this build or processor has no kernels for {', '.join(absent)}")
    if not devices:
        print("left out: no other device; name some with --devices and --plugins")
    if arguments.case is not None:
        return _one(settings, arguments.case)
    return _each(settings, arguments) if arguments.each else _many(settings, arguments)


def _each(settings, arguments):
    """A draw from all operators comes to most of them a few times an hour, and so misses their corners."""
    names = list(settings.only or table())
    arguments.minutes /= len(names)
    failed = []
    for place, name in enumerate(names, 1):
        print(f"{name} ({place} of {len(names)})", flush=True)
        if _many(dataclasses.replace(settings, only=(name,)), arguments):
            failed.append(name)
    print(f"{len(names)} operators, mismatches in {len(failed)}: {', '.join(failed) or 'none'}")
    return len(failed) > 0


def _one(settings, number):
    np.seterr(all="ignore")
    cases = settings.cases()
    print(cases.script(cases.draw(number)[1]), flush=True)
    _, found = cases.run(number)
    for one in found:
        print(one.text())
    return len(found) > 0


def _many(settings, arguments):
    groups = {}

    def show(found):
        groups[found.group] = groups.get(found.group, 0) + 1
        if arguments.all or groups[found.group] <= 3:
            print(found.text(), flush=True)

    seconds = arguments.minutes * 60 if arguments.cases is None else 1e9
    outcome = run(settings, seconds, most=arguments.cases, shown=show)
    print(summary(outcome))
    return len(outcome.mismatches) > 0


def summary(outcome):
    """What was run, as text."""
    served, refused = sum(outcome.served.values()), sum(outcome.refused.values())
    groups = {}
    for found in outcome.mismatches:
        groups[found.group] = groups.get(found.group, 0) + 1
    lines = [
        f"{outcome.cases} cases: {served} calls of {len(outcome.served)} operators served, "
        f"{refused} refused; {len(outcome.mismatches)} mismatches in {len(groups)} groups, "
        f"{len(outcome.explained)} explained"
    ]
    lines += [f"  {oracle} {op}: {count}" for (oracle, op), count in sorted(groups.items())]
    never = sorted(set(outcome.refused) - set(outcome.served))
    if never:
        lines.append(f"never served: {', '.join(never)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
