# SPDX-License-Identifier: Apache-2.0
"""Packages built as their authors would: out of tree, against the SDK that was installed."""

import functools
import os
import shutil
import subprocess
import sys

import tenon

BUILD = os.environ.get("TENON_BUILD_DIR")
HERE = os.path.dirname(os.path.realpath(__file__))


@functools.cache
def sdk():
    """The SDK, installed into the package of the build tree, where a wheel has it."""
    package = tenon.sdk_path()
    subprocess.run(
        ["cmake", "--install", BUILD, "--component", "sdk", "--prefix", package],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return package


def folder(name):
    """An empty folder in the build tree, where plugins may lie."""
    path = os.path.join(BUILD, "packages", name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def configure(source, build, *options):
    """cmake -S source -B build: (exit code, what it printed)."""
    launcher = []
    if shutil.which("ccache"):
        launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("CXX", "CUDA")]
    return _run(
        ["cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={sdk()}"]
        + ["-DCMAKE_BUILD_TYPE=Release", *launcher, *options]
    )


def build(name, *options, source=None):
    """Build tests/packages/<name>, or another folder: the folder with the library."""
    path = folder(name)
    code, text = configure(source or os.path.join(HERE, name), path, *options)
    assert code == 0, text
    code, text = make(path)
    assert code == 0, text
    return path


def make(path):
    return _run(["cmake", "--build", path])


def python(program, **environment):
    """Run a program in a process of its own: what it printed. It must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode == 0, f"{program}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr
