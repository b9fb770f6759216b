# SPDX-License-Identifier: Apache-2.0
"""What the commands share that run models: options, and inputs from files."""

from contextlib import contextmanager

from tenon.cli import model_files
from tenon.cli.errors import USAGE, CommandError


def add_predictor_options(parser):
    parser.add_argument(
        "program",
        metavar="MODEL",
        help="a .tenon file (Program.save, tenon convert), .onnx or .pt2",
    )
    parser.add_argument("--device", help="devices in order of preference: cuda:0,cpu")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of the configuration, such as numerics=fast; may be repeated",
    )


@contextmanager
def open_predictor(arguments, sizes=None, shapes=None, **settings):
    """A predictor of the model. `sizes` and `shapes`: of a .onnx model."""
    from tenon.inference import Predictor

    for setting in arguments.set:
        key, equal, value = setting.partition("=")
        if not equal:
            raise CommandError(f"--set: expected KEY=VALUE, got '{setting}'", USAGE)
        settings[key] = value
    if arguments.device:
        settings["device"] = arguments.device.split(",")
    if model_files.kind_of(arguments.program) == ".onnx":
        model_files.check_sizes(arguments.program, sizes or {}, shapes or {})
        yield Predictor(arguments.program, sizes=sizes or {}, shapes=shapes or {}, **settings)
        return
    with model_files.as_program_file(arguments.program, sizes) as path:
        yield Predictor(path, **settings)


def input_names(path):
    """The inputs of a .onnx model; None of other files, whose predictor has them."""
    import tenon

    if model_files.kind_of(path) != ".onnx":
        return None
    model_files.check_is_there(path)
    return [value["name"] for value in tenon.onnx.describe(path)["inputs"]]


def need_numpy():
    try:
        import numpy
    except ImportError:
        raise CommandError("this command reads and writes .npy files, which needs NumPy") from None
    return numpy


def read_inputs(names, given):
    """Arrays by input from "x=x.npy"; of a program with one input also from "x.npy"."""
    numpy = need_numpy()
    names = list(names)
    inputs = {}
    for text in given:
        name, equal, path = text.rpartition("=")
        if not equal and len(names) == 1:
            name = names[0]
        if name not in names:
            raise CommandError(
                f"--input: expected NAME=FILE, as the program has the inputs {', '.join(names)}; got '{text}'",
                USAGE,
            )
        try:
            inputs[name] = numpy.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise CommandError(f"--input: {path}: {error}") from None
    return inputs
