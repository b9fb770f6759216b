# SPDX-License-Identifier: Apache-2.0
"""Flags of the compiler for operators written for `paddle/extension.h`."""

from tenon.compat.paddle import get_lib

_DEFINES = ["-DPADDLE_WITH_CUSTOM_KERNEL", "-D_GLIBCXX_USE_CXX11_ABI=1"]


def cflags(extra):
    standard = [] if any(flag.startswith("-std=") for flag in extra) else ["-std=c++17"]
    return [*standard, *_DEFINES, *extra]


def ldflags():
    # Bound at the first call: see load.
    return ["-Wl,-z,undefs,-z,lazy", "-l:libpaddle.so", f"-Wl,-rpath,{get_lib()}"]
