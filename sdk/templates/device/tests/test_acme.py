# SPDX-License-Identifier: Apache-2.0
"""The plugin as a user sees it. `tenon-conformance` asks much more; see README.md."""

import os

import pytest
import tenon

LIBRARY = os.environ.get(
    "ACME_PLUGIN", os.path.join(os.path.dirname(__file__), "..", "build", "libtenon_acme.so")
)


@pytest.fixture(scope="module", autouse=True)
def plugin():
    tenon.load_plugin(LIBRARY)


def test_values_survive_the_way_there_and_back():
    x = tenon.arange(12, dtype="float32").reshape(3, 4)
    assert x.to("acme").cpu().tolist() == x.tolist()


def test_an_expression_gives_what_the_processor_gives():
    x = tenon.linspace(-2.0, 2.0, 24).reshape(4, 6)

    def expression(x):
        return (x @ x.T).exp().sum(axis=1) + x.max()

    assert tenon.allclose(expression(x.to("acme")).cpu(), expression(x), rtol=1e-5)


def test_gradients_flow_on_the_device():
    x = tenon.tensor([1.0, 2.0, 3.0], device="acme", requires_grad=True)
    (x * x * x).sum().backward()
    assert x.grad.cpu().tolist() == [3.0, 12.0, 27.0]


def test_an_index_that_does_not_exist_is_an_error():
    with pytest.raises(Exception, match="acme has 1 device"):
        tenon.ones((1,), device="acme:7")
