# SPDX-License-Identifier: Apache-2.0
"""The samples of PyTorch and JAX, and random questions to peers: a few, where these are installed."""

import importlib

import numpy as np
import pytest


@pytest.mark.parametrize("gradients", [False, True])
def test_samples_of_pytorch(gradients):
    pytest.importorskip("torch", reason="PyTorch is not a dependency; its samples need it")
    pytest.importorskip("expecttest", reason="PyTorch's tables of samples import it")
    from .peers import op_db

    judge = op_db.judge_gradients if gradients else op_db.judge
    entries = {each.name: each for each in op_db.op_db}
    assert judge(entries["add"], 4)[0] == "agrees"
    assert judge(entries["index_put"], 4)[0] == "agrees"
    assert judge(entries["istft"], 40)[0] == "different"  # see docs/compat_namespaces.md
    assert judge(entries["to_sparse"], 4)[0] == "missing"


def test_samples_of_jax():
    pytest.importorskip("jax", reason="JAX is not a dependency; its harnesses need it")
    pytest.importorskip("absl", reason="JAX's harnesses import it")
    from .peers import jax_harnesses

    def judged(name):
        chosen = [h for h in jax_harnesses.test_harnesses.all_harnesses if h.group_name == name]
        return jax_harnesses.judge(chosen, 40)[0]

    assert judged("cumprod") == judged("pad") == judged("dot_general") == "agrees"
    assert judged("lt") == "refused"  # complex numbers have no order
    assert judged("gather") == "left out"


@pytest.mark.parametrize(
    "name, needs, draw",
    [
        ("nn", "torch", "draw_all"),
        ("vision", "PIL", "draw"),
        ("audio", "scipy", "draw"),
    ],
)
def test_random_questions(name, needs, draw):
    """Two seeds of each program of comparisons; `python -m tests.fuzz.peers.NAME` asks for minutes."""
    pytest.importorskip(needs, reason="what is asked beside Tenon is no dependency of it")
    beside = importlib.import_module(".peers.beside", __package__)
    program = importlib.import_module(f".peers.{name}", __package__)
    report = None
    for seed in (1, 2):
        report = beside.compare(getattr(program, draw)(np.random.default_rng(seed)), program.KNOWN)
        assert report.calls and not report.found, str(report)


def test_a_difference_without_a_row_is_found():
    beside = importlib.import_module(".peers.beside", __package__)

    def ask(name, ours):
        return beside.Comparison(name, "", ours, lambda: [np.ones(2), None])

    asked = [
        ask("same", lambda: (np.ones(2), None)),
        ask("value", lambda: [np.array([1.0, 2.0]), None]),
        ask("shape", lambda: [np.ones(3), None]),
        ask("parts", lambda: [np.ones(2)]),
        ask("refused", lambda: 1 / 0),
        ask("on purpose", lambda: [np.zeros(2), None]),
        beside.Comparison("peer", "", lambda: 1, lambda: 1 / 0),
    ]
    report = beside.compare(asked, {"on purpose": "a reason"})
    found = {comparison.name: text for comparison, text in report.found}
    assert list(found) == ["value", "shape", "parts", "refused"]
    assert found["value"] == "result[0][1]: 2.0, expected 1.0 (1 of 2)"
    assert report.skipped["peer"] == report.on_purpose["on purpose"] == 1
