# SPDX-License-Identifier: Apache-2.0
"""Ratios between Tenon's own paths, with wide margins.

    python guard.py [--strict] [--only convolution] [--json results.json]

A path that is no longer taken, or that was compiled badly, gives the same values as before, so that no
test of values notices. Each row times two calls in turns and compares their rates, which says as much on
any machine. A rate below its limit is a warning; with --strict it is a failure. No peer is needed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from operator import add, matmul

import tenon
from _protocol import Times, Turns, interleave, use_by_others

BUDGET = 50.0  # seconds: rows that are left then are not measured
ROUNDS = 7
BUSY = 0.25  # processors that others may use while two threads are compared with one


@dataclasses.dataclass
class Limit:
    """The rate of `call` is at least `least` times that of `beside`, where the processor has `needs`."""

    call: str
    beside: str
    least: float
    needs: str = ""
    threads: int = 1

    @property
    def name(self) -> str:
        return f"{self.call} on {self.threads} threads" if self.threads > 1 else self.call


# The limits are about half of what an AMD EPYC (Zen 4) reaches. A path that is not vectorised, or that
# does not use the instructions it is meant to use, lies far below them.
LIMITS = [
    Limit("GEMM float32", "add", 3.0),  # floating-point operations of each
    Limit("GEMM float64", "GEMM float32", 0.3),
    Limit("GEMM float16", "GEMM float32", 0.5),
    Limit("GEMM bfloat16", "GEMM float32", 0.5),
    Limit("GEMM bfloat16", "GEMM float32", 1.5, "avx512_bf16"),
    Limit("GEMM int8", "GEMM float32", 1.5, "avx512_vnni"),
    Limit("GEMM, A transposed", "GEMM float32", 0.6),
    Limit("GEMM, B transposed", "GEMM float32", 0.6),
    Limit("GEMM, batch of 64x64x64", "GEMM float32", 0.4),
    Limit("GEMM, 8 rows", "GEMM float32", 0.3),
    Limit("GEMM, 1 row", "GEMM float32", 0.1),
    Limit("GEMM, 1 row, B transposed", "GEMM float32", 0.1),
    Limit("convolution 3x3", "GEMM float32", 0.9),
    Limit("convolution 3x3, stride 2", "GEMM float32", 0.4),
    Limit("convolution 1x1", "GEMM float32", 0.4),
    Limit("convolution 3x3, depthwise", "GEMM float32", 0.2),
    Limit("convolution 3x3, NHWC", "convolution 3x3", 0.5),
    Limit("convolution 3x3, stride 2, NHWC", "convolution 3x3, stride 2", 0.5),
    Limit("convolution 1x1, NHWC", "convolution 1x1", 0.5),
    Limit("convolution 3x3, depthwise, NHWC", "convolution 3x3, depthwise", 0.4),
    Limit("convolution 3x3, input gradient", "convolution 3x3", 0.5),
    Limit("convolution 3x3, weight gradient", "convolution 3x3", 0.5),
    Limit("convolution 3x3, bfloat16", "GEMM float32", 1.1, "avx512_bf16"),
    Limit("convolution 3x3, stride 2, bfloat16", "convolution 3x3, stride 2", 1.2, "avx512_bf16"),
    Limit("max_pool2d, NHWC", "max_pool2d", 0.5),
    Limit("attention", "GEMM float32", 0.35),
    Limit("attention, causal", "attention", 0.45),
    Limit("attention, float16", "attention", 0.5),
    Limit("attention, bfloat16", "attention", 1.2, "avx512_bf16"),
    Limit("add, both transposed", "add", 0.5),
    Limit("add, one transposed", "add", 0.1),
    Limit("add, broadcast row", "add", 0.4),
    Limit("add, broadcast column", "add", 0.4),
    Limit("add float64", "add", 0.25),
    Limit("add float16", "add", 0.3),
    Limit("add bfloat16", "add", 0.3),
    Limit("exp", "add", 0.15),
    Limit("exp float64", "exp", 0.15),
    Limit("pow", "exp", 0.12),
    Limit("pow float64", "exp float64", 0.08),
    Limit("sum", "add", 0.7),
    Limit("sum along columns", "sum along rows", 0.4),
    Limit("max along columns", "sum along columns", 0.3),
    Limit("softmax", "exp", 0.1),
    Limit("layer_norm", "add", 0.12),
    Limit("call, recorded", "call", 0.25),
    Limit("reshape", "call", 0.25),
    Limit("GEMM, large", "GEMM, large", 1.3, threads=2),
    Limit("convolution 3x3", "convolution 3x3", 1.2, threads=2),
]


def operand(*shape: int):
    return tenon.normal(shape) * 10


def channels_last(x):
    """The same numbers, with a channel stride of 1."""
    return x.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])


def gemm_calls() -> Iterable[tuple[str, float, Callable]]:
    n = 512
    work = 2 * n**3
    a, b = operand(n, n), operand(n, n)
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        yield f"GEMM {dtype}", work, partial(matmul, a.to(dtype), b.to(dtype))
    yield "GEMM int8", work, partial(tenon.matmul_integer, a.to("int8"), b.to("int8"))
    yield "GEMM, A transposed", work, partial(matmul, a.T, b)
    yield "GEMM, B transposed", work, partial(matmul, a, b.T)
    batch = operand(64, 64, 64)
    yield "GEMM, batch of 64x64x64", 2 * 64**4, partial(matmul, batch, batch)
    for rows, name in ((8, "GEMM, 8 rows"), (1, "GEMM, 1 row")):
        x = operand(rows, n)
        yield name, 2 * rows * n * n, partial(matmul, x, b)
        yield f"{name}, B transposed", 2 * rows * n * n, partial(matmul, x, b.T)
    large = operand(1024, 1024)
    yield "GEMM, large", 2 * 1024**3, partial(matmul, large, large)


def convolution_calls() -> Iterable[tuple[str, float, Callable]]:
    channels, side = 64, 56
    x = operand(1, channels, side, side)
    kinds = {
        "convolution 3x3": ((channels, channels, 3, 3), [1], [1], 1),
        "convolution 3x3, stride 2": ((channels, channels, 3, 3), [2], [1], 1),
        "convolution 1x1": ((channels, channels, 1, 1), [1], [0], 1),
        "convolution 3x3, depthwise": ((channels, 1, 3, 3), [1], [1], channels),
    }
    for name, (shape, stride, padding, groups) in kinds.items():
        w = operand(*shape)
        settings = (stride, padding, [1], groups)
        out = tenon.conv2d(x, w, None, *settings)
        work = 2 * out.numel() * w.numel() // channels
        variants = {
            "": partial(tenon.conv2d, x, w),
            ", NHWC": partial(tenon.conv2d, channels_last(x), w),
            ", bfloat16": partial(tenon.conv2d, x.to("bfloat16"), w.to("bfloat16")),
        }
        for variant, call in variants.items():
            yield name + variant, work, partial(call, None, *settings)
        input_grad = partial(tenon.conv2d_input_grad, out, w, list(x.shape), *settings)
        yield f"{name}, input gradient", work, input_grad
        weight_grad = partial(tenon.conv2d_weight_grad, out, x, list(w.shape), *settings)
        yield f"{name}, weight gradient", work, weight_grad
    for layout, images in (("", x), (", NHWC", channels_last(x))):
        pool = partial(tenon.max_pool2d, images, [2], [2], [0])
        yield f"max_pool2d{layout}", x.numel(), pool


def attention_calls() -> Iterable[tuple[str, float, Callable]]:
    heads, length, features = 8, 256, 64
    work = 4 * heads * length * length * features
    q = operand(1, heads, length, features)
    attention = tenon.scaled_dot_product_attention
    yield "attention", work, partial(attention, q, q, q)
    yield "attention, causal", work / 2, partial(attention, q, q, q, causal=True)
    for dtype in ("float16", "bfloat16"):
        yield f"attention, {dtype}", work, partial(attention, *[q.to(dtype)] * 3)


def elementwise_calls() -> Iterable[tuple[str, float, Callable]]:
    """Calls on matrices that stay in the second-level cache."""
    n = 256
    x = operand(n, n)
    calls = {
        "add": partial(add, x, x),
        "add, both transposed": partial(add, x.T, x.T),
        "add, one transposed": partial(add, x.T, x),
        "add, broadcast row": partial(add, x, operand(n)),
        "add, broadcast column": partial(add, x, operand(n, 1)),
        "sum": x.sum,
        "sum along rows": partial(x.sum, 1),
        "sum along columns": partial(x.sum, 0),
        "max along columns": partial(tenon.max, x, 0),
        "softmax": partial(tenon.softmax, x, 1),
        "layer_norm": partial(tenon.layer_norm, x),
    }
    for dtype in ("float64", "float16", "bfloat16"):
        calls[f"add {dtype}"] = partial(add, *[x.to(dtype)] * 2)
    for suffix, y in (("", x), (" float64", x.to("float64"))):
        calls[f"exp{suffix}"] = partial(tenon.exp, y)
        calls[f"pow{suffix}"] = partial(tenon.pow, tenon.abs(y), y)
    for name, call in calls.items():
        yield name, n * n, call


def single_calls() -> Iterable[tuple[str, float, Callable]]:
    x, w = operand(2, 2), operand(2, 2)
    w.requires_grad_()
    yield "call", 1, partial(add, x, x)
    yield "call, recorded", 1, partial(add, w, x)
    yield "reshape", 1, partial(x.reshape, 4)


def every_call() -> dict[str, tuple[float, Callable]]:
    """The work and the function of each call, by name."""
    makers = (gemm_calls, convolution_calls, attention_calls, elementwise_calls, single_calls)
    return {name: (work, call) for make in makers for name, work, call in make()}


def processor_flags() -> set[str]:
    """Instructions that the processor has and that the kernels in use may contain."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        return set()
    wanted = os.environ.get("TENON_CPU_ISA") or "avx512"
    if wanted not in ("avx512", "amx"):
        return set()
    # A build may lack these kernels: then the library refuses the name.
    script = "import tenon; tenon.ones(1)"
    environment = {**os.environ, "TENON_CPU_ISA": wanted}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
    return set(flags) if done.returncode == 0 else set()


