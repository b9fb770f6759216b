# SPDX-License-Identifier: Apache-2.0
"""PyTorch's recurrent layers as functions of a list of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor

__all__ = ["gru", "lstm", "rnn_relu", "rnn_tanh"]


def _run(
    name: str,
    kind: type,
    x: Tensor,
    state: Any,
    weights: Sequence[Tensor],
    settings: Sequence[Any],
    **more: Any,
) -> tuple[Tensor, Any]:
    has_biases, num_layers, dropout, train, bidirectional, batch_first = settings
    if not isinstance(weights, (list, tuple)):
        raise NotImplementedError(
            f"{name}(): expected a list of weights as third argument, got {type(weights).__name__}; sequences that are packed are "
            "taken by the layers of torch.nn"
        )
    states = state if isinstance(state, (list, tuple)) else (state,)
    hidden, results = weights[1].shape[1], {}
    if kind is tenon.nn.LSTM:
        hidden = weights[1].shape[0] // 4
        if weights[1].shape[1] != hidden:
            results["proj_size"] = weights[1].shape[1]
    layer = kind(
        weights[0].shape[1],
        hidden,
        num_layers,
        bias=has_biases,
        batch_first=batch_first,
        dropout=dropout,
        bidirectional=bidirectional,
        device="meta",
        **results,
        **more,
    ).train(train)
    names = [each for each, _ in layer.named_parameters()]
    if len(names) != len(weights):
        raise ValueError(
            f"{name}(): expected {len(names)} weights for {num_layers} layers, {', '.join(names[:4])}, ..., got {len(weights)}"
        )
    given = states if kind is tenon.nn.LSTM else states[0]
    return tenon.func.functional_call(layer, dict(zip(names, weights)), (x, given))


def gru(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """nn.GRU with the weights `params` in the order of its parameters, from the state `hx` on."""
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return _run("gru", tenon.nn.GRU, input, hx, params, settings)


def lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """nn.LSTM with the weights `params` in the order of its parameters, from the states `hx` on."""
    if isinstance(hx, Tensor) or len(hx) != 2:
        raise ValueError(
            "lstm(): expected two states as second argument; sequences that are packed are taken by torch.nn.LSTM"
        )
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
    out, (h, c) = _run("lstm", tenon.nn.LSTM, input, hx, params, settings)
    return out, h, c


def rnn_tanh(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """nn.RNN with the weights `params` in the order of its parameters, from the state `hx` on."""
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return _run("rnn_tanh", tenon.nn.RNN, input, hx, params, settings)


def rnn_relu(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """rnn_tanh() with relu."""
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return _run("rnn_relu", tenon.nn.RNN, input, hx, params, settings, nonlinearity="relu")
