# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_recurrence(x, weight, h, c):
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