class OnThreads(Turns):
    """A contestant that runs on a number of threads."""

    def __init__(self, call: Callable, threads: int):
        super().__init__(call)
        self.threads = threads

    def run(self, count: int) -> tuple[float, float]:
        tenon.set_num_threads(self.threads)
        return super().run(count)


def relative_rate(times: Times, work: float) -> float:
    """The subject's rate over the other's; of the median and the best rounds the one that is better."""
    (other,) = times.peers
    return work / min(times.ratio(other), times.best_ratio(other))


def reason_to_skip(limit: Limit, flags: set[str], busy: float) -> str:
    if limit.needs and limit.needs not in flags:
        return f"the processor or the build has no {limit.needs}"
    if limit.threads > len(os.sched_getaffinity(0)):
        return f"needs {limit.threads} processors"
    if limit.threads > 1 and busy > BUSY:
        return f"other processes use {busy:.0%} of a processor"
    return ""


def measure(limit: Limit, calls: dict[str, tuple[float, Callable]]) -> float:
    work, call = calls[limit.call]
    other_work, other = calls[limit.beside]
    contestants = {"call": OnThreads(call, limit.threads), "beside": OnThreads(other, 1)}
    best = 0.0
    for _ in range(3):  # a rate below its limit is measured again
        best = max(best, relative_rate(interleave(contestants, ROUNDS), work / other_work))
        if best >= limit.least:
            break
    return best


