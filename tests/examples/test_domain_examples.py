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
    ("tune_gpt", "best of", []),
    ("gpt_2x2x2", "losses and weights differ by", []),
    ("ddp_digits", "accuracy on 359 images, with 1 ranks", ["sklearn"]),
    ("elastic_digits", "accuracy on 359 images, with 1 ranks", ["sklearn"]),
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


def launched(options, name, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tenon", "run", *options, EXAMPLES / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_ranks_of_a_batch():
    pytest.importorskip("sklearn", reason="this script uses it")
    result = launched(["-n", "2"], "ddp_digits", "--quick")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[0] accuracy on 359 images, with 2 ranks" in result.stdout


def test_a_job_that_goes_on_with_fewer_ranks(tmp_path):
    """A rank kills itself behind step 35; the others begin again behind a step that was saved, and end as one less."""
    pytest.importorskip("sklearn", reason="this script uses it")
    options = ["-n", "1:3", "--max-restarts", "1"]
    arguments = ["--quick", "--folder", tmp_path / "run", "--kill", "35"]
    result = launched(options, "elastic_digits", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "rank 2 was ended by SIGKILL; 2 ranks start again, restart 1 of 1" in result.stderr
    begins = [line for line in result.stdout.splitlines() if "ranks begin behind step" in line]
    assert begins[0] == "[0] 3 ranks begin behind step 0"
    # The save of step 30 may have been under way.
    assert begins[1] in [f"[0] 2 ranks begin behind step {step}" for step in (20, 30)]
    assert "[0] accuracy on 359 images, with 2 ranks" in result.stdout
    # The job is over: one that is started again has nothing left to do but to test.
    result = launched(["-n", "1"], "elastic_digits", "--quick", "--folder", tmp_path / "run")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 ranks begin behind step 90" in result.stdout


def test_workers_with_parameter_servers(tmp_path):
    options = ["-n", "2", "--servers", "2"]
    result = launched(options, "wide_and_deep", "--quick", "--folder", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[0] area under the curve 0.7" in result.stdout
    assert "rows on 2 servers" in result.stdout


def test_a_script_that_misses_its_goal_fails():
    result = run("graph_network", "--quick", "--epochs", "0")
    assert result.returncode == 1, result.stdout + result.stderr


def test_every_script_is_documented():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"`{path.name}`" in page, path.name
        assert f"`{path.name}`" in readme, path.name
