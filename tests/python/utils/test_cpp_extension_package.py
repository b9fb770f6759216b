# SPDX-License-Identifier: Apache-2.0
"""Packages with operators in C++ that setuptools builds."""

import json
import os
import subprocess
import sys

import pytest
from tenon.utils import cpp_extension

pytestmark = pytest.mark.skipif(
    not cpp_extension.is_build_available(), reason="no C++ compiler, or no ninja"
)

SETUP = """
from setuptools import setup
from tenon.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="tenon-bolt-ops",
    version="1.2",
    packages=["tenon_bolt_ops"],
    ext_modules=[CppExtension("tenon_bolt_ops.bolt_ops", ["bolt.cpp"], extra_compile_args=["-O0"])],
    cmdclass={"build_ext": BuildExtension},
    ENTRY_POINTS
)
"""
BOLT = """
#include <tenon/extension.hpp>
tenon::Tensor plus_two(const tenon::Tensor& x) { return x + 2; }
TENON_OPERATORS(bolt_ops, m) { m.def<plus_two>("plus_two(Tensor x) -> Tensor"); }
"""
ENTRY_POINTS = 'entry_points={"tenon.plugins": ["bolt_ops = tenon_bolt_ops:bolt_ops.tenon.json"]},'


def test_a_package_from_setup_py(tmp_path):
    pytest.importorskip("setuptools")
    project, site = tmp_path / "project", tmp_path / "site"
    (project / "tenon_bolt_ops").mkdir(parents=True)
    (project / "tenon_bolt_ops" / "__init__.py").touch()
    (project / "bolt.cpp").write_text(BOLT)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TENON_PLUGIN_TRUST": "any",
    }

    def build(entry_points):
        (project / "setup.py").write_text(SETUP.replace("ENTRY_POINTS", entry_points))
        return subprocess.run(
            [sys.executable, "setup.py", "-q", "build", "--build-lib", site],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
        )

    refused = build("")
    assert refused.returncode != 0
    assert 'bolt_ops = "tenon_bolt_ops:bolt_ops.tenon.json"' in refused.stderr
    done = build(ENTRY_POINTS)
    assert done.returncode == 0, done.stderr

    library = site / "tenon_bolt_ops" / "libtenon_bolt_ops.so"
    manifest = json.loads((site / "tenon_bolt_ops" / "bolt_ops.tenon.json").read_text())
    assert manifest["name"] == "bolt_ops" and manifest["library"] == library.name
    assert manifest["version"] == "1.2"
    code = "import tenon; print(tenon.ops.bolt_ops.plus_two(tenon.ones((1,))).tolist())"
    environment["TENON_PLUGINS"] = f"bolt_ops:{library}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[3.0]", done.stderr
