# SPDX-License-Identifier: Apache-2.0
"""Write a model in another format, which the ending of the second name says.

    tenon convert model.onnx model.tenon --size batch=1:64
    tenon convert model.tenon model.onnx --opset 21
    tenon convert model.pt2 model.tenon        what torch.export.save wrote
    tenon convert inference.json model.tenon   what Paddle saved; .pdmodel, too, with .pdiparams beside it

--verify runs both and compares the results with ONNX Runtime's.
"""

import os
import sys
import time
from contextlib import contextmanager

from tenon.cli import model_files, output
from tenon.cli.errors import USAGE, CommandError

HELP = "write a model in another format"


def add_arguments(parser):
    parser.add_argument("source", help="a .tenon, .onnx, .pt2, .json or .pdmodel file")
    parser.add_argument("target", help="a .tenon or .onnx file, which is overwritten")
    model_files.add_size_options(parser)
    parser.add_argument("--opset", type=int, help="of a .onnx file (20)")
    parser.add_argument(
        "--external-data", action="store_true", help="weights in a file beside the .onnx file"
    )
    parser.add_argument(
        "--freeze", action="store_true", help="compute once what follows from weights alone"
    )
    parser.add_argument("--verify", action="store_true", help="compare with ONNX Runtime's results")
    output.add_json_option(parser)


def run(arguments):
    import tenon

    source, target = arguments.source, arguments.target
    kinds = model_files.kind_of(source, "source"), model_files.kind_of(target, "target")
    if kinds[1] not in (".tenon", ".onnx"):
        writer = "PyTorch" if kinds[1] == ".pt2" else "Paddle"
        raise CommandError(
            f"target: expected .tenon or .onnx; only {writer} writes {kinds[1]} files", USAGE
        )
    if kinds[1] != ".onnx" and (arguments.opset is not None or arguments.external_data):
        raise CommandError(
            f"--opset and --external-data are for .onnx files, got target '{target}'", USAGE
        )
    if os.path.realpath(source) == os.path.realpath(target):
        raise CommandError(f"expected a target other than the source '{source}'", USAGE)
    if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
        raise CommandError(f"{target}: its folder is not there")
    if arguments.verify and ".onnx" not in kinds:
        raise CommandError(
            "--verify: expected a .onnx file on one side, which ONNX Runtime can read", USAGE
        )
    sizes = model_files.read_sizes(arguments.size)
    model_files.check_is_there(source)
    shapes = model_files.read_shapes(arguments.shape, model_files.input_names(source))
    with _step(f"reading {source}"):
        program = model_files.read_program(source, sizes, shapes)
    if arguments.freeze:
        with _step("freezing"):
            program = program.freeze()
    with _step(f"writing {target}"):
        if kinds[1] == ".tenon":
            program.save(target)
        else:
            more = {"opset": arguments.opset} if arguments.opset is not None else {}
            apart = True if arguments.external_data else None
            tenon.onnx.export(program, target, external_data=apart, **more)
    row = {
        "source": source,
        "target": target,
        "steps": program._native.nsteps,
        "weights_bytes": sum(t.numel() * t.dtype.itemsize for t in program.leaves.values()),
        "source_bytes": os.path.getsize(source),
        "target_bytes": os.path.getsize(target),
    }
    if arguments.verify:
        with _step("verifying"):
            found = _verification(program, source, target, kinds, sizes, shapes)
        row["equal"] = found.passed
    if arguments.json:
        output.print_json(row)
    else:
        output.print_table([[key, value] for key, value in row.items()])
        if arguments.verify:
            print(found)
    return None if row.get("equal", True) else 1


def _verification(program, source, target, kinds, sizes, shapes):
    import tenon

    least = {name: getattr(size, "min", size) for name, size in sizes.items()}
    try:
        if kinds[0] == ".onnx":
            return tenon.onnx.verify(source, sizes=least, shapes=shapes)
        return tenon.onnx.verify(program)
    except ImportError as error:
        raise CommandError(f"--verify: {error}") from None


@contextmanager
def _step(text):
    """Say on a terminal what is done, and how long it took."""
    is_shown = sys.stderr.isatty()
    if is_shown:
        print(f"{text} ...", end="", file=sys.stderr, flush=True)
    begin = time.perf_counter()
    yield
    if is_shown:
        print(f" {time.perf_counter() - begin:.2f} s", file=sys.stderr)
