# SPDX-License-Identifier: Apache-2.0
"""Builds against the installed SDK with all warnings as errors, and plugins of this repository built
alone against it."""

import os
import pathlib
import shutil
import subprocess

import building
import pytest

PLUGINS = os.path.join(building.HERE, "..", "..", "plugins")
STRICT = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"
# The build system defines what these need: tests of tenon.utils.cpp_extension compile them.
NEED_A_BUILD = {"extension.hpp", "operator_package.hpp"}

FILE = """
namespace: alone
ops:
- op: swish
  doc: "`x * sigmoid(x)`."
  sig: (Tensor x) -> Tensor
  kind: elementwise
  dtypes: {compute: promote_float, allow: floating}
  expr: x * sigmoid(x)
"""


def test_the_interpreter_builds_against_the_installed_sdk(tmp_path):
    # Its files in batches, which takes a third of the time.
    folder = building.build(
        "interpreter",
        STRICT,
        "-DCMAKE_UNITY_BUILD=ON",
        source=os.path.join(PLUGINS, "interpreter"),
    )
    library = os.path.join(folder, "libtenon_interpreter.so")
    operators = tmp_path / "alone.yaml"
    operators.write_text(FILE)
    out = building.python(
        "import tenon\n"
        f"tenon.plugins.load({library!r})\n"
        f"tenon.ops.load({os.fspath(operators)!r})\n"
        "print(tenon.ops.alone.swish(tenon.zeros(2)).tolist())\n"
        "print([p['path'] for p in tenon.plugins.list() if p['name'] == 'interpreter'])\n"
    )
    assert "[0.0, 0.0]" in out
    assert library in out


def test_a_device_in_cpp_builds_without_warnings():
    building.build("strict_null", STRICT, source=os.path.join(PLUGINS, "null"))


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_no_header_prints_a_warning(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    include = pathlib.Path(building.sdk()) / "include"
    headers = [
        path.relative_to(include)
        for folder in (include / "tenon", include / "tenon/ops", include / "tenon/services")
        for path in sorted(folder.iterdir())
        if path.suffix in (".h", ".hpp") and path.name not in NEED_A_BUILD
    ]
    source = tmp_path / "every_header.cpp"
    source.write_text("".join(f"#include <{header}>\n" for header in headers))
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    command = [compiler, "-std=c++20", "-fsyntax-only", *strict, f"-I{include}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
