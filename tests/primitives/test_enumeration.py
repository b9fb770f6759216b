# SPDX-License-Identifier: Apache-2.0
"""Eleven kernels run every operator: each is tried, and the primitives that ran are a table. `make docs`
names a file in TENON_PRIMITIVES_TABLE and appends the table to the site's page on primitives."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
import tenon
from case import differentiable_results, is_floating
from running import arguments, results_of
from samples import CASES

PRIMITIVES = "copy unary binary compare select reduce contract gather scatter iota random".split()

# Cases of other tests have none of these as their operator; examples for them.
CREATION = {
    "empty": lambda: tenon.empty([3], device="level1"),
    "empty_like": lambda: tenon.empty_like(tenon.zeros([3], device="level1")),
    "to_device": lambda: tenon.zeros([3]).to("level1"),
    "pack": lambda: tenon.pack(tenon.zeros([4], device="level1"), "int4_x2"),
    "unpack": lambda: tenon.unpack(tenon.empty([4], dtype="int4_x2", device="level1")),
    "uniform": lambda: tenon.uniform([3], -1.0, 2.0, device="level1"),
    "normal": lambda: tenon.normal([3], device="level1"),
    "randint": lambda: tenon.randint(0, 9, [3], device="level1"),
    "randperm": lambda: tenon.randperm(5, device="level1"),
    "bernoulli": lambda: tenon.bernoulli(tenon.zeros([3], device="level1")),
    "dropout": lambda: tenon.dropout(tenon.zeros([3], device="level1")),
    "uniform_like": lambda: tenon.uniform_like(tenon.zeros([3], device="level1")),
    "normal_like": lambda: tenon.normal_like(tenon.zeros([3], device="level1")),
    "multinomial": lambda: tenon.multinomial(tenon.ones([3], device="level1"), 2),
}


def operators():
    """Every operator, the internal ones too, as tenon-codegen dumps them."""
    dump = Path(os.environ["TENON_BUILD_DIR"]) / "gen" / "operators.json"
    return json.loads(dump.read_text())["operators"]


def needs_the_host(op):
    """Factorizations are computed by LAPACK and have no decomposition into primitives: an algorithm for
    each would have to choose pivots, or to iterate until values converge, with one primitive a step.
    Neither have Fourier transforms, whose stages for each prime factor would be primitives each.
    Incomplete gamma functions iterate, too, and complex numbers are not decomposed at all."""
    if op["name"] in ("tenon::incomplete_gamma", "tenon::join_complex"):
        return True
    family = op["origin"].partition(":")[0]
    return family in ("factorization.yaml", "fft.yaml") and op["kind"] == "kernel"


def plan(op, dtype):
    return tenon.explain(op["name"], "level1", getattr(tenon, dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
def test_no_operator_is_left_to_the_host(dtype):
    """Whatever the decision table would do with a call, it is not to copy tensors to the host."""
    asked = [
        op
        for op in operators()
        if dtype in op["dtypes"] and "primitive" not in op["tags"] and not needs_the_host(op)
    ]
    assert len(asked) > 100
    for op in asked:
        assert plan(op, dtype)["route"] in ("lowered", "view"), op["name"]


def test_primitives_are_kernels():
    primitives = {op["name"]: op for op in operators() if "primitive" in op["tags"]}
    assert set(primitives) == {f"tenon::primitive_{name}" for name in PRIMITIVES}
    for name, op in primitives.items():
        dtype = "int64" if name == "tenon::primitive_random" else "float32"
        assert plan(op, dtype)["route"] == "native"


def calls(run):
    """Operators that ran on the device during `run`, as two sets: by a kernel, by decomposition."""
    tenon.fallback_report(reset=True)
    run()
    rows = [row for row in tenon.fallback_report() if row["device"] == "level1"]
    assert [row for row in rows if row["host"]] == []
    return {r["op"] for r in rows if r["native"]}, {r["op"] for r in rows if r["lowered"]}


def run_case(case):
    args, kwargs = arguments(case, "level1", "float32")
    function = getattr(tenon, case.op)
    return lambda: results_of(function(*args, **kwargs))


def differentiate(case):
    """Gradients reach the operators that only they call."""
    args, kwargs = arguments(case, "level1", "float32")
    inputs = [
        tensor.requires_grad_()
        for i, (value, array) in enumerate(zip(args, case.args, strict=True))
        for tensor, one in zip(
            value if isinstance(value, list) else [value],
            array if isinstance(array, list) else [array],
            strict=True,
        )
        if is_floating(one) and (case.grad is None or i in case.grad)
    ]
    results = differentiable_results(case, getattr(tenon, case.op)(*args, **kwargs))
    total = sum((r * r).sum() for r in results if r.requires_grad and "float" in str(r.dtype))
    if inputs and not isinstance(total, int):
        first = tenon.grad(total, inputs, create_graph=True, allow_unused=True)
        again = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
        if not isinstance(again, int):
            tenon.grad(again, inputs, allow_unused=True)


def differentiate_strided_parts():
    """Parts of contiguous tensors have gradients that are views; these come to operators."""
    x = tenon.ones([3, 4], device="level1").requires_grad_()
    for part in (x.T[1:3], tenon.diagonal(x.T)):
        tenon.grad(part.sum(), [x])


@pytest.fixture(scope="module")
def forward():
    """For every operator with a case: the primitives that it calls. And all operators that ran."""
    ends, ran = defaultdict(set), set()
    with tenon.fallback("deny"):
        for op, run in [(case.op, run_case(case)) for case in CASES] + list(CREATION.items()):
            native, lowered = calls(run)
            ends[op] |= {name.removeprefix("primitive_") for name in native}
            ran |= native | lowered
    return ends, ran


@pytest.fixture(scope="module")
def seen(forward):
    """All operators that ran, those that gradients call too."""
    ran = set(forward[1])
    with tenon.fallback("deny"):
        for case in CASES:
            if case.grad != ():
                native, lowered = calls(lambda case=case: differentiate(case))
                ran |= native | lowered
        native, lowered = calls(differentiate_strided_parts)
        ran |= native | lowered
    return ran


def test_kernels_are_primitives_alone(forward):
    assert set().union(*forward[0].values()) == set(PRIMITIVES)


# Composites call these while they are recorded, for tensors that the host reads.
CHECKS_OF_PROGRAMS = {"expect_between", "expect_weights"}


def test_every_operator_was_tried(seen):
    decomposed = {
        op["name"].removeprefix("tenon::")
        for op in operators()
        if op["kind"] in ("elementwise", "reduction", "kernel")
        and "primitive" not in op["tags"]
        and not needs_the_host(op)
    }
    assert decomposed - seen == CHECKS_OF_PROGRAMS


def table(ends):
    lines = ["| operator | " + " | ".join(PRIMITIVES) + " |\n", "|---" * 12 + "|\n"]
    for op in sorted(ends):
        marks = " | ".join("x" if name in ends[op] else " " for name in PRIMITIVES)
        lines.append(f"| {op} | {marks} |\n")
    return "".join(lines)


def test_table_of_the_site(forward):
    text = table(forward[0])
    assert "| abs |   | x |   |   |   |   |   |   |   |   |   |\n" in text
    assert "| matmul | x |   |   |   |   |   | x |   |   |   |   |\n" in text
    if path := os.environ.get("TENON_PRIMITIVES_TABLE"):
        Path(path).write_text(text, encoding="utf-8")