def judge(limits: list[Limit], rate_of: Callable[[Limit], float], skip: Callable) -> list[dict]:
    """A row for each limit: what was measured, or why nothing was."""
    rows, start = [], time.monotonic()
    for limit in limits:
        late = time.monotonic() - start > BUDGET
        reason = f"not measured within {BUDGET:.0f} s" if late else skip(limit)
        rate = None if reason else rate_of(limit)
        row = {"call": limit.name, "beside": limit.beside, "least": limit.least, "rate": rate}
        rows.append({**row, "skipped": reason, "holds": rate is None or rate >= limit.least})
        print(describe(rows[-1]), flush=True)
    return rows


def describe(row: dict) -> str:
    name = f"{row['call']} beside {row['beside']}"
    if row["skipped"]:
        return f"{name:66} skipped: {row['skipped']}"
    verdict = "" if row["holds"] else "  TOO SLOW"
    return f"{name:66} {row['rate']:7.2f}  at least {row['least']:.2f}{verdict}"


def conclude(rows: list[dict], strict: bool) -> int:
    """Says what does not hold; the exit status."""
    slow = [row for row in rows if not row["holds"]]
    if not slow:
        return 0
    names = "; ".join(f"{row['call']} beside {row['beside']} ({row['rate']:.2f})" for row in slow)
    print(
        f"guard: {'failure' if strict else 'warning'}: expected every rate above its limit, got "
        f"{len(slow)} below: {names}. Time these calls again on an idle machine; "
        "TENON_CPU_TRACE=1 names the algorithm that serves each.",
        file=sys.stderr,
    )
    return 1 if strict else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strict", action="store_true", help="a rate below its limit is a failure")
    parser.add_argument("--only", default="", help="calls whose name contains this")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    busy = use_by_others()
    if busy > BUSY:
        print(f"guard: other processes use {busy:.0%} of a processor", file=sys.stderr)
    tenon.set_num_threads(1)
    calls, flags = every_call(), processor_flags()
    limits = [limit for limit in LIMITS if options.only in limit.name]
    rows = judge(
        limits,
        lambda limit: measure(limit, calls),
        lambda limit: reason_to_skip(limit, flags, busy),
    )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "guard", "rows": rows}, file, indent=1)
    return conclude(rows, options.strict)


if __name__ == "__main__":
    sys.exit(main())
