# SPDX-License-Identifier: Apache-2.0
"""The deterministic mode: kernels whose results may differ from run to run are held back."""

import pytest
import tenon


@pytest.fixture
def mode():
    yield tenon.use_deterministic_algorithms
    tenon.use_deterministic_algorithms(False)


def define(name, body=None):
    operator = tenon.op(f"deterministic_test::{name}(Tensor x) -> Tensor")(body)

    @operator.shape
    def _(x):
        return x.shape

    return operator


def test_another_kernel_serves(mode):
    operator = define("two")
    with (
        tenon.kernel(operator, "cpu")(lambda x: x.numpy() + 1),
        tenon.kernel(operator, "cpu", deterministic=False)(lambda x: x.numpy() + 2),
    ):
        x = tenon.zeros([1])
        assert operator(x).tolist() == [2.0] and not tenon._core.is_deterministic()
        mode(True)
        assert operator(x).tolist() == [1.0] and tenon._core.is_deterministic()
        states = [kernel["state"] for kernel in tenon.explain(operator, "cpu")["kernels"]]
        assert states == [
            "runs",
            "held back: its results may differ from run to run; "
            "tenon.use_deterministic_algorithms(False)",
        ]
        mode(False)
        assert operator(x).tolist() == [2.0]


def test_the_decomposition_serves(mode):
    operator = define("decomposed", lambda x: x * 3.0)
    with tenon.kernel(operator, "cpu", deterministic=False)(lambda x: x.numpy() + 2):
        mode(True)
        assert operator(tenon.ones([1])).tolist() == [3.0]


def test_without_either_the_call_is_an_error(mode):
    operator = define("alone")
    with tenon.kernel(operator, "cpu", deterministic=False)(lambda x: x.numpy()):
        mode(True)
        with pytest.raises(
            NotImplementedError, match="turn the deterministic mode off to use them"
        ):
            operator(tenon.ones([1]))


def test_tenons_own_kernels_are_deterministic(mode):
    mode(True)
    x = tenon.ones([8, 8])
    assert tenon.sum(tenon.softmax(x @ x)).item() == 8.0
