# SPDX-License-Identifier: Apache-2.0
"""The training scripts in examples/, each at the small size of --quick."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Scripts, what they print, and whether they need scikit-learn.
SCRIPTS = [
    ("classify_digits", "accuracy on 359 images", True),
    ("character_gpt", "nats per character", False),
    ("lstm_modules", "accuracy on", False),
    ("vae_digits", "evidence lower bound on 359 images", True),
    ("graph_network", "nodes in their group", False),
    ("diffusion_digits", "digits that a linear classifier finds", True),
]


def run(name, *arguments):
    return subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("name, printed, needs_sklearn", SCRIPTS)
def test_scripts_learn_in_seconds(name, printed, needs_sklearn):
    if needs_sklearn:
        pytest.importorskip("sklearn", reason="its digits are the data of this script")
    result = run(name, "--quick")
    assert result.returncode == 0, result.stdout + result.stderr
    assert printed in result.stdout


def test_a_script_that_misses_its_goal_fails():
    result = run("graph_network", "--quick", "--epochs", "0")
    assert result.returncode == 1, result.stdout + result.stderr


def test_every_script_is_documented():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"`{path.name}`" in page, path.name
        assert f"`{path.name}`" in readme, path.name
