# SPDX-License-Identifier: Apache-2.0
"""Compare a model's results with those of another runtime, or with saved ones. The exit code is 1 where they differ.

tenon onnx verify model.onnx --size batch=2
tenon onnx verify model.onnx --data test_data_set_0     input_0.pb, output_0.pb, ...
"""

import tenon.onnx
from tenon.cli import output
from tenon.cli.errors import FAILED
from tenon.cli.onnx import common

HELP = "compare a model's results with another runtime's"


def add_arguments(parser):
    common.add_model_options(parser)
    common.add_comparison_options(parser)
    parser.add_argument(
        "--data", metavar="FOLDER", help="saved inputs and results in the place of a runtime"
    )
    output.add_json_option(parser)


def run(arguments):
    options = common.read_comparison(arguments)
    with common.told_as_options():
        found = tenon.onnx.verify(arguments.model, data=arguments.data, **options)
    rows = [(name, each) for name, outputs in found.sets for each in outputs]
    if arguments.json:
        output.print_json(
            {
                "equal": found.passed,
                "reference": found.reference,
                "results": [
                    {
                        "set": name,
                        "name": each.name,
                        "dtype": each.dtype,
                        "shape": list(each.shape),
                        "equal": each.passed,
                        "differing": each.differing,
                        "largest_error": each.absolute,
                        "largest_relative_error": each.relative,
                        "problem": each.problem,
                    }
                    for name, each in rows
                ],
            }
        )
        return None if found.passed else FAILED
    lines = [["RESULT", "TYPE", "DIFFERING", "LARGEST ERROR", "RELATIVE", ""]]
    for name, each in rows:
        lines.append(
            [
                f"{name}/{each.name}" if name else each.name,
                f"{each.dtype}{list(each.shape)}",
                f"{each.differing} of {each.size}",
                f"{each.absolute:.3g}",
                f"{each.relative:.3g}",
                "equal" if each.passed else "different",
            ]
        )
    output.print_table(lines, {5: lambda text: {"equal": "green", "different": "red"}.get(text)})
    for _, each in rows:
        if not each.passed:
            print(each)
    print(f"beside {found.reference}, rtol {found.rtol:g}, atol {found.atol:g}")
    return None if found.passed else FAILED
