# SPDX-License-Identifier: Apache-2.0
"""Find the first node of a model whose value differs from another runtime's. The exit code is 1 where there is one.

tenon onnx bisect model.onnx --size batch=2
"""

import sys

import tenon.onnx
from tenon.cli.errors import FAILED
from tenon.cli.onnx import common

HELP = "find the first node whose value differs"


def add_arguments(parser):
    common.add_model_options(parser)
    common.add_comparison_options(parser)


def run(arguments):
    options = common.read_comparison(arguments)
    is_shown = sys.stderr.isatty()

    def progress(done, total):
        if is_shown:
            print(f"\rcompared {done} of {total} nodes", end="", file=sys.stderr, flush=True)

    with common.told_as_options():
        found = tenon.onnx.bisect(arguments.model, progress=progress, **options)
    if is_shown:
        print(file=sys.stderr)
    if found is None:
        print(f"no node differs from {arguments.reference}")
        return None
    print(found)
    return FAILED
