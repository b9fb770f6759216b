# SPDX-License-Identifier: Apache-2.0
"""tenon.op: defining an operator that is defined already, its lifetime, and what is taken."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest
import tenon
from tenon.ops import _definition

X = tenon.tensor([[1.0, -2.0], [0.5, 3.0]])
G = tenon.tensor([[2.0, 1.0], [-1.0, 0.5]])


def test_the_same_signature_again_replaces_the_body():
    first = tenon.op("pyops::again(Tensor x) -> Tensor")(lambda x: x + 1)
    assert first(X).tolist() == (X + 1).tolist()
    second = tenon.op("pyops::again(Tensor x) -> Tensor")(lambda x: x + 2)
    assert second is first
    assert first(X).tolist() == (X + 2).tolist()


def test_another_signature_replaces_the_operator():
    first = tenon.op("pyops::changed(Tensor x) -> Tensor")(lambda x: x + 1)
    first.shape(lambda x: x)
    first.kernel("cpu")(lambda x: x)
    second = tenon.op("pyops::changed(Tensor x, int n) -> Tensor")(lambda x, n: x + n)
    with pytest.raises(LookupError, match="unloaded or replaced; look the operator up again"):
        first(X)
    assert second(X, 5).tolist() == (X + 5).tolist()
    assert tenon.ops.pyops.changed is second
    assert tenon.explain(second)["kernels"] == []
    with pytest.raises(ValueError):
        tenon.op("pyops::changed(Tensr x) -> Tensor")
    assert second(X, 5).tolist() == (X + 5).tolist()  # as it was


def test_a_default_list_outlives_its_definition():
    signature = "pyops::permuted(Tensor x, int[] axes=[1, 0]) -> Tensor"
    first = tenon.op(signature)(lambda x, axes: tenon.permute(x, axes))
    for _ in range(3):
        tenon.op(signature)(lambda x, axes: tenon.permute(x, axes))
    assert first(X).tolist() == X.T.tolist()


def test_an_operator_cannot_be_replaced_from_inside():
    def body(x):
        tenon.op("pyops::inside(Tensor x) -> Tensor")(lambda x: x)
        return x

    inside = tenon.op("pyops::inside(Tensor x) -> Tensor")(body)
    with pytest.raises(
        RuntimeError, match="pyops::inside is being called; define it anew once the"
    ):
        inside(X)
    tenon.op("pyops::inside(Tensor x) -> Tensor")(lambda x: x + 1)
    assert inside(X).tolist() == (X + 1).tolist()


def test_an_operator_cannot_be_replaced_while_another_thread_calls_it():
    started, finish = threading.Event(), threading.Event()

    def body(x):
        started.set()
        assert finish.wait(60)
        return x

    op = tenon.op("pyops::busy(Tensor x) -> Tensor")(body)
    thread = threading.Thread(target=op, args=(X,))
    thread.start()
    assert started.wait(60)
    with pytest.raises(
        RuntimeError, match="pyops::busy is being called; define it anew once the call"
    ):
        tenon.op("pyops::busy(Tensor x) -> Tensor")(lambda x: x)
    finish.set()
    thread.join()
    assert (
        tenon.op("pyops::busy(Tensor x) -> Tensor")(lambda x: x + 1)(X).tolist() == (X + 1).tolist()
    )


def test_a_name_of_another_plugin_is_taken():
    op = tenon.op("pyops::taken(Tensor x) -> Tensor")(lambda x: x)
    mine = _definition._definitions.pop("pyops::taken")  # as if it came from elsewhere
    with pytest.raises(
        ValueError,
        match="pyops::taken is defined already, at test_python_operator_again.py:.*; choose another name",
    ):
        tenon.op("pyops::taken(Tensor x) -> Tensor")(lambda x: x + 1)
    assert op(X).tolist() == X.tolist()
    _definition._definitions["pyops::taken"] = mine


def test_a_body_that_is_a_constant_is_a_body():
    @tenon.op("pyops::constant(Tensor x) -> Tensor")
    def constant(x):
        return 3

    with pytest.raises(TypeError, match="its body returned int; expected a Tensor"):
        constant(X)


def test_an_unloaded_operator_can_be_defined_again():
    gone = tenon.op("pyops::gone(Tensor x) -> Tensor")(lambda x: x + 1)
    name = next(p["name"] for p in tenon.plugins.list() if p["name"].startswith("python_gone_"))
    tenon.plugins.unload(name)
    with pytest.raises(LookupError, match="unloaded"):
        gone(X)
    assert (
        tenon.op("pyops::gone(Tensor x) -> Tensor")(lambda x: x + 2)(X).tolist() == (X + 2).tolist()
    )


def test_the_process_ends_quietly():
    program = textwrap.dedent("""
        import tenon
        op = tenon.op("quiet::op(Tensor x) -> Tensor")(lambda x: x + 1)
        op.shape(lambda x: x)
        op.grad(lambda dout: dout)
        op.kernel("cpu")(lambda x: x)
        x = tenon.tensor([1.0], requires_grad=True)
        y = op(x)
        print(y.tolist())
    """)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "[1.0]\n", "")


def test_a_failing_shape_rule_may_be_asked_twice():
    """Validation asks it before the call does; the error of the first time does not stay."""
    code = """
import tenon

@tenon.op("pyops_twice::fails(Tensor x) -> Tensor")
def fails(x):
    return x + 0

fails.shape(lambda x: None)
try:
    fails(tenon.ones(2))
except TypeError as error:
    print(error)
"""
    environment = dict(os.environ, TENON_VALIDATE="1")
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert b"its shape rule returned None" in run.stdout, run.stderr.decode()
