# SPDX-License-Identifier: Apache-2.0
"""Time a model: until the first result, and once it is warm; beside ONNX Runtime, if that is installed.

    tenon benchmark model.tenon --shape x=1x3x224x224 --runs 200
    tenon benchmark model.onnx --beside onnxruntime --steps

Inputs are numbers between 0 and 1, or zeros for other dtypes than floats. Both run with the process's number of threads
(TENON_NUM_THREADS), each in a loop of its own, so that neither evicts the other's weights from the caches. A ratio below 1 says
that Tenon is faster.
"""

import statistics
import sys
import time

from tenon.cli import model_files, output, plot, predictor
from tenon.cli.errors import USAGE, CommandError

HELP = "time a model"


def add_arguments(parser):
    predictor.add_predictor_options(parser)
    model_files.add_size_options(parser)
    parser.add_argument("--runs", type=int, default=100, help="of which the median is taken (100)")
    parser.add_argument("--warmup", type=int, default=10, help="runs before these (10)")
    parser.add_argument("--beside", choices=["onnxruntime"], help="time it there, too")
    parser.add_argument("--steps", action="store_true", help="show which steps take the time")
    output.add_json_option(parser)


def run(arguments):
    import tenon

    if arguments.runs < 1 or arguments.warmup < 0:
        raise CommandError("expected --runs from 1 and --warmup from 0 on", USAGE)
    if arguments.beside:
        _check_runtime()
    sizes = model_files.read_sizes(arguments.size)
    names = predictor.input_names(arguments.program)
    shapes = {} if names is None else model_files.read_shapes(arguments.shape, names)
    begin = time.perf_counter()
    with predictor.open_predictor(arguments, sizes, shapes) as made:
        inputs = _inputs(made, arguments.shape)
        tenon.manual_seed(0)
        own = _timed("tenon", lambda: _finished(made.run(inputs)), begin, arguments)
        row = {
            "program": arguments.program,
            "device": made.setting("device"),
            "threads": tenon.get_num_threads(),
            **own,
            "runs": arguments.runs,
        }
    times = {"tenon": row.pop("times")}
    if arguments.beside:
        given_shapes = {name: list(value.shape) for name, value in inputs.items()}
        with model_files.as_onnx_file(arguments.program, sizes, given_shapes) as path:
            other = _beside(path, inputs, arguments, row["threads"])
        times[arguments.beside] = other.pop("times")
        row["beside"] = {arguments.beside: other}
        row["ratio"] = row["median_us"] / other["median_us"]
    profile = _profile(arguments, sizes, shapes, inputs) if arguments.steps else ""
    if arguments.json:
        output.print_json(row)
    else:
        _print(row, times, profile)


def _check_runtime():
    try:
        import onnxruntime  # noqa: F401 - whether it is there
    except ImportError as error:
        raise CommandError(
            f"--beside onnxruntime: expected the package onnxruntime, which is not there ({error}); "
            "pip install onnxruntime"
        ) from None


def _timed(label, call, begin, arguments):
    """Milliseconds from `begin` to the first result, and microseconds of the runs."""
    from tenon.utils import progress

    call()
    first = time.perf_counter() - begin
    for _ in range(arguments.warmup):
        call()
    times = []
    rounds = range(arguments.runs)
    for _ in progress(rounds, label) if sys.stderr.isatty() else rounds:
        start = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - start))
    ordered = sorted(times)
    return {
        "first_result_ms": 1e3 * first,
        "median_us": statistics.median(times),
        "fastest_us": ordered[0],
        "p90_us": ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)],
        "times": times,
    }


def _beside(path, inputs, arguments, threads):
    import onnxruntime

    begin = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    if set(names) - set(inputs):  # a program's own names are not always free in a model
        feeds = dict(zip(names, (value.cpu().numpy() for value in inputs.values())))
    else:
        feeds = {name: inputs[name].cpu().numpy() for name in names}
    made = _timed("onnxruntime", lambda: session.run(None, feeds), begin, arguments)
    return {"version": onnxruntime.__version__, **made}


def _profile(arguments, sizes, shapes, inputs):
    """Times of steps, by a predictor of its own: steps that are timed run one by one."""
    with predictor.open_predictor(arguments, sizes, shapes, profile=True) as made:
        for _ in range(max(1, min(arguments.runs, 20))):
            _finished(made.run(inputs))
        return made.profile()


def _print(row, times, profile):
    print(f"{row['program']} on {row['device']}, threads: {row['threads']}, runs: {row['runs']}")
    lines = [["", "first result ms", "median us", "fastest us", "90 % us", "ratio"]]
    lines.append(_line("tenon", row, ""))
    for name, other in row.get("beside", {}).items():
        lines.append(_line(f"{name} {other['version']}", other, f"{row['ratio']:.2f}"))
    output.print_table(lines)
    print("\ntimes of runs, us")
    print(plot.histograms(times))
    if profile:
        print("\nsteps")
        print(profile, end="")


def _line(name, row, ratio):
    numbers = (row[key] for key in ("first_result_ms", "median_us", "fastest_us", "p90_us"))
    return [name, *(f"{number:.1f}" for number in numbers), ratio]


def _inputs(made, shapes):
    import tenon

    given = model_files.read_shapes(shapes, made.inputs)
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
