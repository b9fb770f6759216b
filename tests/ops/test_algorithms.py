# SPDX-License-Identifier: Apache-2.0
"""Which algorithm of the CPU plugin serves a call, under each instruction set that this processor has.

Values alone do not show that a fast path was lost: a slower one gives the same. TENON_CPU_TRACE=1 makes
the plugin name its choices. The micro-kernels' machine code is read, too: a right choice is no use where
the compiler keeps the accumulators in memory."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import tenon

FLAGS = set(re.search(r"flags\s*:(.*)", open("/proc/cpuinfo").read()).group(1).split())

# What each case computes, and the arithmetic that must serve it by instruction set, best first.
BFLOAT16 = [("amx_bf16", "AMX"), ("avx512_bf16", "AVX512-BF16"), (None, "float32")]
INT8 = [("amx_int8", "AMX"), ("avx512_vnni", "AVX512-VNNI"), (None, "int16 pairs")]
MATMULS = {
    "float32": ("tenon.ones((1024, 1024)) @ tenon.ones((1024, 1024))", [(None, "native")]),
    "float64": (
        "tenon.ones((1024, 1024), dtype='float64') @ tenon.ones((1024, 1024), dtype='float64')",
        [(None, "native")],
    ),
    "float16": (
        "tenon.ones((96, 96), dtype='float16') @ tenon.ones((96, 96), dtype='float16')",
        [(None, "float32")],
    ),
    "bfloat16": (
        "tenon.ones((96, 96), dtype='bfloat16') @ tenon.ones((96, 96), dtype='bfloat16')",
        BFLOAT16,
    ),
    "int8": (
        "tenon.matmul_integer(tenon.ones((96, 96), dtype='int8'), "
        "tenon.ones((96, 96), dtype='int8'))",
        INT8,
    ),
}
ATTENTION = "tenon.scaled_dot_product_attention(*[tenon.ones((1, 2, 64, 32), dtype='{}')] * 3)"
CONVOLUTION = (
    "tenon.conv2d(tenon.ones({}, dtype='{}'), tenon.ones({}, dtype='{}'), None, {}, {}, 1, {})"
)


def served_by(isa, *calls, amx=True):
    """The trace's lines for each call, in a process with that instruction set."""
    environment = {**os.environ, "TENON_CPU_ISA": isa, "TENON_CPU_TRACE": "1"}
    environment.pop("TENON_TEST_PLUGINS", None)
    script = "import sys, tenon\n" + "".join(
        f"{call}\nprint('--', file=sys.stderr, flush=True)\n" for call in calls
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    if "TENON_CPU_ISA: expected one of" in done.stderr:
        pytest.skip(f"this build or this processor has no {isa}")
    assert done.returncode == 0, done.stderr
    parts = done.stderr.split("--\n")
    return [re.findall(r"\[tenon cpu\] (.*)", part) for part in parts[: len(calls)]]


def expected(choices, isa):
    """The best of the choices that the instruction set and the processor have."""
    for flag, name in choices:
        if flag is None:
            return name
        if flag in FLAGS and (isa == "amx" or (isa == "avx512" and not flag.startswith("amx"))):
            return name


ISAS = ["baseline", "avx2", "avx512", "amx"]


@pytest.mark.parametrize("isa", ISAS)
def test_arithmetic_of_matmul(isa):
    lines = served_by(isa, *(call for call, _ in MATMULS.values()))
    for (dtype, (_, choices)), line in zip(MATMULS.items(), lines, strict=True):
        assert line == [f"matmul: {expected(choices, isa)}, blocked"], dtype


@pytest.mark.parametrize("isa", ISAS)
def test_algorithm_of_matmul_by_shape(isa):
    calls = [
        "tenon.ones((1, 512)) @ tenon.ones((512, 512))",
        "tenon.ones((1, 512)) @ tenon.ones((512, 512)).T",
        "tenon.ones((1024, 1024)) @ tenon.ones((1024, 1024))",
    ]
    names = ["streamed B", "dot products", "blocked"]
    for line, name in zip(served_by(isa, *calls), names, strict=True):
        assert line == [f"matmul: native, {name}"]


@pytest.mark.parametrize("isa", ISAS)
def test_arithmetic_of_attention(isa):
    dtypes = {"float32": [(None, "native")], "bfloat16": BFLOAT16, "float16": [(None, "float32")]}
    lines = served_by(isa, *(ATTENTION.format(dtype) for dtype in dtypes))
    for (dtype, choices), line in zip(dtypes.items(), lines, strict=True):
        assert line == [f"attention: {expected(choices, isa)}"], dtype


@pytest.mark.parametrize("isa", ISAS)
def test_algorithm_of_convolution(isa):
    cases = [
        # images, weight, dtype, stride, padding, groups, algorithm
        ((1, 64, 56, 56), (64, 64, 3, 3), "float32", 1, 1, 1, "Winograd"),
        ((1, 64, 28, 28), (64, 64, 1, 1), "float32", 1, 0, 1, "pointwise GEMM"),
        ((1, 64, 28, 28), (64, 64, 3, 3), "float32", 2, 1, 1, "nChw16c"),
        ((1, 64, 28, 28), (64, 1, 3, 3), "float32", 1, 1, 64, "depthwise"),
    ]
    bfloat16 = [
        ("amx_bf16", "AMX"), ("avx512_bf16", "AVX512-BF16"), (None, "Winograd"),
    ]  # fmt: skip
    cases.append(((1, 64, 56, 56), (64, 64, 3, 3), "bfloat16", 1, 1, 1, expected(bfloat16, isa)))
    calls = [
        CONVOLUTION.format(x, dtype, weight, dtype, stride, padding, groups)
        for x, weight, dtype, stride, padding, groups, _ in cases
    ]
    for line, case in zip(served_by(isa, *calls), cases, strict=True):
        assert line[:1] == [f"conv2d: {case[-1]}"], case


DOT_PRODUCTS = re.compile(r"\s(vdpbf16ps|vpdpbusd|vfmadd\d+p[sd])\s")
STACK = re.compile(r"\svmov\w+\s+%zmm\d+,-?(0x)?[0-9a-f]*\(%rsp\)")


@pytest.mark.skipif(
    shutil.which("objdump") is None or shutil.which("nm") is None, reason="needs binutils"
)
def test_micro_kernels_keep_their_accumulators_in_registers():
    """A loop that stores an accumulator to the stack after each step takes three times as long."""
    library = os.path.join(tenon.sdk_path(), "plugins", "libtenon_cpu.so")
    symbols = subprocess.run(["nm", "-S", library], capture_output=True, text=True).stdout
    kernels = re.findall(r"^(\w+) (\w+) t (_ZN5tenon3cpu6avx512\w*micro_kernel\w+)$", symbols, re.M)
    if not kernels:
        pytest.skip("this build has no AVX-512 kernels, or no symbols")
    begin = min(int(start, 16) for start, _, _ in kernels)
    end = max(int(start, 16) + int(size, 16) for start, size, _ in kernels)
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--start-address={begin}"]
        + [f"--stop-address={end}", library],
        capture_output=True,
        text=True,
    ).stdout
    checked = 0
    for part in code.split("\n\n"):
        name = re.match(r"\w+ <(\S*micro_kernel\S*)>", part)
        steps = len(DOT_PRODUCTS.findall(part))
        if not name or steps < 8:
            continue
        checked += 1
        stores = len(STACK.findall(part))
        assert stores < steps / 2, (
            f"{name.group(1)}: {stores} stores beside {steps} multiplications"
        )
    assert checked > 20
