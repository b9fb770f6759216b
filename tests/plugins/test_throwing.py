# SPDX-License-Identifier: Apache-2.0
"""Plugins whose C functions throw, or lie: an error that names the operator, and life goes on."""

import os

import pytest
import tenon
from plugin_support import FAULTY_PLUGINS

CLUMSY = os.path.join(FAULTY_PLUGINS, "libtenon_clumsy.so")

pytestmark = pytest.mark.skipif(not os.path.exists(CLUMSY), reason="TENON_BUILD_DIR is not set")


@pytest.fixture(scope="module", autouse=True)
def clumsy():
    tenon.load_plugin(CLUMSY)


@pytest.fixture(params=["cpu", "null"])
def x(request):
    return tenon.ones([4], device=request.param)


def call(name, x):
    return tenon._core.operator(f"clumsy::{name}")(x)


@pytest.mark.parametrize(
    "name, error, what",
    [
        (
            "throws_error",
            tenon.InternalError,
            "a C++ exception escaped from {}: the kernel blew up",
        ),
        ("throws_number", tenon.InternalError, "an exception of unknown type escaped from {}"),
        ("throws_memory", MemoryError, "{} ran out of host memory"),
        (
            "throws_on_pool",
            tenon.InternalError,
            "a C++ exception escaped from {}: a worker blew up",
        ),
        (
            "can_run_throws",
            tenon.InternalError,
            "a C++ exception escaped from {}, its can_run: no idea",
        ),
    ],
)
def test_kernels_that_throw(x, name, error, what):
    kernel = f"[clumsy::{name}] the kernel of plugin clumsy for {x.device.type}"
    for _ in range(3):  # nothing is left behind that the next call would trip over
        with pytest.raises(error) as caught:
            call(name, x)
        assert what.format(kernel) in str(caught.value)
    assert call("good", x).tolist() == [2.0] * 4


def test_the_pool_works_after_a_worker_threw(x):
    with pytest.raises(tenon.InternalError, match="a worker blew up"):
        call("throws_on_pool", x)
    large = tenon.ones([1 << 20])
    assert (large + large).sum().item() == 2 << 20


def test_parts_of_lowerings_that_throw(x):
    with pytest.raises(tenon.InternalError) as caught:
        call("lowered_to_throwing", x)
    text = str(caught.value)
    assert f"[clumsy::lowered_to_throwing] decomposed on {x.device}" in text
    assert "[clumsy::throws_error] the kernel of plugin clumsy for" in text
    with pytest.raises(tenon.InternalError, match="escaped from .*its decomposition: no parts"):
        call("decompose_throws", x)


def leaf_on(device):
    return tenon.tensor([1.0] * 4, device=device, requires_grad=True)


@pytest.mark.parametrize(
    "name, text",
    [("rule_throws", "no gradient today"), ("rule_calls_throwing", "the kernel blew up")],
)
def test_gradients_that_throw(x, name, text):
    leaf = leaf_on(x.device)
    y = call(name, leaf).sum()
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    assert f"gradient of [clumsy::{name}] > " in str(caught.value)
    assert text in str(caught.value)
    assert leaf.grad is None
    other = leaf_on(x.device)
    (other * 2.0).sum().backward()
    assert other.grad.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    "name, error, text",
    [
        (
            "infer_throws",
            tenon.InternalError,
            "escaped from [clumsy::infer_throws] its shape rule: no shape",
        ),
        (
            "infer_endless",
            ValueError,
            "[clumsy::infer_endless] its shape rule > expected 0 to 32 dimensions, got 1000",
        ),
        (
            "infer_negative",
            ValueError,
            "[clumsy::infer_negative] its shape rule > expected sizes of at least 0",
        ),
        (
            "infer_no_dtype",
            tenon.InternalError,
            "[clumsy::infer_no_dtype] its shape rule gave dtype id 99",
        ),
        (
            "view_outside",
            IndexError,
            "[clumsy::view_outside] its shape rule > a view of shape (4,) at offset 4 reaches outside",
        ),
    ],
)
def test_shape_rules_that_throw_or_lie(x, name, error, text):
    with pytest.raises(error) as caught:
        call(name, x)
    assert text in str(caught.value)


def test_can_run_that_lies(x):
    with pytest.raises(tenon.InternalError) as caught:
        call("can_run_lies", x)
    assert (
        f"[clumsy::can_run_lies] the kernel on {x.device} failed with code 12 and no text"
        in str(caught.value)
    )
    with pytest.raises(NotImplementedError) as caught:
        call("never_runs", x)
    assert "[clumsy::never_runs] no kernel for float32" in str(caught.value)
