# SPDX-License-Identifier: Apache-2.0
"""Compiles programs of the CUDA plugin ahead of time, so that a first run compiles nothing.

    scripts/precompile.py FOLDER OUT [--architectures sm_80,sm_90,sm_100] [--ptx compute_80]

FOLDER is a cache of programs ($XDG_CACHE_HOME/tenon/cuda): the operators that a program called leave the sources there, on
the simulated device too, so that no GPU is needed. OUT is read by plugins/gpu_common/runtime/precompiled.cpp, which
describes the file. It wants NVRTC and `fatbinary` of the CUDA toolkit. An image holds code for all architectures, and PTX
from which the driver makes code for later ones.
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

NVRTC = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]
TOOLKIT = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def open_compiler() -> ctypes.CDLL | None:
    for name in NVRTC:
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
    """The code of a source for sm_*, or its PTX for compute_*."""
    program = ctypes.c_void_p()
    assert compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"t", 0, None, None) == 0
    try:
        options = (ctypes.c_char_p * 2)(
            f"--gpu-architecture={architecture}".encode(), b"-std=c++17"
        )
        size = ctypes.c_size_t()
        if compiler.nvrtcCompileProgram(program, 2, options) != 0:
            compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            compiler.nvrtcGetProgramLog(program, log)
            raise CompilationError(log.value.decode())
        kind = "PTX" if architecture.startswith("compute_") else "CUBIN"
        getattr(compiler, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        getattr(compiler, f"nvrtcGet{kind}")(program, code)
        return code.raw
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def fat_binary(source: bytes, architectures: list[str]) -> bytes:
    """One compressed image with the code for all architectures."""
    compiler = open_compiler()
    assert compiler is not None
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
    options = parser.parse_args()
    architectures = options.architectures.split(",") + ([options.ptx] if options.ptx else [])
    if open_compiler() is None:
        raise SystemExit(f"precompile.py: expected NVRTC as one of {', '.join(NVRTC)}, got none")
    programs = sorted({source for source, _ in entries(options.folder)})
    if not programs:
        raise SystemExit(f"precompile.py: expected programs in {options.folder}, got none")
    images, start, shown = {}, time.monotonic(), 0.0
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(fat_binary, programs, [architectures] * len(programs), chunksize=8)
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
