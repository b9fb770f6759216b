# SPDX-License-Identifier: Apache-2.0
"""`tenon new-op`: what it writes and what it refuses. docs/operators.md builds both kinds."""

import subprocess
import sys

import pytest
import tenon


def new_op(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "new-op", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments, text",
    [
        (
            "Bad",
            "expected an operator's name like [a-z][a-z0-9_]*, at most 32 characters, got 'Bad'",
        ),
        ("relu_", "'relu_' ends in _, as in-place forms do; choose another name"),
        ("lambda", "'lambda' is a word of Python; choose another name"),
        ("relu", "tenon.ops.relu is there already; choose a namespace with --namespace"),
        ("f --namespace names", "tenon.ops.names is there already"),
        ("f --namespace Acme", "expected a namespace like [a-z][a-z0-9_]*"),
        ("f --namespace tenon", "'tenon' is taken; choose another name"),
        (
            "f --namespace autograd",
            "'autograd' is taken by a plugin of Tenon's own; choose another",
        ),
        ("f --namespace interpreter", "'interpreter' is taken by a plugin of Tenon's own"),
        ("f --vendor <b>", "expected a vendor's name of at most 40 letters"),
    ],
)
def test_names_that_cannot_be(tmp_path, arguments, text):
    code, printed = new_op(tmp_path, *arguments.split())
    assert code == 1 and text in printed
    assert not list(tmp_path.iterdir())


def test_a_folder_with_files_is_left_alone(tmp_path):
    (tmp_path / "tenon_acme").mkdir()
    (tmp_path / "tenon_acme" / "mine").write_text("mine")
    code, printed = new_op(tmp_path, "glu", "--namespace", "acme")
    assert (
        code == 1
        and "tenon_acme exists and is not empty; choose another name with --namespace" in printed
    )
    assert [path.name for path in (tmp_path / "tenon_acme").iterdir()] == ["mine"]


def test_names_are_put_everywhere(tmp_path):
    code, printed = new_op(
        tmp_path, "glu", "--namespace", "swiglu", "--vendor", "Glu & Co", "--folder", "x"
    )
    assert code == 0 and "tenon.ops.swiglu.glu" in printed
    texts = {path.name: path.read_text() for path in (tmp_path / "x").rglob("*") if path.is_file()}
    assert {"glu.cpp", "test_glu.py", "swiglu.yaml", "CMakeLists.txt", "ci.yml"} <= set(texts)
    assert not any("acme" in text.lower() for text in texts.values())
    assert "swiglu::glu_cpu(" in texts["glu.cpp"] and 'VENDOR "Glu & Co"' in texts["CMakeLists.txt"]


def test_an_expression_needs_nothing_but_the_file(tmp_path):
    code, printed = new_op(tmp_path, "gated", "--expression")
    assert code == 0, printed
    gated = tenon.ops.load(tmp_path / "tenon_gated" / "tenon_gated" / "gated.yaml").gated
    assert tenon.allclose(gated(tenon.ones(2), 2.0), tenon.full((2,), 1.4621172))
    assert not list(tmp_path.rglob("CMakeLists.txt"))
