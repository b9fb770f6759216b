# SPDX-License-Identifier: Apache-2.0
"""Operators that PaddlePaddle runs in its older programs alone, in a process of its own: a list of calls on the standard input, their results on the
standard output, as JSON."""

import json
import os
import sys

os.environ["FLAGS_enable_pir_api"] = "0"

import numpy as np
import paddle


def fed(value, lengths):
    tensor = paddle.base.core.DenseTensor()
    tensor.set(value, paddle.CPUPlace())
    tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def run(op, inputs, outputs, attributes):
    """Inputs are [array, dtype, lengths or None] by name, outputs dtypes by name. `MaxIndex` has no value where nothing is trained."""
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        block = program.global_block()
        feed, variables = {}, {}
        for name, (values, dtype, lengths) in inputs.items():
            array = np.array(values, dtype)
            level = len(lengths) if lengths else 0
            variables[name] = [
                block.create_var(name=name, shape=array.shape, dtype=dtype, lod_level=level)
            ]
            feed[name] = fed(array, lengths) if lengths else array
        results = {
            name: [block.create_var(name=f"{name}.out", dtype=dtype)]
            for name, dtype in outputs.items()
        }
        block.append_op(type=op, inputs=variables, outputs=results, attrs=attributes)
        fetched = paddle.static.Executor(paddle.CPUPlace()).run(
            program,
            feed=feed,
            fetch_list=[each[0] for name, each in results.items() if name != "MaxIndex"],
            return_numpy=False,
        )
    return [np.array(each).tolist() for each in fetched]


if __name__ == "__main__":
    paddle.enable_static()
    json.dump([run(*call) for call in json.load(sys.stdin)], sys.stdout)
