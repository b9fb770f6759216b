# SPDX-License-Identifier: Apache-2.0
"""What these commands share: options, and what they say of inputs."""

from contextlib import contextmanager

import tenon.onnx
from tenon.cli import model_files, predictor
from tenon.cli.errors import USAGE, CommandError


def add_model_options(parser):
    parser.add_argument("model", metavar="MODEL.onnx")
    model_files.add_size_options(parser)
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input whose value decides shapes, axes or rounds; may be repeated",
    )


def add_comparison_options(parser):
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="an input; others are drawn",
    )
    parser.add_argument(
        "--reference",
        choices=["onnxruntime", "onnx"],
        default="onnxruntime",
        help="which runtime is right (onnxruntime)",
    )
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative tolerance (1e-3)")
    parser.add_argument("--atol", type=float, default=1e-5, help="absolute tolerance (1e-5)")
    parser.add_argument("--seed", type=int, default=0, help="of inputs that are drawn (0)")


def check_model(path):
    model_files.check_is_there(path)
    if model_files.kind_of(path) != ".onnx":
        raise CommandError(f"expected a .onnx file, got '{path}'; tenon convert writes one", USAGE)


def read_options(arguments):
    """sizes, shapes and values for tenon.onnx.load, of a model that is there."""
    check_model(arguments.model)
    names = [value["name"] for value in tenon.onnx.describe(arguments.model)["inputs"]]
    sizes = model_files.read_sizes(arguments.size)
    for name, size in sizes.items():
        if not isinstance(size, int):
            raise CommandError(
                f"--size: expected one number for '{name}', with which the model runs", USAGE
            )
    fixed = predictor.read_inputs(names, arguments.fix) if arguments.fix else {}
    return {
        "sizes": sizes,
        "shapes": model_files.read_shapes(arguments.shape, names),
        "values": {name: tenon.tensor(array) for name, array in fixed.items()},
    }


def read_comparison(arguments):
    """Also the inputs that files give, and tolerances."""
    options = read_options(arguments)
    names = [value["name"] for value in tenon.onnx.describe(arguments.model)["inputs"]]
    given = predictor.read_inputs(names, arguments.input) if arguments.input else None
    return {
        **options,
        "inputs": given,
        "reference": arguments.reference,
        "rtol": arguments.rtol,
        "atol": arguments.atol,
        "seed": arguments.seed,
    }


@contextmanager
def told_as_options():
    """What is missing, in the words of the command line."""
    try:
        yield
    except ImportError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        text = str(error)
        if "is open" in text:
            hint = "--shape NAME=1x3x224x224" if "shapes={" in text else "--size NAME=8"
            raise CommandError(f"{text} (here: {hint})", USAGE) from None
        raise
    except NotImplementedError as error:
        hint = " (here: --fix NAME=FILE.npy)" if "values={" in str(error) else ""
        raise CommandError(f"{error}{hint}") from None
