# SPDX-License-Identifier: Apache-2.0
"""Files of models of several kinds, as the commands take them: .tenon, .onnx, Paddle's .json and .pdmodel, and .pt2."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tenon.cli.errors import USAGE, CommandError

PADDLE = (".json", ".pdmodel")
KINDS = (".tenon", ".onnx", ".pt2", *PADDLE)


def add_size_options(parser):
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=8",
        help="a size that a .onnx model leaves open; NAME=1:64: each call chooses it; may be repeated",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="of an input with open sizes; may be repeated",
    )


def kind_of(path, what="model"):
    """The ending that says what a file holds."""
    ending = Path(path).suffix.lower()
    if ending not in KINDS:
        raise CommandError(
            f"{what}: expected a file whose name ends in {', '.join(KINDS)}, got '{path}'", USAGE
        )
    return ending


def check_is_there(path):
    if not os.path.isfile(path):
        raise CommandError(f"{path}: expected a file of a model, there is none")


def read_sizes(given):
    """{name: number, or the Dim of a range} of "batch=8" and "batch=1:64"."""
    import tenon

    sizes = {}
    for text in given:
        name, equal, size = text.partition("=")
        low, colon, high = size.partition(":")
        numbers = [low, high] if colon else [low]
        if not equal or not name or not all(number.isdecimal() for number in numbers):
            raise CommandError(f"--size: expected NAME=8 or NAME=1:64, got '{text}'", USAGE)
        sizes[name] = tenon.Dim(name, min=int(low), max=int(high)) if colon else int(low)
    return sizes


def read_shapes(given, names):
    """{name: shape} of "x=1x3x224x224"; nothing behind the sign is a shape without axes."""
    shapes = {}
    for text in given:
        name, equal, sizes = text.rpartition("=")
        numbers = sizes.split("x") if sizes else []
        if name not in names or not all(number.isdecimal() for number in numbers):
            raise CommandError(
                f"--shape: expected NAME=1x3x224x224 with one of the inputs {', '.join(names)}, got '{text}'",
                USAGE,
            )
        shapes[name] = [int(number) for number in numbers]
    return shapes


def input_names(path):
    """Of a model whose open sizes can be given."""
    import tenon

    kind = kind_of(path)
    if kind == ".onnx":
        return [value["name"] for value in tenon.onnx.describe(path)["inputs"]]
    return tenon.paddle.input_names(path) if kind in PADDLE else []


def read_program(path, sizes=None, shapes=None):
    """The program in a file of any kind. `sizes` and `shapes`: of a .onnx model."""
    import tenon

    check_is_there(path)
    kind = kind_of(path)
    if kind in PADDLE and not sizes:
        try:
            return tenon.paddle.load(path, shapes=shapes)
        except (ValueError, NotImplementedError) as error:
            raise CommandError(str(error)) from None
    if kind != ".onnx" and (sizes or (shapes and kind == ".pt2")):
        raise CommandError(
            f"--size: expected with a .onnx model, whose sizes are open; those of {path} are part of it",
            USAGE,
        )
    if kind == ".tenon":
        return tenon.jit.load(path)
    if kind == ".pt2":
        try:
            return tenon.torch.load(path)
        except ImportError as error:
            raise CommandError(str(error)) from None
    check_sizes(path, sizes or {}, shapes or {})
    return tenon.onnx.load(path, sizes=sizes, shapes=shapes)


def check_sizes(path, sizes, shapes):
    """Whether `sizes` and `shapes` are what a .onnx model leaves open, and all of it."""
    import tenon

    check_is_there(path)
    inputs = tenon.onnx.describe(path)["inputs"]
    known = {size for value in inputs for size in value["shape"] or () if isinstance(size, str)}
    for name in sizes:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise CommandError(
                f"--size: expected an open size of the model ({listed}), got '{name}'", USAGE
            )
    for value in inputs:
        name, shape = value["name"], value["shape"]
        if name in shapes:
            continue
        if shape is None or None in shape or value.get("kind") == "sequence":
            raise CommandError(
                f"{path}: the shape of input '{name}' is open (here: --shape {name}=1x3x224x224)",
                USAGE,
            )
        for axis, size in enumerate(shape):
            if isinstance(size, str) and size not in sizes:
                raise CommandError(
                    f"{path}: the size of axis {axis} of input '{name}', `{size}`, is open "
                    f"(here: --size {size}=8, or {size}=1:64 for any of a range)",
                    USAGE,
                )


@contextmanager
def as_program_file(path, sizes=None):
    """The path of a .tenon file for one or a .pt2 file, which is there inside the block."""
    check_is_there(path)
    if kind_of(path) == ".tenon":
        read_nothing_of(path, sizes)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="tenon-model-") as folder:
        made = os.path.join(folder, Path(path).stem + ".tenon")
        read_program(path, sizes).save(made)
        yield made


def read_nothing_of(path, sizes):
    if sizes:
        raise CommandError(
            f"--size: expected with a .onnx model, whose sizes are open; those of {path} are part of it",
            USAGE,
        )


@contextmanager
def as_onnx_file(path, sizes=None, shapes=None):
    """The path of a .onnx file for a model of any kind, which is there inside the block."""
    import tenon

    check_is_there(path)
    if kind_of(path) == ".onnx":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="tenon-model-") as folder:
        made = os.path.join(folder, Path(path).stem + ".onnx")
        tenon.onnx.export(read_program(path, sizes, shapes), made)
        yield made
