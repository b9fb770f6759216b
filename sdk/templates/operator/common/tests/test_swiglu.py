# SPDX-License-Identifier: Apache-2.0
"""The operator as a user sees it, and what every operator of Tenon must get right."""

import math

import tenon
from tenon.testing import check_operator


def test_values():
    x, gate = [-1.0, 0.0, 2.0], [3.0, 1.0, 0.5]
    expected = [a / (1 + math.exp(-a)) * b for a, b in zip(x, gate)]
    out = tenon.ops.acme.swiglu(tenon.tensor(x), tenon.tensor(gate))
    assert tenon.allclose(out, tenon.tensor(expected), rtol=1e-5)


def test_what_every_operator_must_get_right():
    x = tenon.linspace(-2.0, 2.0, 6).reshape(2, 3)
    gate = tenon.linspace(0.5, 1.5, 3)
    check_operator(tenon.ops.acme.swiglu, [(x, gate), (gate, x), (x, tenon.tensor(0.5))])
