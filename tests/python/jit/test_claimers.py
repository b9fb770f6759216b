# SPDX-License-Identifier: Apache-2.0
"""Claimers of parts of programs, chosen by name: their order, programs of many sizes, forked processes, executables that fail, and
what lives how long. The two here, `sums` and `products`, are plugins of the tests."""

import gc
import os
import pathlib
import re
import threading

import numpy as np
import pytest
import tenon
from tenon import inference, jit

PATH = (
    pathlib.Path(os.environ.get("TENON_BUILD_DIR", "build/release"))
    / "tests/plugins/libraries/libtenon_claimers.so"
).absolute()
pytestmark = pytest.mark.skipif(not PATH.exists(), reason=f"TENON_BUILD_DIR has no {PATH.name}")


@pytest.fixture(autouse=True, scope="module")
def claimers():
    tenon.load_plugin(PATH)


@pytest.fixture(autouse=True)
def no_gradients():
    with tenon.no_grad():
        yield


def function(x):
    return ((x + x) * x + x) * x


def exported(**settings):
    return tenon.export(function, (tenon.randn(3, 5),), **settings).freeze()


def check(program, *sizes, runs=3):
    """The program gives the function's bits, run after run."""
    for size in sizes or (3,):
        for _ in range(runs):
            x = tenon.randn(size, 5)
            np.testing.assert_array_equal(program(x).numpy(), function(x).numpy(), strict=True)
    return program


def counts():
    """What is alive: claimers, executables; and what has been: executables, runs, claimers that were closed before these."""
    gc.collect()
    with pytest.raises(RuntimeError, match="claimers") as failure:
        exported().claim("sums", "counts")
    return dict(
        zip(
            ("claimers", "executables", "made", "runs", "early"),
            map(int, re.findall(r"\d+", str(failure.value))),
            strict=True,
        )
    )


def parts(program):
    """(first step, who has claimed it) of each part."""
    return re.findall(r"^steps? (\d+).*?: one executable of (\w+)", program.plan(), re.MULTILINE)


def test_what_one_leaves_is_offered_to_the_next():
    both = check(exported().claim("sums").claim("products"))
    assert parts(both) == [("0", "sums"), ("1", "products"), ("2", "sums"), ("3", "products")]
    one = check(exported().claim("products"))
    assert parts(one) == [("1", "products"), ("3", "products")]
    twice = check(exported().claim("sums", "create").claim("sums"))
    assert parts(twice) == [] and twice.plan().count("claimed by sums, and run by kernels") == 2


def test_neighbours_are_one_executable():
    program = tenon.export(lambda x: x + x + x, (tenon.randn(3, 5),)).claim("sums")
    for _ in range(3):
        x = tenon.randn(3, 5)
        np.testing.assert_array_equal(program(x).numpy(), (x + x + x).numpy())
    assert program.plan().startswith("steps 0 to 1: one executable of sums; 1 of 2 results stay in")


def test_programs_of_many_sizes():
    before = counts()
    dimension = tenon.Dim("batch", min=2, max=64)
    program = exported(dynamic_shapes=[{0: dimension}]).claim("sums")
    assert program.plan().count("it is compiled when the program runs again") == 2
    check(program, 7, 64, 7)
    assert program.plan().count("it is compiled when the program runs again") == 2  # of size 3
    check(program, 3, 9)
    assert parts(program) == [("0", "sums"), ("2", "sums")]
    assert counts()["executables"] == before["executables"] + 2 * 4
    del program
    assert counts()["executables"] == before["executables"]


def test_many_sizes_at_once():
    dimension = tenon.Dim("batch", min=2, max=64)
    program = exported(dynamic_shapes=[{0: dimension}]).claim("sums").claim("products")
    right = []

    def work(seed):
        inputs = [tenon.full((size, 5), 0.5 * seed + size) for size in (2, 3, 40)]
        with tenon.no_grad():
            for x in inputs * 20:
                right.append(np.array_equal(program(x).numpy(), function(x).numpy()))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 240 and counts()["early"] == 0


