# SPDX-License-Identifier: Apache-2.0
"""What the plugin does with the library that it finds, and without one."""

import os
import shutil
import subprocess

import pytest
import tenon
from programs_support import VERBOSE, executed, run_python

FIX = (
    "install oneDNN 2.6 to 3.x (apt-get install libdnnl2, or pip install onednn), or set "
    "TENON_ONEDNN to the path of its library"
)
PROGRAM = "print((tenon.ones((2, 3)) @ tenon.ones((3, 2))).tolist())"
SUM = "[[3.0, 3.0], [3.0, 3.0]]"


def logged(run, path):
    out, log = run(PROGRAM, TENON_ONEDNN=str(path), TENON_OVERRIDES="onednn")
    assert out.strip() == SUM, "the CPU plugin's kernel runs"
    assert FIX in log
    return log


def build(tmp_path, source):
    path = tmp_path / "libdnnl.so"
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    (tmp_path / "stub.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", tmp_path / "stub.c", "-o", path], check=True)
    return path


def test_an_absent_library(run, tmp_path):
    log = logged(run, tmp_path / "libdnnl.so")
    assert "onednn: expected a library of oneDNN, got none (" in log
    assert "libdnnl.so: cannot open shared object file" in log


def test_a_damaged_library(run, tmp_path):
    path = tmp_path / "libdnnl.so"
    path.write_text("damaged")
    assert "libdnnl.so: file too short" in logged(run, path)
    path.write_bytes(b"damaged" * 1000)
    assert "libdnnl.so: invalid ELF header" in logged(run, path)


def test_another_library(run, tmp_path):
    log = logged(run, build(tmp_path, "int nothing;"))
    assert "expected a library with dnnl_version, got one that is not oneDNN; " in log


@pytest.mark.parametrize("version", ["1.8.0", "2.5.4", "4.0.1"])
def test_a_library_of_another_version(run, tmp_path, version):
    numbers = version.replace(".", ", ")
    source = f"static int v[3] = {{{numbers}}}; int* dnnl_version(void) {{ return v; }}"
    log = logged(run, build(tmp_path, source))
    assert f"onednn: expected oneDNN 2.6 to 3.x, got {version}; " in log


def test_a_library_without_a_function(run, tmp_path):
    source = "static int v[3] = {3, 1, 0}; int* dnnl_version(void) { return v; }"
    log = logged(run, build(tmp_path, source))
    assert "expected dnnl_engine_create in oneDNN 3.1.0, got a library without it; " in log


def test_the_doctor_says_what_to_install(tmp_path):
    out, _ = run_python("-m", "tenon", "plugins", "doctor", TENON_ONEDNN=str(tmp_path / "no.so"))
    assert f"none of {tmp_path}/no.so is installed; its kernels do not run until one is" in out
    with open(os.path.join(tenon.sdk_path(), "plugins/onednn.tenon.json")) as file:
        assert "apt-get install libdnnl2, or pip install onednn" in file.read()


def test_autotuning_measures_its_kernels(library, run):
    out, _ = run(
        """
        x = tenon.tensor(np.random.default_rng(0).normal(size=(192, 192)).astype("float32"))
        with tenon.autotune():
            y = x @ x
        (decision,) = tenon.autotune.report()["decisions"]
        np.testing.assert_allclose(y.numpy(), x.numpy() @ x.numpy(), rtol=1e-4, atol=1e-4)
        assert set(decision["microseconds"]) >= {"cpu", "onednn", "onednn/1"}, decision
        assert decision["chosen"] in decision["microseconds"]
        print(decision["versions"])
        """
    )
    assert library in out


# Results, bit by bit, and what could run matmul.
RESULTS = """
import hashlib, numpy as np, tenon
rng = np.random.default_rng(0)
x = tenon.tensor(rng.normal(size=(2, 8, 24, 24)).astype("float32"))
w = tenon.tensor(rng.normal(size=(16, 8, 3, 3)).astype("float32"))
for y in x @ x, tenon.conv2d(x, w), tenon.softmax(x), tenon.layer_norm(x), tenon.avg_pool2d(x, 2):
    print(hashlib.sha256(y.numpy().tobytes()).hexdigest())
print(sorted({kernel["plugin"] for kernel in tenon.explain("matmul", "cpu")["kernels"]}))
"""


def test_removing_the_file_changes_nothing_else(tmp_path):
    package = os.path.dirname(tenon.__file__)
    copy = tmp_path / "tenon"
    ignored = shutil.ignore_patterns("*tenon_onednn*", "onednn.tenon.json", "__pycache__")
    shutil.copytree(package, copy, ignore=ignored)
    environment = {"TENON_TEST_PLUGINS": "", **VERBOSE}
    out, _ = run_python("-c", RESULTS, **environment)
    assert not executed(out)
    without, log = run_python("-c", RESULTS, **environment, PYTHONPATH=str(tmp_path))
    assert out.replace("['cpu', 'onednn']", "['cpu']") == without and "onednn" in out
    assert log == ""
    doctor, _ = run_python("-m", "tenon", "plugins", "doctor", PYTHONPATH=str(tmp_path))
    assert "onednn" not in doctor and "0 refused" in doctor
