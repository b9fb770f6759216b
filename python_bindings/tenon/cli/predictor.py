# SPDX-License-Identifier: Apache-2.0
"""What the commands share that run exported programs: options, and inputs from files."""

from tenon.cli.errors import USAGE, CommandError


def add_predictor_options(parser):
    parser.add_argument("program", metavar="MODEL.tenon", help="what Program.save wrote")
    parser.add_argument("--device", help="devices in order of preference: cuda:0,cpu")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of the configuration, such as numerics=fast; may be repeated",
    )


def make_predictor(arguments, **settings):
    from tenon.inference import Predictor

    for setting in arguments.set:
        key, equal, value = setting.partition("=")
        if not equal:
            raise CommandError(f"--set: expected KEY=VALUE, got '{setting}'", USAGE)
        settings[key] = value
    if arguments.device:
        settings["device"] = arguments.device.split(",")
    return Predictor(arguments.program, **settings)


def need_numpy():
    try:
        import numpy
    except ImportError:
        raise CommandError("this command reads and writes .npy files, which needs NumPy") from None
    return numpy


def read_inputs(predictor, given):
    """Arrays by input from "x=x.npy"; of a program with one input also from "x.npy"."""
    numpy = need_numpy()
    inputs = {}
    for text in given:
        name, equal, path = text.rpartition("=")
        if not equal:
            if len(predictor.inputs) != 1:
                names = ", ".join(predictor.inputs)
                raise CommandError(
                    f"--input: expected NAME=FILE, as the program has the inputs {names}; got '{text}'",
                    USAGE,
                )
            name = next(iter(predictor.inputs))
        try:
            inputs[name] = numpy.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise CommandError(f"--input: {path}: {error}") from None
    return inputs
