# SPDX-License-Identifier: Apache-2.0
"""Time an exported program: until the first result, and once it is warm.

    tenon benchmark model.tenon --shape x=1x3x224x224 --runs 200

Inputs are numbers between 0 and 1, or zeros for other dtypes than floats. Times are of the process's threads
(TENON_NUM_THREADS).
"""

import statistics
import time

from tenon.cli import output, predictor
from tenon.cli.errors import USAGE, CommandError

HELP = "time an exported program"


def add_arguments(parser):
    predictor.add_predictor_options(parser)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="of an input with open sizes; others are known",
    )
    parser.add_argument("--runs", type=int, default=100, help="of which the median is taken (100)")
    parser.add_argument("--warmup", type=int, default=10, help="runs before these (10)")
    output.add_json_option(parser)


def run(arguments):
    import tenon

    if arguments.runs < 1 or arguments.warmup < 0:
        raise CommandError("expected --runs from 1 and --warmup from 0 on", USAGE)
    begin = time.perf_counter()
    made = predictor.make_predictor(arguments)
    inputs = _inputs(made, arguments.shape)
    tenon.manual_seed(0)
    _finished(made.run(inputs))
    first = time.perf_counter() - begin
    for _ in range(arguments.warmup):
        _finished(made.run(inputs))
    times = []
    for _ in range(arguments.runs):
        begin = time.perf_counter()
        _finished(made.run(inputs))
        times.append(time.perf_counter() - begin)
    row = {
        "program": arguments.program,
        "device": made.setting("device"),
        "threads": tenon.get_num_threads(),
        "first_result_ms": 1e3 * first,
        "median_us": 1e6 * statistics.median(times),
        "fastest_us": 1e6 * min(times),
        "runs": arguments.runs,
    }
    if arguments.json:
        output.print_json(row)
    else:
        output.print_table(
            [
                [key, f"{value:.1f}" if isinstance(value, float) else value]
                for key, value in row.items()
            ]
        )


def _inputs(made, shapes):
    import tenon

    given = {}
    for text in shapes:
        name, equal, sizes = text.rpartition("=")
        if name not in made.inputs or not all(
            size.isdecimal() for size in sizes.split("x") if sizes
        ):
            raise CommandError(
                f"--shape: expected NAME=1x3x224x224 with one of the inputs {', '.join(made.inputs)}, "
                f"got '{text}'",
                USAGE,
            )
        given[name] = [int(size) for size in sizes.split("x")] if sizes else []
    recorded = {dim.name: dim.min for dim in made.dimensions}
    inputs = {}
    for value in made.inputs.values():
        shape = given.get(value.name, [recorded.get(size, size) for size in value.shape])
        is_float = value.dtype in (tenon.float16, tenon.bfloat16, tenon.float32, tenon.float64)
        made_value = tenon.rand(*shape) if is_float else tenon.zeros(shape)
        inputs[value.name] = made_value.to(value.dtype)
    return inputs


def _finished(outputs):
    """Wait for the device: a copy of the last output cannot begin earlier."""
    for value in outputs.values():
        if value.device.type != "cpu":
            value.to("cpu")
