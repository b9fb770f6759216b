# SPDX-License-Identifier: Apache-2.0
"""Run the conformance kit on a plugin. The same as `tenon-conformance`, and takes its options; with
`--stamp` it leaves the level beside the library, which `tenon plugins list` shows."""

import argparse
import sys

HELP = "run the conformance kit on a plugin"


def add_arguments(parser):
    parser.add_argument("library", metavar="LIBRARY", help="a plugin's library")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of tenon-conformance")


def run(arguments):
    from tenon.cli import conformance

    sys.argv = ["tenon-conformance", arguments.library, *arguments.options]
    conformance.main()
