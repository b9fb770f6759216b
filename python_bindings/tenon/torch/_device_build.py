# SPDX-License-Identifier: Apache-2.0
"""The compiled half of the device, built for the installed version of PyTorch when it is first used.

Its sources are a part of the package, because PyTorch's C++ interface holds for one version alone. What was built lies in the
user's cache folder, under a name that says for which versions of PyTorch, Python, Tenon's ABI and the sources it is.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tenon

_NAME = "_tenon_torch"
_PACKAGE = Path(tenon.__file__).parent


def loaded(torch: Any) -> Any:
    """The module, built before if need be."""
    path = _cached(torch)
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(path))
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def library() -> str:
    """libtenon, which this process has loaded."""
    return os.path.realpath(_PACKAGE / "lib" / "libtenon.so")


def _sources() -> Path:
    folder = _PACKAGE / "torch_device"
    if not folder.is_dir():
        raise ImportError(
            f"torch.device: expected the sources of the device in {folder}; install Tenon from a wheel or its build tree"
        )
    return folder


def _headers() -> list[Path]:
    """Where tenon/abi.h lies."""
    described = _PACKAGE / "sdk_folders.json"
    if described.is_file():
        return [Path(each) for each in json.loads(described.read_text())["include"]]
    return [_PACKAGE / "include"]


def _cached(torch: Any) -> Path:
    folder, headers = _sources(), _headers()
    own = Path(torch.__file__).parent
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = [
        *(
            "-std=c++20",
            "-O2",
            "-fPIC",
            "-fvisibility=hidden",
            "-Wall",
            "-Wno-deprecated-declarations",
        ),
        *("-DAT_PER_OPERATOR_HEADERS", f"-DTORCH_EXTENSION_NAME={_NAME}"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-I{each}" for each in headers),
        *(f"-isystem{each}" for each in (own / "include", own / "include/torch/csrc/api/include")),
        f"-isystem{sysconfig.get_path('include')}",
    ]
    digest = hashlib.sha256()
    abi = next(path for each in headers if (path := each / "tenon" / "abi.h").is_file())
    for path in (abi, *sorted(folder.iterdir())):
        digest.update(path.read_bytes())
    digest.update(repr((torch.__version__, sys.version, compiler, flags)).encode())
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    place = Path(cache) / "tenon" / "torch_device" / digest.hexdigest()[:20]
    built = place / f"{_NAME}.so"
    if not built.is_file():
        place.mkdir(parents=True, exist_ok=True)
        _build(compiler, flags, sorted(folder.glob("*.cpp")), built, [str(own / "lib")])
    return built


def _build(
    compiler: Sequence[str],
    flags: Sequence[str],
    sources: Sequence[Path],
    built: Path,
    libraries: Sequence[str],
) -> None:
    """Two processes that build the same at once do so apart, and the last one's file stays."""
    if shutil.which(compiler[0]) is None:
        raise ImportError(
            f"torch.device: expected a C++20 compiler named {compiler[0]}, which builds the device for the installed PyTorch "
            f"once; install g++ or clang++, or name one with CXX"
        )
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:

        def compiled(source: Path) -> str:
            made = f"{folder}/{source.stem}.o"
            _run([*compiler, *flags, "-c", str(source), "-o", made])
            return made

        with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
            objects = list(pool.map(compiled, sources))
        linked = f"{folder}/{built.name}"
        folders = [flag for each in libraries for flag in (f"-L{each}", f"-Wl,-rpath,{each}")]
        names = ("-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10", "-ldl")
        _run([*compiler, "-shared", *objects, "-o", linked, *folders, *names])
        os.replace(linked, built)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ImportError(
            f"torch.device: the device could not be built for the installed PyTorch: {shlex.join(command)}\n"
            f"{done.stderr[-4000:]}"
        )
