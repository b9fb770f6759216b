# SPDX-License-Identifier: Apache-2.0
"""Run a model on arrays of .npy files, and print or write what comes out.

    tenon predict model.tenon --input x=x.npy --output scores=scores.npy

A .onnx or .pt2 file is converted first; sizes that a .onnx model leaves open are those of the arrays.
"""

from tenon.cli import predictor
from tenon.cli.errors import USAGE, CommandError

HELP = "run a model on arrays"


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
    names = predictor.input_names(arguments.program)
    inputs = None if names is None else predictor.read_inputs(names, arguments.input)
    shapes = None if inputs is None else {name: list(array.shape) for name, array in inputs.items()}
    with predictor.open_predictor(arguments, shapes=shapes) as made:
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
        if inputs is None:
            inputs = predictor.read_inputs(made.inputs, arguments.input)
        outputs = made.run(inputs)
    for name, path in wanted.items():
        predictor.need_numpy().save(path, outputs[name].cpu().numpy())
    if not wanted:
        for name, value in outputs.items():
            print(f"{name}: {value}")
