# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers against plain NumPy, forward and gradient, in PyTorch's layout of weights."""

import numpy as np
import pytest
import tenon
from tenon import nn
from test_nn import check, random


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_step(x, h, weights):
    w_ih, w_hh, b_ih, b_hh = weights
    return (np.tanh(x @ w_ih.T + b_ih + h[0] @ w_hh.T + b_hh),)


def lstm_step(x, state, weights):
    w_ih, w_hh, b_ih, b_hh = weights
    h, c = state
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, state, weights):
    w_ih, w_hh, b_ih, b_hh = weights
    (h,) = state
    xr, xz, xn = np.split(x @ w_ih.T + b_ih, 3, -1)
    hr, hz, hn = np.split(h @ w_hh.T + b_hh, 3, -1)
    z = sigmoid(xz + hz)
    return ((1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h,)


STEPS = {"RNN": (rnn_step, 1), "LSTM": (lstm_step, 2), "GRU": (gru_step, 1)}


def run(step, states, x, hidden, weights, directions):
    """Every result of the last layer and the last states, flattened into one vector."""
    layers = len(weights) // (4 * directions)
    last = []
    for layer in range(layers):
        joined = []
        for d in range(directions):
            at = 4 * (layer * directions + d)
            state = tuple(np.zeros((x.shape[1], hidden)) for _ in range(states))
            out = []
            for part in x[::-1] if d else x:
                state = step(part, state, weights[at : at + 4])
                out.append(state[0])
            joined.append(np.stack(out[::-1] if d else out))
            last.append(state)
        x = np.concatenate(joined, -1)
    after = [np.stack([state[i] for state in last]) for i in range(states)]
    return np.concatenate([part.ravel() for part in (x, *after)])


class Flat(nn.Module):
    """All results of a module in one vector."""

    def __init__(self, module):
        self.module = module

    def forward(self, *args):
        out, state = self.module(*args)
        state = state if isinstance(state, tuple) else (state,)
        return tenon.concat([part.reshape(-1) for part in (out, *state)])


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True}],
)
def test_layers(name, options):
    step, states = STEPS[name]
    directions = 1 + options.get("bidirectional", False)
    check(
        Flat(getattr(nn, name)(3, 4, **options)),
        lambda x, *weights: run(step, states, x, 4, weights, directions),
        random(5, 2, 3),
    )


@pytest.mark.parametrize("name", STEPS)
def test_a_layer_is_its_cell_step_by_step(name):
    layer, cell = getattr(nn, name)(3, 4), getattr(nn, name + "Cell")(3, 4)
    cell.load_state_dict({key[: -len("_l0")]: value for key, value in layer.state_dict().items()})
    for parameter in (*layer.parameters(), *cell.parameters()):
        parameter.requires_grad = False
    x = tenon.tensor(random(5, 2, 3))
    out, after = layer(x)
    state = None
    for t in range(5):
        state = cell(x[t], state)
        h = state[0] if name == "LSTM" else state
        np.testing.assert_allclose(h.numpy(), out[t].numpy(), rtol=1e-5, atol=1e-6)
    again, _ = layer(x[3:], layer(x[:3])[1])
    np.testing.assert_allclose(again.numpy(), out[3:].numpy(), rtol=1e-5, atol=1e-6)
    h = after[0] if name == "LSTM" else after
    np.testing.assert_array_equal(h[0].numpy(), out[-1].numpy())


def test_names_and_shapes_of_weights():
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    shapes = {name: tuple(p.shape) for name, p in lstm.named_parameters()}
    assert shapes["weight_ih_l0"] == (16, 3) and shapes["weight_hh_l0_reverse"] == (16, 4)
    assert shapes["weight_ih_l1"] == (16, 8) and shapes["bias_ih_l1_reverse"] == (16,)
    assert len(shapes) == 16
    assert list(dict(nn.GRU(3, 4, bias=False).named_parameters())) == [
        "weight_ih_l0",
        "weight_hh_l0",
    ]


def test_batch_first():
    lstm = nn.LSTM(3, 4).requires_grad_(False)
    x = tenon.tensor(random(5, 2, 3))
    out, (h, c) = lstm(x)
    lstm.batch_first = True
    other, (other_h, other_c) = lstm(x.transpose(0, 1))
    np.testing.assert_array_equal(other.transpose(0, 1).numpy(), out.numpy())
    np.testing.assert_array_equal(other_c.numpy(), c.numpy())
    assert tuple(other_h.shape) == (1, 2, 4)


def test_without_bias_and_in_float64():
    lstm = nn.LSTM(3, 4, bias=False, dtype=tenon.float64)
    x = random(5, 2, 3).astype(np.float64)
    weights = [p.detach().numpy() for p in lstm.parameters()]
    want = run(lstm_step, 2, x, 4, [*weights, np.zeros(16), np.zeros(16)], 1)
    np.testing.assert_allclose(Flat(lstm)(tenon.tensor(x)).detach().numpy(), want, rtol=1e-12)


def test_refusals():
    lstm = nn.LSTM(3, 4)
    with pytest.raises(ValueError, match=r"LSTM: expected x of shape \[length, batch, features\]"):
        lstm(tenon.zeros(1, 5, 2, 3))
    with pytest.raises(ValueError, match=r"with 3 features, got \(5, 1, 2\)"):
        lstm(tenon.zeros(5, 2))
    with pytest.raises(ValueError, match="expected at least one step"):
        lstm(tenon.zeros(0, 2, 3))
    with pytest.raises(ValueError, match=r"expected a state of 2 tensors of shape \(1, 2, 4\)"):
        lstm(tenon.zeros(5, 2, 3), tenon.zeros(1, 2, 4))


def test_training_reduces_the_loss():
    tenon.manual_seed(0)
    lstm, head = nn.LSTM(2, 8), nn.Linear(8, 1)
    x = tenon.tensor(random(6, 16, 2))
    target = x.sum(0)[:, :1]
    optimizer = tenon.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.02)
    losses = []
    for _ in range(60):
        loss = nn.functional.mse_loss(head(lstm(x)[0][-1]), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
