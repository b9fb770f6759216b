# SPDX-License-Identifier: Apache-2.0
"""examples/predictor_c: a C program on the predictor, built out of tree as its author would."""

import os
import subprocess
import sys

import building
import pytest
import tenon

pytestmark = pytest.mark.skipif(not building.BUILD, reason="needs TENON_BUILD_DIR")
EXAMPLES = os.path.join(building.HERE, "../../examples")


@pytest.fixture(scope="module")
def program():
    source = os.path.join(EXAMPLES, "predictor_c")
    return os.path.join(building.build("predictor_c", source=source), "predictor_c")


def test_it_gives_what_python_gives(program, tmp_path):
    path = str(tmp_path / "model.tenon")
    export = os.path.join(EXAMPLES, "run_program", "export.py")
    subprocess.run([sys.executable, export, path], check=True)
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pixels = (tenon.arange(784) % 17).to(tenon.float32) / 16
    best = tenon.jit.load(path)(pixels.reshape(1, 784)).argmax(1).item()
    assert done.stdout == f"class {best} of 10\n"


def test_errors_are_texts(program, tmp_path):
    missing = str(tmp_path / "missing.tenon")
    done = subprocess.run([program, missing], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "load: load: " in done.stderr and missing in done.stderr
