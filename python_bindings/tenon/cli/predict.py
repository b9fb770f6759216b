# SPDX-License-Identifier: Apache-2.0
"""Run an exported program on arrays of .npy files, and print or write what comes out.

tenon predict model.tenon --input x=x.npy --output scores=scores.npy
"""

from tenon.cli import predictor
from tenon.cli.errors import USAGE, CommandError

HELP = "run an exported program on arrays"


def add_arguments(parser):
    predictor.add_predictor_options(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="an input; without a name that of a program with one",
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="write an output; without any, all are printed",
    )


def run(arguments):
    made = predictor.make_predictor(arguments)
    wanted = {}
    for text in arguments.output:
        name, equal, path = text.rpartition("=")
        if not equal or name not in made.outputs:
            raise CommandError(
                f"--output: expected NAME=FILE with one of the outputs {', '.join(made.outputs)}, "
                f"got '{text}'",
                USAGE,
            )
        wanted[name] = path
    outputs = made.run(predictor.read_inputs(made, arguments.input))
    for name, path in wanted.items():
        predictor.need_numpy().save(path, outputs[name].numpy())
    if not wanted:
        for name, value in outputs.items():
            print(f"{name}: {value}")
