# SPDX-License-Identifier: Apache-2.0
"""The command `tenon`, also `python -m tenon`.

A command is a module with

    HELP = "one line"
    def add_arguments(parser): ...      # of argparse
    def run(arguments) -> int | None    # the exit code; None is 0

A group of commands is a package with HELP and COMMANDS. To add one, write its module and name it in
COMMANDS, here or in its group.
"""

import argparse
import importlib
import os
import sys

from tenon.cli.errors import FAILED, USAGE, CommandError

COMMANDS = {
    "benchmark": "tenon.cli.benchmark",
    "convert": "tenon.cli.convert",
    "explain": "tenon.cli.explain",
    "generate": "tenon.cli.generate",
    "new-device": "tenon.cli.new_device",
    "new-op": "tenon.cli.new_op",
    "new-pass": "tenon.cli.new_pass",
    "onnx": "tenon.cli.onnx",
    "perplexity": "tenon.cli.perplexity",
    "plugins": "tenon.cli.plugins",
    "predict": "tenon.cli.predict",
    "quantize": "tenon.cli.quantize",
    "report": "tenon.cli.report",
    "run": "tenon.cli.run",
    "serve": "tenon.cli.serve",
    "tune": "tenon.cli.tune",
}


def build_parser():
    parser = argparse.ArgumentParser(prog="tenon", description="Tenon from the command line.")
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    _add_commands(parser, COMMANDS)
    return parser


def _add_commands(parser, commands):
    parser.set_defaults(run=None, parser=parser)
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, module_name in commands.items():
        module = importlib.import_module(module_name)
        command = subparsers.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__ or module.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if hasattr(module, "COMMANDS"):
            _add_commands(command, module.COMMANDS)
        else:
            module.add_arguments(command)
            command.set_defaults(run=module.run)


def main(argv=None):
    arguments = build_parser().parse_args(argv)
    if arguments.version:
        import tenon

        print(f"tenon {tenon.__version__}")
        return 0
    if arguments.run is None:
        arguments.parser.print_help()
        return USAGE
    try:
        return arguments.run(arguments) or 0
    except CommandError as error:
        print(f"tenon: {error}", file=sys.stderr)
        return error.code
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        import tenon

        # What the host refused. Anything else is a fault of this command, and shows where.
        refusals = (ValueError, RuntimeError, OSError, MemoryError, tenon.NotFoundError)
        if not isinstance(error, refusals):
            raise
        print(f"tenon: {error}", file=sys.stderr)
        return FAILED
