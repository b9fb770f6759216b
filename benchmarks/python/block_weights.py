# SPDX-License-Identifier: Apache-2.0
"""Products with weights in blocks of four or eight bits: `linear_blocks` beside ONNX Runtime's `MatMulNBits`.

    python block_weights.py [--quick] [--only float32] [--threads 1] [--json results.json]

A weight of 4096 x 4096 numbers of four or eight bits with a factor for each 32, or each 128, which Tenon reads in float16 and ONNX
Runtime in float32; Tenon has them as 'q4_0' and 'q8_0', in which 128 numbers repeat their factor. Its accuracy level 1 computes in float32; level 4 rounds `x` to 8 bits before the product, as `activations='int8'`
does.
"""

from __future__ import annotations

import re
import timeit

import numpy as np
from _libraries import Built, Case, limit_threads, measure, start
from _report import Report, parser

SIZE = 4096
LEVELS = {"float32": (1, 1e-4), "x in 8 bits": (4, 0.05)}
ACTIVATIONS = {1: "float", 4: "int8"}


def arrays(rows: int, block: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, codes [out, blocks, block] and factors [out, blocks]."""
    generator = np.random.default_rng(2)
    x = generator.standard_normal((rows, SIZE), dtype="float32")
    codes = generator.integers(0, 1 << bits, (SIZE, SIZE // block, block), dtype="uint8")
    factors = generator.uniform(0.001, 0.01, codes.shape[:2]).astype("float16")
    return x, codes, factors


def tenon_call(tenon, x, codes, factors, bits, level):
    codes, factors = codes.reshape(SIZE, -1, 32), np.repeat(factors, codes.shape[2] // 32, 1)
    if bits == 4:
        codes = codes[..., :16] | codes[..., 16:] << 4
    else:
        codes = codes ^ 128
    blocks = np.concatenate([factors[..., None].view("uint8"), codes], -1)
    x, weight = tenon.tensor(x), tenon.tensor(blocks.reshape(SIZE, -1))
    form, activations = f"q{bits}_0", ACTIVATIONS[level]
    return lambda: tenon.linear_blocks(x, weight, form, activations=activations)


def onnxruntime_call(onnxruntime, x, codes, factors, bits, level, threads):
    from onnx import TensorProto, helper, numpy_helper

    block = codes.shape[2]
    if bits == 4:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    node = helper.make_node(
        "MatMulNBits",
        ["x", "codes", "factors"],
        ["out"],
        domain="com.microsoft",
        K=SIZE,
        N=SIZE,
        bits=bits,
        block_size=block,
        accuracy_level=level,
    )
    constants = {"codes": codes, "factors": factors.astype("float32").reshape(-1)}
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, SIZE])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None, SIZE])],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"x": x})[0]


def build(library: str, case: Case, options):
    """What a case is in a library's process."""
    module = start(library, options.threads)
    bits, level = case.parameters["bits"], case.parameters["level"]
    given = (*arrays(case.parameters["rows"], case.parameters["block"], bits), bits, level)
    if library == "tenon":
        call = tenon_call(module, *given)
    else:
        call = onnxruntime_call(module, *given, options.threads)
    return Built(timeit.Timer(call), call)


def main() -> None:
    options = parser(__doc__, rounds=7, threads=0, peers=("onnxruntime",)).parse_args()
    report = Report("block_weights", options)
    only, options.only = options.only, ""
    options.threads = options.threads or 1
    limit_threads(options.threads)
    group = f"{options.threads} thread{'s' * (options.threads > 1)}"
    cases = [
        Case(
            f"{rows} x {SIZE} x {SIZE}, {bits} bits by {block}, {name}", group, tolerance=tolerance
        )
        for rows in ((1,) if options.quick else (1, 8, 16, 64, 512))
        for bits in (4, 8)
        for block in (32, 128)
        for name, (level, tolerance) in LEVELS.items()
    ]
    for case in cases:
        rows, bits, block, name = re.match(
            r"(\d+) x .*, (\d) bits by (\d+), (.*)", case.name
        ).groups()
        case.parameters.update(rows=int(rows), bits=int(bits), block=int(block))
        case.parameters["level"] = LEVELS[name][0]
    measure([case for case in cases if re.search(only, case.name)], build, options, report)
    report.close()


if __name__ == "__main__":
    main()
