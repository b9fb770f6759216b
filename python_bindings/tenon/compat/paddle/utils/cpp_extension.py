# SPDX-License-Identifier: Apache-2.0
"""Custom operators written for `paddle/extension.h`, built and loaded.

    ops = load(name="custom_ops", sources=["relu.cc"])
    y = ops.custom_relu(x)

Names and parameters are those that build scripts of such operators use. What is built where, and the
cache, are tenon.utils.cpp_extension's."""

import os
import re

from tenon.compat.paddle import get_include, get_lib
from tenon.compat.paddle._operators import load_op_library
from tenon.compat.paddle.utils._flags import cflags, ldflags

# And, where setuptools is installed: BuildExtension, CppExtension, CUDAExtension, setup.
__all__ = ["get_build_directory", "load", "load_op_library"]


def load(
    name,
    sources,
    extra_cxx_cflags=None,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    extra_library_paths=None,
    build_directory=None,
    verbose=False,
):
    """Compile `sources` and return a module of their operators. Built anew only what changed; a
    second call after a change replaces the operators of the first.

    Functions that nothing defines, as those for devices that the build leaves out, are named in a
    warning, and calling one is an error. `extra_ldflags=["-Wl,-z,defs"]` makes them errors here."""
    from tenon.utils.cpp_extension import build_library  # with all that compiles

    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    path = build_library(
        _library_name(name),
        sources,
        cflags=cflags(extra_cxx_cflags or []),
        cuda_cflags=list(extra_cuda_cflags or []),
        ldflags=[*ldflags(), *(extra_ldflags or [])],
        include_paths=[get_include(), *(extra_include_paths or [])],
        library_paths=[get_lib(), *(extra_library_paths or [])],
        build_directory=build_directory or _own_directory(name),
        verbose=verbose,
        plugin=False,
    )
    return load_op_library(path, name)


def get_build_directory(verbose=False):
    """The folder that extensions are built in: PADDLE_EXTENSION_DIR, or the cache of extensions."""
    folder = os.environ.get("PADDLE_EXTENSION_DIR")
    if not folder:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.environ.get("TENON_EXTENSIONS_DIR") or os.path.join(
            cache, "tenon", "extensions"
        )
    if verbose:
        print(f"extensions are built in {folder}")
    return folder


def _own_directory(name):
    folder = os.environ.get("PADDLE_EXTENSION_DIR")
    return os.path.join(folder, name) if folder else None


def _library_name(name):
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: expected a text, got {name!r}")
    word = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return word[:22] if word[0].isalpha() else f"x{word}"[:22]


def __getattr__(name):
    if name in ("BuildExtension", "CUDAExtension", "CppExtension", "setup"):
        from tenon.compat.paddle.utils import _setuptools  # not every environment has setuptools

        return getattr(_setuptools, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
