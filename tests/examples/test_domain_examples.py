# SPDX-License-Identifier: Apache-2.0
"""The training scripts in examples/, each at the small size of --quick."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Scripts, what they print, and the libraries that they need.
SCRIPTS = [
    ("classify_digits", "accuracy on 359 images", ["sklearn"]),
    ("character_gpt", "nats per character", []),
    ("mixture_gpt", "nats per character", []),
    ("gpt_2x2x2", "losses and weights differ by", []),
    ("lstm_modules", "accuracy on", []),
    ("vae_digits", "evidence lower bound on 359 images", ["sklearn"]),
    ("graph_network", "nodes in their group", []),
    ("diffusion_digits", "digits that a linear classifier finds", ["sklearn"]),
    (
        "serve_small_llama",
        "answers over HTTP are those of the docstrings",
        ["tokenizers", "jinja2", "uvicorn"],
    ),
]


def run(name, *arguments):
    return subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("name, printed, libraries", SCRIPTS)
def test_scripts_learn_in_seconds(name, printed, libraries):
    for library in libraries:
        pytest.importorskip(library, reason="this script uses it")
    result = run(name, "--quick")
    assert result.returncode == 0, result.stdout + result.stderr
    assert printed in result.stdout


def test_ranks_of_one_script_share_its_experts():
    result = run("mixture_gpt", "--quick", "--ranks", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    for line in ("rank 0 of 2: 27072 parameters, experts [0, 1, 2, 3]", "experts [4, 5, 6, 7]"):
        assert line in result.stdout


def test_a_script_that_misses_its_goal_fails():
    result = run("graph_network", "--quick", "--epochs", "0")
    assert result.returncode == 1, result.stdout + result.stderr


def test_every_script_is_documented():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"`{path.name}`" in page, path.name
        assert f"`{path.name}`" in readme, path.name
