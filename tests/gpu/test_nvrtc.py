# SPDX-License-Identifier: Apache-2.0
"""Programs of Tenon's kernels, compiled by NVIDIA's own NVRTC, which needs no GPU.

The programs are those that operators of every family leave in a cache on the simulated device.
TENON_TEST_EXHAUSTIVE=1 compiles all of them for each architecture, which takes minutes; otherwise each
architecture gets one of 32."""

import os
from pathlib import Path

import precompile
import pytest

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
STEP = 1 if os.environ.get("TENON_TEST_EXHAUSTIVE") == "1" else 32

# One operator of each family of kernels, for the dtypes that differ in their arithmetic.
RUN_OPERATORS = """
    for dtype in ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]:
        x = tenon.arange(24, dtype="float32", device=KIND).to(dtype).reshape(4, 6)
        positions = tenon.tensor([0, 2], device=KIND)
        x + x * x - x, x / x, x % x, x > x, x.sum(), x.max(1), x.argmax(1), x.cumsum(1), x @ x.T
        x.sort(1), x.T.clone(), x[1:, ::2].clone(), x.to("bool"), x.to("float32"), x.to("int64")
        tenon.index_select(x, positions, 0), tenon.topk(x, 2), tenon.nonzero(x), x.mean()
        if dtype.startswith(("float", "bfloat")):
            tenon.softmax(x, 1), x.exp(), x.sin(), x.lgamma(), x.erf(), x.pow(x), x.sqrt(), x.var()
            tenon.layer_norm(x), tenon.max_pool2d(x.reshape(1, 1, 4, 6), 2)
    tenon.uniform([8], device=KIND), tenon.normal([8], device=KIND), tenon.eye(4, device=KIND)
"""


@pytest.fixture(scope="module")
def compiler():
    if (library := precompile.open_compiler()) is None:
        pytest.skip(f"needs NVRTC, and none of {', '.join(precompile.NVRTC)} is there")
    return library


def message_of(compiler, source, architecture):
    """What the compiler says against a program, or None."""
    try:
        precompile.compile_program(compiler, source, architecture)
    except precompile.CompilationError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
def test_programs_compile_for_every_architecture(compiler, run, kind, tmp_path):
    result = run(RUN_OPERATORS, XDG_CACHE_HOME=str(tmp_path), TENON_FALLBACK="deny")
    assert result.returncode == 0, result.stderr
    programs = [source for source, _ in precompile.entries(tmp_path / "tenon/cuda")]
    assert len(programs) > 150
    for first, architecture in enumerate(ARCHITECTURES):
        for source in programs[first::STEP]:
            message = message_of(compiler, source, architecture)
            assert message is None, f"{architecture}: {message}\n{source.decode()}"


# Everything that complex programs are made of: an operator of each family, and every function.
RUN_COMPLEX = """
    x = tenon.arange(24, dtype="float32", device=KIND).reshape(4, 6).to(dtype) * (1 + 0.5j)
    positions = tenon.tensor([[0, 2]], device=KIND)
    for name in ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
                 "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "sinc",
                 "negative", "reciprocal", "abs", "sign", "conj", "real", "imag", "round", "isnan", "isinf",
                 "isfinite", "logical_not", "sum", "mean", "prod", "any", "all", "nonzero"]:
        getattr(tenon, name)(x)
    x + x, x - x.T.T, x * x.sum(), x / x, x**x, x == x, x != x, x.cumsum(1), x.cumprod(0), x.T.clone()
    tenon.linear(x, x), tenon.where(x == x, x, 1j), tenon.concat([x, x]), x.real.to(dtype), x.to("float32")
    tenon.scatter_add(x, positions, x[:1, :2], 1), tenon.index_add(x, positions[0], x[:2]), tenon.pad(x, [0, 0, 1, 1])
    tenon.complex(x.real, x.imag), x.to("complex64").to("complex128").to("complex64"), x.to("bool")
"""


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
def test_complex_programs_compile(compiler, run, kind, dtype, tmp_path):
    result = run(
        f"    dtype = {dtype!r}\n{RUN_COMPLEX.lstrip(chr(10))}",
        XDG_CACHE_HOME=str(tmp_path),
        TENON_FALLBACK="deny",
    )
    assert result.returncode == 0, result.stderr
    sources = [source for source, _ in precompile.entries(tmp_path / "tenon/cuda")]
    programs = sorted(
        source
        for source in sources
        if b"T_COMPLEX\n" in source.split(b"#if", 1)[0] or b"tk_make_c" in source
    )
    assert len(programs) > 50
    for i, source in enumerate(programs[:: min(STEP, 4)]):
        architecture = ARCHITECTURES[i % len(ARCHITECTURES)]
        message = message_of(compiler, source, architecture)
        assert message is None, f"{architecture}: {message}\n{source.decode()}"


KERNELS = Path(__file__).parents[2] / "plugins/cuda/kernels"
TYPES = "typedef unsigned short tk_u16; typedef unsigned tk_u32; typedef long long tk_i64;\n"


# What attention.cpp and attention_grad.cpp define for 64 and for 128 features.
ATTENTION = {
    "attention": {64: "#define KEYS 64\n", 128: "#define KEYS 32\n"},
    "attention_grad": {64: "#define TILE 32\n", 128: "#define TILE 16\n"},
}
CAUSAL, BFLOAT16 = "#define CAUSAL 1\n", "#define BFLOAT16 1\n"
VARIANTS = [
    (name, features, defines)
    for name in ATTENTION
    for features in (64, 128)
    for defines in ("", CAUSAL, BFLOAT16, BFLOAT16 + CAUSAL)
] + [
    ("attention under a mask", features, defines)
    for features in (64, 128)
    for defines in ("#define MASKS 1\n", BFLOAT16 + CAUSAL + "#define ADDS 1\n")
]


# A program takes two seconds: each variant is compiled for one architecture, the next one for the next.
@pytest.mark.parametrize(
    "architecture, variant",
    [
        (architecture, variant)
        for i, variant in enumerate(VARIANTS)
        for j, architecture in enumerate(ARCHITECTURES)
        if STEP == 1 or i % len(ARCHITECTURES) == j
    ],
)
def test_attention_on_tensor_cores_compiles(compiler, architecture, variant):
    name, features, defines = variant
    sizes = f"#define FEATURES {features}\n"
    sizes += ATTENTION[name][features] if name in ATTENTION else "#define KEYS 32\n"
    files = ("mma.cu", "attention_rows.cu", f"{name.split()[0]}.cu")
    text = "".join((KERNELS / file).read_text() for file in files)
    message = message_of(compiler, (TYPES + defines + sizes + text).encode(), architecture)
    assert message is None, message


@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
def test_copies_around_libraries_compile(compiler, run, kind, tmp_path):
    code = """
        for dtype in ["float32", "float64", "complex64", "complex128"]:
            tenon.inv(tenon.eye(3).to(dtype).to(KIND))
    """
    result = run(code, XDG_CACHE_HOME=str(tmp_path), TENON_FALLBACK="deny")
    assert result.returncode == 0, result.stderr
    sources = [source for source, _ in precompile.entries(tmp_path / "tenon/cuda")]
    copies = [source for source in sources if b"tenon_copy" in source]
    assert len(copies) == 4
    for source, architecture in zip(copies, [*ARCHITECTURES, "sm_90"]):
        message = message_of(compiler, source, architecture)
        assert message is None, f"{architecture}: {message}"
