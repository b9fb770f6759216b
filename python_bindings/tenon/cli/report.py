# SPDX-License-Identifier: Apache-2.0
"""Print what a report of a bug should say about this machine; with --check, see whether Tenon works."""

from tenon.cli.errors import FAILED

HELP = "print versions, devices, plugins and settings, for reports of bugs"


def add_arguments(parser):
    parser.add_argument(
        "--check", action="store_true", help="also train a small model on every device"
    )


def run(arguments):
    from tenon.utils import collect_env, run_check

    print(collect_env())
    return FAILED if arguments.check and not run_check() else None
