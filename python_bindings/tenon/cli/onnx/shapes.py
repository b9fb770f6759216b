# SPDX-License-Identifier: Apache-2.0
"""Compare dtypes and shapes of a model's values with what the model says of them, and with ONNX's shape inference where the
package onnx is installed. The exit code is 1 where they differ."""

import tenon.onnx
from tenon.cli.errors import FAILED
from tenon.cli.onnx import common

HELP = "compare shapes of a model's values with ONNX's"


def add_arguments(parser):
    common.add_model_options(parser)


def run(arguments):
    options = common.read_options(arguments)
    with common.told_as_options():
        found = tenon.onnx.check_shapes(arguments.model, **options)
    print(found)
    return None if found.passed else FAILED
