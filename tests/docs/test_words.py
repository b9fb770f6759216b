# SPDX-License-Identifier: Apache-2.0
"""The check of words notices each word that it is for, in each kind of file that it reads."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/words.py"


def check(folder, name, text):
    (folder / name).write_text(text)
    command = [sys.executable, str(SCRIPT), name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("constexpr int kMostSteps = 3;", "'kMostSteps': write kMax..."),
        ("int kFewest;", "'kFewest': write kMin..."),
        ("limit(kLeastMade)", "'kLeastMade': write kMin..."),
        ("void bring_in();", "'bring_in': write load"),
        ("void taken_back();", "'taken_back': write roll back"),
        ("run_region(f);", "'run_region': write parallel_for"),
        ("Places places;", "'Places': write indices"),
        ("// It looks away.", "'looks away': write"),
        ("// Whoever calls it", "'Whoever': write"),
        ("// somebody frees it", "'somebody': write the subject"),
        ("// what was asked for", "'asked for': write requested"),
        ("double rest1;", "'rest1': write one_minus_beta1"),
    ],
)
@pytest.mark.parametrize("name", ["a.cpp", "a.h", "a.py", "a.cu"])
def test_a_planted_word_is_found(tmp_path, name, text, found):
    done = check(tmp_path, name, f"// first line\n{text}\n")
    assert done.returncode == 1
    assert f"{name}:2: {found}" in done.stdout


def test_words_of_the_field_pass(tmp_path):
    done = check(tmp_path, "a.hpp", "int kMaxSteps, almost, kMinSize;  // two indices\n")
    assert (done.returncode, done.stdout) == (0, "")


def test_sentences_may_speak_of_places(tmp_path):
    assert check(tmp_path, "a.md", "It stands in two places.\n").returncode == 0
    assert check(tmp_path, "a.md", "Nobody reads it.\n").returncode == 1


def test_every_folder_is_read():
    done = subprocess.run(
        [sys.executable, "-c", "import words; print(*filter(words.is_checked, words.tracked_files()))"],
        cwd=SCRIPT.parent.parent, env={"PYTHONPATH": str(SCRIPT.parent), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    folders = {path.split("/")[0] for path in done.stdout.split()}
    assert folders >= {"codegen", "compat", "conformance", "docs", "kernel_core", "opdefs", "plugins",
                       "python_bindings", "scripts", "sdk", "tests"}  # fmt: skip
