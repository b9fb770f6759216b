# SPDX-License-Identifier: Apache-2.0
"""Holds a namespace of tenon.compat against its library, parameter by parameter.

    python -m tests.fuzz.peers.compat torch [--only NAME,NAME] [--minutes 10] [--samples 4] [--list different,refused]

It ends with the status 1 if a call differs and no row of the table of differences says why.
"""

import argparse
import importlib
import inspect
import sys
import warnings
from pathlib import Path

from tenon.utils.progress import progress

from .signature_calls import STATES, check


def main() -> int:
    known = sorted(each.stem.removeprefix("of_") for each in Path(__file__).parent.glob("of_*.py"))
    description = inspect.getdoc(sys.modules[__name__]) or ""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("library", choices=known)
    parser.add_argument("--only", default="", help="dotted names, separated by commas")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--samples", type=int, default=4, help="samples of each function")
    parser.add_argument(
        "--list", default="different", help=f"states to list, among {', '.join(STATES)}"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    library = importlib.import_module(f".of_{options.library}", __package__).LIBRARY
    report = check(
        library,
        tuple(filter(None, options.only.split(","))),
        options.minutes,
        options.samples,
        lambda names: progress(names, options.library),
    )
    report.show(library, options.list.split(","))
    return 1 if report.differences() else 0


if __name__ == "__main__":
    sys.exit(main())
