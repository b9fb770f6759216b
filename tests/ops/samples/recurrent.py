# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers."""

import numpy as np
from case import Case, normal


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, weight, h, c):
    out, cells, gates = [], [], []
    for step in x:
        i, f, g, o = np.split(step + h @ weight.T, 4, -1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        out.append(h)
        cells.append(c)
        gates.append(np.concatenate([i, f, g, o], -1))
    return np.stack(out), np.stack(cells), np.stack(gates)


def arguments(steps, batch, features):
    return (
        normal(steps, batch, 4 * features),
        normal(4 * features, features) * 0.3,
        normal(batch, features),
        normal(batch, features),
    )


CASES = [
    Case("lstm_recurrence", arguments(3, 2, 4), reference=lstm, rtol=1e-10),
    Case("lstm_recurrence", arguments(1, 1, 3), reference=lstm, label="one step", rtol=1e-10),
    # Several threads' shares of the batch, and features beyond one panel of the weight.
    Case("lstm_recurrence", arguments(4, 33, 37), reference=lstm, label="wide", rtol=1e-9),
]
