# SPDX-License-Identifier: Apache-2.0
"""Programs of Tenon's kernels, compiled by NVIDIA's own NVRTC, which needs no GPU.

The programs are those that operators of every family leave in a cache on the simulated device.
TENON_TEST_EXHAUSTIVE=1 compiles all of them for each architecture, which takes minutes; otherwise each
architecture gets every sixteenth."""

import ctypes
import os
import struct
from pathlib import Path

import pytest

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
NAMES = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]
STEP = 1 if os.environ.get("TENON_TEST_EXHAUSTIVE") == "1" else 16

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


def open_compiler():
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


@pytest.fixture(scope="module")
def compiler():
    if (library := open_compiler()) is None:
        pytest.skip(f"needs NVRTC, and none of {', '.join(NAMES)} is there")
    return library


def sources(folder):
    """The programs in a cache: an entry is a head of 32 bytes, the key, and the binary; the key ends in
    the compiler's version and the source."""
    for path in sorted(folder.glob("*.bin")):
        entry = path.read_bytes()
        (bytes_of_key,) = struct.unpack_from("<Q", entry, 8)
        key = entry[32 : 32 + bytes_of_key]
        yield key.split(b"\ncompiler ", 1)[1].split(b"\n", 1)[1]


def compile_program(compiler, source, architecture):
    """The compiler's message, or None after a success."""
    program = ctypes.c_void_p()
    assert compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"t", 0, None, None) == 0
    try:
        options = (ctypes.c_char_p * 2)(
            f"--gpu-architecture={architecture}".encode(), b"-std=c++17"
        )
        if compiler.nvrtcCompileProgram(program, 2, options) == 0:
            return None
        size = ctypes.c_size_t()
        compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        compiler.nvrtcGetProgramLog(program, log)
        return log.value.decode()
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
def test_programs_compile_for_every_architecture(compiler, run, kind, tmp_path):
    result = run(RUN_OPERATORS, XDG_CACHE_HOME=str(tmp_path), TENON_FALLBACK="deny")
    assert result.returncode == 0, result.stderr
    programs = list(sources(tmp_path / "tenon/cuda"))
    assert len(programs) > 150
    for first, architecture in enumerate(ARCHITECTURES):
        for source in programs[first::STEP]:
            message = compile_program(compiler, source, architecture)
            assert message is None, f"{architecture}: {message}\n{source.decode()}"


KERNELS = Path(__file__).parents[2] / "plugins/cuda/kernels"
TYPES = "typedef unsigned short tk_u16; typedef unsigned tk_u32; typedef long long tk_i64;\n"


# A program takes two seconds: each variant is compiled for one architecture.
@pytest.mark.parametrize(
    "architecture, defines, features, keys",
    [
        ("sm_80", "#define CAUSAL 1\n", 64, 64),
        ("sm_90", "#define BFLOAT16 1\n", 128, 32),
        ("sm_100", "#define BFLOAT16 1\n#define CAUSAL 1\n", 64, 64),
    ],
)
def test_attention_on_tensor_cores_compiles(compiler, architecture, defines, features, keys):
    text = "".join((KERNELS / name).read_text() for name in ("mma.cu", "attention.cu"))
    sizes = f"#define FEATURES {features}\n#define KEYS {keys}\n"
    message = compile_program(compiler, (TYPES + defines + sizes + text).encode(), architecture)
    assert message is None, message
