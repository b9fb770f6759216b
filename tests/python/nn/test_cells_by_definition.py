# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells and layers beside their formulas in NumPy, and what they refuse."""

import numpy as np
import pytest
import tenon
from tenon import nn

T = tenon.tensor
rng = np.random.default_rng(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gates(cell, x, h):
    """The sums of the input's and of the hidden state's products, by gate."""
    w, u, b, c = (
        0.0 if each is None else each.detach().numpy()
        for each in (
            getattr(cell, name, None) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
    )
    count = len(w) // h.shape[1]
    return np.split(x @ w.T + b, count, 1), np.split(h @ u.T + c, count, 1)


def step(cell, x, h, c=None):
    of_x, of_h = gates(cell, x, h)
    if isinstance(cell, nn.RNNCell):
        total = of_x[0] + of_h[0]
        return np.tanh(total) if cell.nonlinearity == "tanh" else np.maximum(total, 0)
    if isinstance(cell, nn.GRUCell):
        reset, update = (sigmoid(of_x[i] + of_h[i]) for i in (0, 1))
        new = np.tanh(of_x[2] + reset * of_h[2])
        return new + update * (h - new)
    i, f, g, o = (a + b for a, b in zip(of_x, of_h))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda **o: nn.RNNCell(3, 4, **o),
        lambda **o: nn.RNNCell(3, 4, nonlinearity="relu", **o),
        lambda **o: nn.GRUCell(3, 4, **o),
        lambda **o: nn.LSTMCell(3, 4, **o),
    ],
    ids=["tanh", "relu", "gru", "lstm"],
)
def test_a_step_of_a_cell(make, bias):
    tenon.manual_seed(0)
    cell = make(bias=bias, dtype=tenon.float64)
    x, h, c = rng.standard_normal((2, 3)), rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    two = isinstance(cell, nn.LSTMCell)
    want = step(cell, x, h, c) if two else [step(cell, x, h)]
    got = cell(T(x), (T(h), T(c)) if two else T(h))
    for one, other in zip(got if two else [got], want):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-9)
    zero = np.zeros((2, 4))
    want = step(cell, x, zero, zero)[0] if two else step(cell, x, zero)
    first = cell(T(x))
    np.testing.assert_allclose((first[0] if two else first).detach().numpy(), want, rtol=1e-9)
    alone = cell(T(x[0]), (T(h[0]), T(c[0])) if two else T(h[0]))
    for one, other in zip(alone if two else [alone], got if two else [got]):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy()[0], rtol=1e-9)
    assert len(list(cell.parameters())) == (4 if bias else 2)
    assert all(abs(each).max().item() <= 0.5 for each in cell.parameters())
    for wrong in (T(rng.standard_normal((2, 5))), T(rng.standard_normal((2, 2, 3)))):
        with pytest.raises(ValueError) as error:
            cell(wrong)
        assert str(error.value) == (
            f"{type(cell).__name__}: expected x of shape [batch, features] with 3 features, got "
            f"{tuple(wrong.shape)}"
        )
    with pytest.raises(ValueError, match=r"expected a state of .* tensors of shape \(2, 4\), got"):
        cell(T(x), (T(h[:1]), T(c)) if two else T(h[:1]))


def test_refusals_of_layers():
    for make, text in (
        (lambda: nn.RNN(3, 4, nonlinearity="gelu"), "nonlinearity"),
        (lambda: nn.RNNCell(3, 4, nonlinearity="gelu"), "nonlinearity"),
        (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size"),
        (lambda: nn.LSTM(3, 4, proj_size=-1), "proj_size"),
        (lambda: nn.GRU(3, 4, proj_size=2), "proj_size"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    assert nn.LSTM(3, 4, proj_size=3)(tenon.ones(5, 2, 3))[0].shape == (5, 2, 3)