def test_claimers_outlive_their_executables():
    before = counts()
    program = check(exported().claim("sums").claim("products"))
    changed = program.optimize(["fold"])  # has the same claimers
    assert counts()["claimers"] == before["claimers"] + 2
    del program
    check(changed)
    assert parts(changed)
    del changed
    after = counts()
    assert after["claimers"] == before["claimers"] and after["early"] == 0
    assert after["executables"] == before["executables"] and after["runs"] > before["runs"]


def test_a_child_of_a_fork_leaves_executables_to_its_parent():
    program = check(exported().claim("sums"))
    before = counts()
    child = os.fork()
    if child == 0:
        try:
            check(program)
            del program
            after = counts()  # what is its parent's is neither destroyed nor closed
            kept = all(after[each] == before[each] for each in ("claimers", "executables", "early"))
            os._exit(0 if kept else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check(program)
    assert counts()["executables"] == before["executables"]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("create", "claimed by sums, and run by kernels: the compiler is out"),
        ("run", "a run failed, and kernels ran its steps: the processor is out"),
    ],
)
def test_what_fails_is_run_by_kernels(fault, text):
    before = counts()
    program = check(exported().claim("sums", fault))
    assert program.plan().count(text) == 2, program.plan()
    del program
    assert counts() == before | {"made": counts()["made"]}


@pytest.fixture
def model(tmp_path):
    def forward(x):
        return {"y": x + x + x}

    dimension = tenon.Dim("batch", min=2, max=64)
    program = tenon.export(forward, (tenon.randn(3, 5),), dynamic_shapes=[{0: dimension}])
    program.freeze().save(tmp_path / "model.tenon")
    return tmp_path / "model.tenon"


def rows(predictor):
    """(operator, who runs it) of each step."""
    text = predictor.explain()
    steps = re.findall(r"^ *\d* +(?:tenon::)?(\w+) +cpu:0 +\w+ +(\S+)", text, re.MULTILINE)
    assert steps, text
    return steps


@pytest.mark.parametrize("fault", ["create", "run"])
def test_deny_looks_at_what_ran_whatever_is_warmed_up(model, fault):
    for warmup in ("", "recorded", "x=8x5"):
        with pytest.raises(
            tenon.PolicyError, match=r"kernels run steps that claimers(.|\n)*steps 0 to 1: the "
        ):
            inference.Predictor(model, subgraphs=f"sums: {fault}", fallback="deny", warmup=warmup)


def test_explain_says_who_runs_a_step(model):
    predictor = inference.Predictor(model, subgraphs="sums", fallback="deny")
    assert [row[1] for row in rows(predictor)] == ["sums", "sums"]
    fails = inference.Predictor(model, subgraphs="sums: create", fallback="allow")
    assert [row[1] for row in rows(fails)] == ["sums", "sums"]  # nothing is known yet
    for _ in range(2):
        fails.run({"x": tenon.randn(3, 5)})
    assert [row[1] for row in rows(fails)] == ["cpu", "cpu"]


def test_steps_of_regions_are_counted_behind_theirs(tmp_path):
    def forward(x, flag):
        y = jit.cond(flag, lambda x: (x + x) * x, lambda x: x * x + x, x)
        return {"y": y + x}

    inputs = (tenon.randn(3, 5), tenon.tensor(True))
    tenon.export(forward, inputs).freeze().save(tmp_path / "model.tenon")
    predictor = inference.Predictor(tmp_path / "model.tenon", subgraphs="sums", fallback="allow")
    assert rows(predictor) == [
        ("cond", "-"),
        ("add", "sums"),
        ("multiply", "cpu"),
        ("square", "cpu"),
        ("add", "sums"),
        ("add", "sums"),
    ]
    for flag in (True, False, True, False):
        x = tenon.randn(3, 5)
        want = ((x + x) * x if flag else x * x + x) + x
        got = predictor.run({"x": x, "flag": tenon.tensor(flag)})["y"]
        np.testing.assert_array_equal(got.numpy(), want.numpy())
