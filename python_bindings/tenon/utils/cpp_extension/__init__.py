# SPDX-License-Identifier: Apache-2.0
"""Operators in C++: built and loaded at run time, or by setuptools into a wheel.

    ext = load_inline("acme", source, functions=["swiglu(Tensor x, Tensor g) -> Tensor"])
    y = ext.swiglu(x, g)

docs/cpp_extension.md is the guide, `tenon/extension.hpp` the C++ side."""

from ._cache import build_library
from ._errors import CompileError
from ._load import Extension, load, load_inline
from ._toolchain import include_paths, is_build_available, is_cuda_build_available

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CompileError",
    "CppExtension",
    "Extension",
    "build_library",
    "include_paths",
    "is_build_available",
    "is_cuda_build_available",
    "load",
    "load_inline",
]


def __getattr__(name):
    if name in ("BuildExtension", "CppExtension", "CUDAExtension"):
        from . import _setuptools  # not every environment has setuptools

        return getattr(_setuptools, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
