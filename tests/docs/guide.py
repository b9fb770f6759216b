# SPDX-License-Identifier: Apache-2.0
"""Guides in docs/, followed command by command in an environment of their own.

Blocks marked `sh` and `python` run in order in one folder; `cd` carries over. Those marked `diff` are
applied, and those with a title, as `yaml title="acme.yaml"`, are written to that file. What has a title with spaces, as "not run by the tests", is left out.
The environment sees the package that was built.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time

import pytest
import tenon

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TENON_BUILD_DIR")

needs_build = pytest.mark.skipif(
    not BUILD or shutil.which("cmake") is None, reason="TENON_BUILD_DIR or cmake is missing"
)


class Reader:
    """A user who has `tenon` and no file of this test, in a folder that may hold plugins."""

    def __init__(self, name):
        home = os.path.join(BUILD, name)
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(home)
        self.folder = home
        package = os.path.dirname(os.path.dirname(tenon.__file__))
        # As in a wheel: the SDK inside the package.
        subprocess.run(
            ["cmake", "--install", BUILD, "--component", "sdk", "--prefix", f"{package}/tenon"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.search_path = f"{package}\n{sysconfig.get_path('purelib')}\n"
        self.conformance = f"{package}/tenon/bin/tenon-conformance"
        self.add_environment("venv")
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "PYTHON"))
        }
        environment["PATH"] = f"{home}/venv/bin:{environment['PATH']}"
        environment["FOLDER_FILE"] = f"{home}/folder"  # where the last block ended
        environment["CMAKE_GENERATOR"] = "Ninja"
        environment["TENON_PLUGIN_TRUST"] = "any"
        if shutil.which("ccache"):
            environment["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        self.environment = environment

    def add_environment(self, name):
        """A virtual environment in which Tenon has been installed."""
        venv = f"{self.folder}/{name}"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        with open(f"{venv}/lib/{version}/site-packages/built.pth", "w") as file:
            file.write(self.search_path)
        commands = {
            "tenon": f'exec {venv}/bin/python -m tenon "$@"',
            "pip": f'exec {venv}/bin/python -m pip --disable-pip-version-check "$@"',
            "tenon-conformance": f'exec "{self.conformance}" "$@"',
        }
        for command, body in commands.items():
            path = f"{venv}/bin/{command}"
            with open(path, "w") as file:
                file.write(f"#!/bin/sh\n{body}\n")
            os.chmod(path, 0o755)

    def follow(self, page, one_program=False):
        """Run every block of a page of docs/; the first that fails is an error with what it printed.

        With `one_program`, Python blocks without a command between them run in one process.
        """
        for name, text in re.findall(
            r'^```\w+ title="([\w.]+)"\n(.*?)^```', read(page), re.M | re.S
        ):
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        for language, text in joined(blocks(page)) if one_program else blocks(page):
            began = time.monotonic()
            if language == "sh":
                command = ["bash", "-euc", f'{text}\npwd > "$FOLDER_FILE"']
            elif language == "diff":
                command = ["patch", "-p1"]
            else:
                command = ["python", "-c", text]
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                input=text if language == "diff" else None,
                capture_output=True,
                text=True,
                timeout=600,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            print(f"{time.monotonic() - began:5.1f} s  {text.splitlines()[0]}")
            if language == "sh":
                with open(self.environment["FOLDER_FILE"]) as file:
                    self.folder = file.read().strip()


def joined(found):
    """Blocks with each run of Python blocks as one."""
    result = []
    for language, text in found:
        if result and language == result[-1][0] == "python":
            text = f"{result.pop()[1]}\n{text}"
        result.append((language, text))
    return result


def read(page):
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as file:
        return file.read()


def blocks(page, languages="sh|python|diff"):
    return re.findall(rf"^```({languages})\n(.*?)^```", read(page), re.M | re.S)
