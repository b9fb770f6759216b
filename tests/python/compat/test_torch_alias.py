# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.torch.alias() and `python -m tenon.torch`, each in a process of its own, which keeps the dialect for good."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PROGRAMS = sorted((HERE / "alias_programs").glob("*.py"))


def run(arguments, folder, expected=0):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_cases_hold_in_a_process_of_the_dialect(tmp_path):
    options = ["-q", "-p", "no:cacheprovider", "--noconftest", f"--rootdir={HERE}"]
    printed = run(
        ["-m", "tenon.torch", "-m", "pytest", *options, HERE / "alias_cases.py"], tmp_path
    )
    assert " passed" in printed and "failed" not in printed and "skipped" not in printed


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run_as_they_are(program, tmp_path):
    run(["-m", "tenon.torch", program], tmp_path)


def test_pytorch_in_the_process_is_refused(tmp_path):
    (tmp_path / "torch.py").write_text("__version__ = '9.9'\n")
    program = "import torch\nfrom tenon.compat.torch import alias\nalias()"
    printed = run(["-c", program], tmp_path, expected=1)
    assert (
        "RuntimeError: alias(): expected a process without PyTorch, got torch 9.9, which is imported"
        in printed
    )


def test_the_command_says_how_it_is_used(tmp_path):
    assert "usage: python -m tenon.torch" in run(["-m", "tenon.torch", "--help"], tmp_path)
    assert "usage: python -m tenon.torch" in run(["-m", "tenon.torch"], tmp_path, expected=2)
    printed = run(["-m", "tenon.torch", "nothing.py"], tmp_path, expected=2)
    assert "expected a script, got 'nothing.py', which is not there" in printed
    assert "expected a module after -m" in run(["-m", "tenon.torch", "-m"], tmp_path, expected=2)


def test_a_program_sees_its_own_arguments_and_neighbours(tmp_path):
    (tmp_path / "part.py").write_text("value = 7\n")
    (tmp_path / "train.py").write_text(
        "import sys, torch, part\nprint(sys.argv[1:], part.value, __name__, torch.ones(1).size(0))\nsys.exit(3)\n"
    )
    printed = run(["-m", "tenon.torch", tmp_path / "train.py", "--epochs", "2"], "/", expected=3)
    assert "['--epochs', '2'] 7 __main__ 1" in printed


def test_without_the_alias_nothing_changes(tmp_path):
    program = (
        "import tenon, sys\nfrom tenon.compat import torch\n"
        "x = tenon.ones(2, 3)\nassert x.size == 6 and type(x.shape) is tuple and x.max(axis=1).shape == (2,)\n"
        "assert 'torch' not in sys.modules\n"
    )
    run(["-c", program], tmp_path)
