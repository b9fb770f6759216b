# SPDX-License-Identifier: Apache-2.0
"""The samples of PyTorch and JAX, a few of them, and a few random cases, where the peers are
installed."""

import importlib

import numpy as np
import pytest

from .peers.campaign import Difference, apart, run_cases


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

    assert judged("cumprod") == judged("pad") == "agrees"
    assert judged("dot_general") == "refused"  # products of bools, which have no sum
    assert judged("lt") == "refused"  # complex numbers have no order
    assert judged("gather") == "left out"


@pytest.mark.parametrize(
    "name, peers, cases",
    [
        ("optim", ["torch"], 80),
        ("distributions", ["torch", "scipy"], 150),
        ("metrics", ["sklearn"], 12),
        ("data", ["scipy"], 10),
    ],
)
@pytest.mark.filterwarnings("ignore")  # the peers' own
def test_random_cases_beside_peers(name, peers, cases):
    """A few cases of the programs that run for as long as they are told."""
    for peer in peers:
        pytest.importorskip(peer, reason=f"{peer} is not a dependency; it is what is compared with")
    module = importlib.import_module(f".peers.{name}", __package__)
    result = run_cases(module.case, module.DIFFERENCES, range(cases))
    assert not result.found, "\n".join(result.found)
    assert result.cases == cases and sum(result.compared.values()) >= cases


def test_a_difference_is_found_unless_a_row_explains_it():
    def case(rng):
        yield "sum of 1 and 2", apart(1 + 2, 3, 0, 0)
        yield "half of 1", apart([0.5, 0.25], [0.5, 0.5], 0, 0)
        if rng.random() > 2:
            return
        raise RuntimeError("the case broke")

    result = run_cases(case, [], [7])
    assert result.compared == {"sum of 1 and 2": 1, "half of 1": 1}
    different, broken = result.found
    assert different == "case 7: half of 1: got 0.25, expected 0.5 at (1,) of (2,)".replace(
        "0.25", repr(np.float64(0.25))
    ).replace("expected 0.5", f"expected {np.float64(0.5)!r}")
    assert "after half of 1" in broken and "the case broke" in broken
    explained = run_cases(case, [Difference("half.*", "halves are meant")], [7])
    assert explained.explained == {"halves are meant": 1} and len(explained.found) == 1


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
