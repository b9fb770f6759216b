# SPDX-License-Identifier: Apache-2.0
"""examples/train_digits.py, run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "train_digits.py"
TOY = next(
    (p for p in os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep) if "toy" in p), None
)
needs_toy = pytest.mark.skipif(not TOY, reason="TENON_TEST_PLUGINS does not name the toy plugin")

pytest.importorskip("sklearn")


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=600,
    )


def test_both_networks_reach_97_percent_on_the_cpu(tmp_path):
    result = run("--save", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("accuracy: 9") == 2
    assert {file.name for file in tmp_path.iterdir()} == {
        "digits_mlp.safetensors",
        "digits_conv.safetensors",
    }


@needs_toy
@pytest.mark.parametrize("model, epochs", [("mlp", 3), ("conv", 1)])
def test_networks_train_on_a_vendors_device(model, epochs):
    result = run("--device", "toy", "--plugin", TOY, "--model", model, "--epochs", epochs)
    assert result.returncode in (0, 1), result.stderr  # few epochs: the accuracy is not the point
    accuracy = float(result.stdout.split("accuracy: ")[1].split("%")[0])
    assert accuracy > 85.0, result.stdout
    assert "toy" in result.stdout.split("where the operators ran:")[1]


def test_too_little_training_is_a_failure():
    result = run("--model", "conv", "--epochs", 1, "--seed", 3)
    assert result.returncode == (
        0
        if "accuracy: 9" in result.stdout
        and float(result.stdout.split("accuracy: ")[1].split("%")[0]) >= 97
        else 1
    )
