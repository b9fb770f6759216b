# SPDX-License-Identifier: Apache-2.0
"""Compiles programs of the CUDA or the ROCm plugin ahead of time, so that a first run compiles nothing.

    scripts/precompile.py FOLDER OUT [--architectures sm_80,sm_90,sm_100] [--ptx compute_80]
    scripts/precompile.py FOLDER OUT --architectures gfx90a,gfx942 --ptx ""

FOLDER is a cache of programs ($XDG_CACHE_HOME/tenon/cuda or hip): the operators that a program called leave the sources
there, on the simulated device too, so that no GPU is needed. OUT is read by plugins/gpu_common/runtime/precompiled.cpp, which
describes the file. It wants NVRTC and `fatbinary` of the CUDA toolkit, or HIPRTC. An image holds code for all
architectures, and with CUDA PTX from which the driver makes code for later ones.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NVRTC = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]
HIPRTC = ["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", "/opt/rocm/lib/libhiprtc.so"]
TOOLKIT = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def is_hip(architecture: str) -> bool:
    return architecture.startswith("gfx")


def open_compiler(names: list[str] = NVRTC) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def entries(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """The programs in a cache, source and binary: a file is a head of 32 bytes, the key, and the binary; the key ends
    in the compiler's version and the source (plugins/gpu_common/program_cache.cpp)."""
    for path in sorted(folder.glob("*.bin")):
        entry = path.read_bytes()
        (bytes_of_key,) = struct.unpack_from("<Q", entry, 8)
        key, binary = entry[32 : 32 + bytes_of_key], entry[32 + bytes_of_key :]
        yield key.split(b"\ncompiler ", 1)[1].split(b"\n", 1)[1], binary


class CompilationError(Exception):
    pass


def compile_program(compiler: ctypes.CDLL, source: bytes, architecture: str) -> bytes:
    """The code of a source for sm_* or gfx*, or its PTX for compute_*."""
    prefix, option, kind = "nvrtc", "--gpu-architecture=", "CUBIN"
    if is_hip(architecture):
        prefix, option, kind = "hiprtc", "--offload-arch=", "Code"
    elif architecture.startswith("compute_"):
        kind = "PTX"

    def call(name: str, *arguments: Any) -> int:
        return getattr(compiler, prefix + name)(*arguments)

    program = ctypes.c_void_p()
    assert call("CreateProgram", ctypes.byref(program), source, b"t", 0, None, None) == 0
    try:
        options = (ctypes.c_char_p * 2)(f"{option}{architecture}".encode(), b"-std=c++17")
        size = ctypes.c_size_t()
        if call("CompileProgram", program, 2, options) != 0:
            call("GetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            call("GetProgramLog", program, log)
            raise CompilationError(log.value.decode())
        call(f"Get{kind}Size", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        call(f"Get{kind}", program, code)
        return code.raw
    finally:
        call("DestroyProgram", ctypes.byref(program))


def bundle(codes: dict[str, bytes]) -> bytes:
    """Code objects of HIP by their architectures, as the runtime loads them: Clang's documentation of
    ClangOffloadBundler, "Bundled Code Object File Format". The host's entry comes first, and is empty."""
    names = ["host-x86_64-unknown-linux--", *(f"hipv4-amdgcn-amd-amdhsa--{each}" for each in codes)]
    page = 4096  # which the runtime wants code objects to begin with
    head, body = b"", b""
    first = -(-(32 + sum(24 + len(name) for name in names)) // page) * page
    for name, code in zip(names, [b"", *codes.values()]):
        head += struct.pack("<QQQ", first + len(body), len(code), len(name)) + name.encode()
        body += code + bytes(-len(code) % page)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)) + head
    return head + bytes(first - len(head)) + body


def fat_binary(source: bytes, architectures: list[str], names: list[str]) -> bytes:
    """One image with the code for all architectures; with CUDA it is compressed."""
    compiler = open_compiler(names)
    assert compiler is not None
    if is_hip(architectures[0]):
        return bundle({each: compile_program(compiler, source, each) for each in architectures})
    with tempfile.TemporaryDirectory() as folder:
        command = [TOOLKIT / "bin/fatbinary", "--64", "--compress-all", f"--create={folder}/all"]
        for architecture in architectures:
            kind, number = architecture.split("_")
            code = Path(folder, architecture)
            code.write_bytes(compile_program(compiler, source, architecture))
            form = "ptx" if kind == "compute" else "elf"
            command.append(f"--image3=kind={form},sm={number},file={code}")
        subprocess.run(command, check=True)
        return Path(folder, "all").read_bytes()


def hash_of(source: bytes) -> tuple[int, int]:
    """As in precompiled.cpp."""
    words = struct.unpack(f"<{-(-len(source) // 8)}Q", source + bytes(-len(source) % 8))
    mask = 2**64 - 1
    first, second = len(source), ~len(source) & mask
    for word in words:
        first = (first ^ word) * 0x9E3779B97F4A7C15 & mask
        first ^= first >> 29
        second = (second ^ word) * 0xC2B2AE3D27D4EB4F & mask
        second ^= second >> 31
    return first, second


def write_programs(path: Path, images: dict[tuple[int, int], bytes]) -> None:
    """Writes the file of images by the hashes of their sources."""
    offset = 16 + 32 * len(images)
    table, data = [], []
    for hashes, image in sorted(images.items()):
        table.append(struct.pack("<QQQQ", *hashes, offset, len(image)))
        padded = image + bytes(-len(image) % 16)
        data.append(padded)
        offset += len(padded)
    path.write_bytes(b"TENONAOT" + struct.pack("<Q", len(images)) + b"".join(table + data))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--architectures", default="sm_80,sm_90,sm_100")
    parser.add_argument("--ptx", default="compute_80", help="of what PTX is made; '' for none")
    parser.add_argument("--compiler", help="another NVRTC or HIPRTC")
    options = parser.parse_args()
    architectures = options.architectures.split(",") + ([options.ptx] if options.ptx else [])
    names = HIPRTC if is_hip(architectures[0]) else NVRTC
    if options.compiler:
        names = [options.compiler]
    if len({is_hip(each) for each in architectures}) != 1:
        raise SystemExit(f"precompile.py: expected one vendor, got {', '.join(architectures)}")
    if open_compiler(names) is None:
        raise SystemExit(f"precompile.py: expected one of {', '.join(names)}, got none")
    programs = sorted({source for source, _ in entries(options.folder)})
    if not programs:
        raise SystemExit(f"precompile.py: expected programs in {options.folder}, got none")
    images, start, shown = {}, time.monotonic(), 0.0
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        shared = ([each] * len(programs) for each in (architectures, names))
        made = pool.map(fat_binary, programs, *shared, chunksize=8)
        for number, (source, image) in enumerate(zip(programs, made), 1):
            images[hash_of(source)] = image
            if time.monotonic() - shown > 10 or number == len(programs):
                shown = time.monotonic()
                print(f"{number} of {len(programs)} programs, {shown - start:.0f} s", flush=True)
    write_programs(options.out, images)
    print(
        f"{options.out}: {options.out.stat().st_size / 2**20:.1f} MiB, {', '.join(architectures)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
