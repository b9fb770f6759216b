# SPDX-License-Identifier: Apache-2.0
"""Tenon's own paths beside one another, in less than a minute: does each keep its distance?

    benchmarks/run guard [--strict]

A test that compares values does not notice a path that is lost or has become slow. Each row here is a ratio
of rates of two of Tenon's own paths, with a bound that leaves a wide margin for noise. The two take turns,
and the fastest of their turns count. A row below its bound is a warning; with --strict it is a failure.
Rows that need instructions or threads that this machine lacks are left out, and the table says so.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import tenon

ROUNDS = 7
TURN = 0.02  # seconds


@dataclass(frozen=True)
class Row:
    name: str
    fast: Callable
    slow: Callable
    least: float  # rate of `fast` over rate of `slow`
    work: float = 1  # of `fast`, in units of what `slow` does
    needs: str = ""  # a flag of /proc/cpuinfo
    threads: int = 1  # that `fast` runs on; `slow` has one


def processor_flags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":", 1)[1].split())
    return set()


def seconds(function):
    """Of one call, the mean over a turn."""
    calls, start = 0, time.perf_counter()
    while True:
        function()
        calls += 1
        spent = time.perf_counter() - start
        if spent > TURN:
            return spent / calls


def ratio(row):
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for i, (function, threads) in enumerate(((row.fast, row.threads), (row.slow, 1))):
            tenon.set_num_threads(threads)
            function()
            best[i] = min(best[i], seconds(function))
    tenon.set_num_threads(1)
    return best[1] / best[0] * row.work


def channels_last(x):
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def rows():
    square = tenon.normal((512, 512))
    bfloat16, int8 = square.to("bfloat16"), (square * 9).to("int8")
    large = tenon.normal((1024, 1024))
    images, weight = tenon.normal((2, 64, 56, 56)), tenon.normal((64, 64, 3, 3))
    images_last = channels_last(images)
    images_half, weight_half = images.to("bfloat16"), weight.to("bfloat16")
    # The convolution as a matrix product of the same number of multiplications.
    left, right = tenon.normal((64, 576)), tenon.normal((576, 2 * 56 * 56))
    query = tenon.normal((1, 8, 512, 64))
    small, leaf = tenon.ones((4,)), tenon.ones((4,), dtype="float32").requires_grad_()
    vector = tenon.normal((1 << 16,))
    doubles = vector.to("float64")

    def convolve(x, w):
        return lambda: tenon.conv2d(x, w, None, 1, 1)

    def attend(x):
        return lambda: tenon.scaled_dot_product_attention(x, x, x)

    def composed_attention():
        scores = tenon.softmax(query @ query.transpose(-1, -2) * 0.125, -1)
        return scores @ query

    multiply = lambda x: lambda: x @ x  # noqa: E731
    yield Row(
        "matmul, bfloat16 / float32", multiply(bfloat16), multiply(square), 1.5, 1, "avx512_bf16"
    )
    yield Row(
        "matmul, int8 / float32",
        lambda: tenon.matmul_integer(int8, int8),
        multiply(square),
        1.5,
        1,
        "avx512_vnni",
    )
    yield Row("matmul, float32 / float64", multiply(square), multiply(square.to("float64")), 1.5)
    yield Row("matmul, 1024 / 512", multiply(large), multiply(square), 0.7, 8)
    yield Row("matmul, transposed / plain", lambda: square @ square.T, multiply(square), 0.7)
    yield Row("conv2d 3x3 / GEMM of its size", convolve(images, weight), lambda: left @ right, 0.8)
    yield Row(
        "conv2d 3x3, NHWC / NCHW", convolve(images_last, weight), convolve(images, weight), 0.6
    )
    yield Row(
        "conv2d 3x3, NCHW / NHWC", convolve(images, weight), convolve(images_last, weight), 0.6
    )
    yield Row(
        "conv2d 3x3, bfloat16 / float32",
        convolve(images_half, weight_half),
        convolve(images, weight),
        0.7,
        1,
        "avx512_bf16",
    )
    yield Row("attention / its composition", attend(query), composed_attention, 1.0)
    yield Row(
        "attention, bfloat16 / float32",
        attend(query.to("bfloat16")),
        attend(query),
        1.0,
        1,
        "avx512_bf16",
    )
    yield Row("exp, float32 / float64", lambda: tenon.exp(vector), lambda: tenon.exp(doubles), 1.3)
    yield Row("call, recorded / plain", lambda: leaf + small, lambda: small + small, 0.2)
    yield Row("matmul, 2 threads / 1", multiply(large), multiply(large), 1.3, 1, "", 2)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--strict", action="store_true", help="fail where a row is below its bound"
    )
    strict = arguments.parse_known_args()[0].strict
    flags, processors = processor_flags(), len(os.sched_getaffinity(0))
    print("| path | ratio of rates | at least | |\n|---|---|---|---|")
    below = []
    for row in rows():
        if (row.needs and row.needs not in flags) or row.threads > processors:
            missing = row.needs if row.needs not in flags else f"{row.threads} processors"
            print(f"| {row.name} | - | {row.least} | left out: needs {missing} |")
            continue
        got = ratio(row)
        if got < row.least:  # once more: the machine may have been busy
            got = max(got, ratio(row))
        print(
            f"| {row.name} | {got:.2f} | {row.least} | {'' if got >= row.least else 'below'} |",
            flush=True,
        )
        below += [row.name] if got < row.least else []
    if below:
        print(
            f"guard: {'error' if strict else 'warning'}: below their bounds: {'; '.join(below)}",
            file=sys.stderr,
        )
    return 1 if below and strict else 0


if __name__ == "__main__":
    sys.exit(main())
