# SPDX-License-Identifier: Apache-2.0
"""Compilers and the flags that every plugin is built with."""

import functools
import json
import os
import shlex
import shutil
import subprocess

from tenon import _core

from ._errors import CompileError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@functools.cache
def sdk_folders():
    """Folders of the SDK: `include` (a list), `cmake`, `lib`."""
    folders = {
        "include": [os.path.join(_PACKAGE, "include")],
        "cmake": os.path.join(_PACKAGE, "lib", "cmake", "Tenon"),
        "lib": os.path.join(_PACKAGE, "lib"),
    }
    try:
        with open(os.path.join(_PACKAGE, "sdk_folders.json"), encoding="utf-8") as file:
            folders.update(json.load(file))  # a build tree, which keeps them elsewhere
    except FileNotFoundError:
        pass
    return folders


def include_paths():
    """Folders to search for `tenon/*.hpp`."""
    return list(sdk_folders()["include"])


@functools.cache
def plugin_flags():
    """The flags of plugin_flags.json, which tenon_add_plugin() uses too."""
    path = os.path.join(sdk_folders()["cmake"], "plugin_flags.json")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        raise CompileError(
            f"this installation of tenon has no SDK: {path} is absent; install the whole package"
        ) from None


@functools.cache
def host():
    """What extensions must agree with: `epoch` of the ABI, `sanitizer`."""
    return json.loads(_core.plugin_describe())["host"]


def sanitizer_flags():
    """The host refuses a plugin that was built with another sanitizer than itself. Its own library
    for extensions needs the runtime of what is built with AddressSanitizer too (TenonBuild.cmake)."""
    kind = host()["sanitizer"]
    if kind == "address":
        kind += ",undefined"
    return [] if kind == "none" else [f"-fsanitize={kind}"]


class Compiler:
    """A compiler driver: the words that call it, and its version."""

    def __init__(self, command, version):
        self.command = command
        self.version = version

    @property
    def is_gnu(self):
        return "clang" not in self.version


def cxx_compiler():
    """The C++ compiler: $CXX, or the first of c++, g++ and clang++."""
    return _compiler(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@functools.cache
def _compiler(named, path):
    candidates = [shlex.split(named)] if named else [["c++"], ["g++"], ["clang++"]]
    for command in candidates:
        if not shutil.which(command[0], path=path):
            continue
        try:
            done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        except OSError as error:
            raise CompileError(f"{shlex.join(command)} cannot be run: {error}") from None
        if done.returncode != 0:
            raise CompileError(
                f"{shlex.join(command)} --version failed: {done.stderr or done.stdout}"
            )
        return Compiler(command, done.stdout)
    if named:
        raise CompileError(f"the C++ compiler that CXX names was not found: {named}")
    raise CompileError(
        "expected a C++20 compiler, found none of c++, g++, clang++ on PATH; "
        "install one (Debian, Ubuntu: apt install g++), or name it with CXX"
    )


def cuda_home():
    """The CUDA Toolkit's folder, or None."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(name):
            return folder
    nvcc = shutil.which("nvcc")
    if nvcc:
        return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return "/usr/local/cuda" if os.path.isfile("/usr/local/cuda/bin/nvcc") else None


def device_compiler(suffix):
    """The compiler for .cu (nvcc) or .hip (hipcc) files, as a Compiler."""
    if suffix == ".hip":
        name, root, variable = "hipcc", os.environ.get("ROCM_PATH", "/opt/rocm"), "ROCM_PATH"
    else:
        name, root, variable = "nvcc", cuda_home() or "", "CUDA_HOME"
    path = os.path.join(root, "bin", name)
    if not os.path.isfile(path):
        path = shutil.which(name)
    if not path:
        raise CompileError(
            f"expected {name} for {suffix} sources, found none on PATH or in {variable}; "
            f"install the toolkit, set {variable}, or leave these sources out"
        )
    return _device_compiler(path)


@functools.cache
def _device_compiler(path):
    done = subprocess.run([path, "--version"], capture_output=True, text=True)
    return Compiler([path], done.stdout)


def ninja():
    """The command that runs ninja, as a list of words."""
    path = shutil.which("ninja") or shutil.which("ninja-build")
    if path:
        return [path]
    try:
        from ninja import BIN_DIR
    except ImportError:
        raise CompileError(
            "expected ninja on PATH; install it (pip install ninja, or your system's package)"
        ) from None
    return [os.path.join(BIN_DIR, "ninja")]


def is_build_available():
    """Whether C++ extensions can be built here: a compiler and ninja are present."""
    try:
        cxx_compiler()
        ninja()
        return True
    except CompileError:
        return False


def is_cuda_build_available():
    """Whether .cu sources can be compiled here. It needs no GPU."""
    try:
        device_compiler(".cu")
        return is_build_available()
    except CompileError:
        return False
