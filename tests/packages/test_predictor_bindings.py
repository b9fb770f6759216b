# SPDX-License-Identifier: Apache-2.0
"""bindings/go and bindings/java: their own tests, where their compilers are."""

import os
import shutil
import subprocess

import building
import pytest
import tenon

pytestmark = pytest.mark.skipif(not building.BUILD, reason="needs TENON_BUILD_DIR")
ROOT = os.path.realpath(os.path.join(building.HERE, "../.."))
MODELS = os.path.join(ROOT, "tests", "predictor", "models")


def run(command, folder, **environment):
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "TENON_TEST_MODELS": MODELS, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("go"), reason="no Go compiler; apt install golang-go")
def test_go():
    sdk = tenon.sdk_path()
    library = os.path.join(sdk, "lib", "libtenon_predictor.so.1")
    run(
        ["go", "test", "-vet=all", "-count=1", "."],
        os.path.join(ROOT, "bindings", "go"),
        CGO_CFLAGS=f"-I{ROOT}/sdk/include",
        CGO_LDFLAGS=f"{library} -Wl,-rpath,{os.path.dirname(library)}",
        GOFLAGS="-mod=mod",
        GOPROXY="off",
    )


@pytest.mark.skipif(not shutil.which("javac"), reason="no JDK; apt install default-jdk-headless")
def test_java(tmp_path):
    compiler = os.path.realpath(shutil.which("javac"))
    headers = os.path.join(os.path.dirname(os.path.dirname(compiler)), "include")
    source = os.path.join(ROOT, "bindings", "java")
    lib = os.path.join(tenon.sdk_path(), "lib")
    native = str(tmp_path / "libtenon_predictor_jni.so")
    run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", native]
        + [f"-I{headers}", f"-I{headers}/linux", f"-I{ROOT}/sdk/include"]
        + [f"{source}/predictor_jni.c", f"{lib}/libtenon_predictor.so.1", f"-Wl,-rpath,{lib}"],
        source,
    )
    run(["javac", "-Xlint:all", "-Werror", "-d", str(tmp_path), "PredictorTest.java"], source)
    options = ["-Xcheck:jni", f"-Dorg.tenon.library={native}", "-cp", str(tmp_path)]
    assert "fine" in run(["java", *options, "PredictorTest"], source)
