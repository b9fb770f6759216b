# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and attention: operators of Paddle that a line leaves to a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenon.jit.foreign_calls import Refused

Value = Any
Add = Callable[..., Any]
_GATES: Final = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def rnn(
    call: Add,
    x: Value,
    pre_state: Any,
    weight_list: Any,
    sequence_length: Any,
    dropout_state_in: Any,
    dropout_prob: float,
    is_bidirec: bool,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    mode: str,
    seed: int,
    is_test: bool,
) -> list[Any]:
    """`x` is [steps, batch, features]. Weights come first, two for each layer and direction, then as many biases."""
    if mode not in _GATES:
        raise Refused(f"with mode={mode!r}")
    if sequence_length is not None:
        raise Refused("with sequence_length, which ends each sequence by itself")
    if not is_test and dropout_prob:
        raise Refused("it draws random numbers; save the model after model.eval()")
    directions = 2 if is_bidirec else 1
    parts = num_layers * directions
    if len(weight_list) != 4 * parts:
        raise Refused(f"with {len(weight_list)} weights for {parts} layers")
    last: list[list[Value]] = [[] for _ in pre_state]
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            part = layer * directions + direction
            weights = weight_list[2 * part : 2 * part + 2]
            biases = weight_list[2 * (parts + part) : 2 * (parts + part) + 2]
            states = [call("select", state, 0, part) for state in pre_state]
            given = call("flip", x, [0]) if direction else x
            out, ends = _layer(call, mode, given, weights, biases, states)
            outs.append(call("flip", out, [0]) if direction else out)
            for found, end in zip(last, ends, strict=True):
                found.append(end)
        x = call("concat", outs, 2) if len(outs) > 1 else outs[0]
    return [x, None, [call("stack", each, 0) for each in last]]


def _layer(
    call: Add, mode: str, x: Value, weights: Any, biases: Any, states: Any
) -> tuple[Value, list[Value]]:
    """One direction of one layer, and its states after the last step."""
    steps = x.shape[0]
    if mode == "LSTM":
        given = call("linear", x, weights[0], call("add", *biases))
        out, cells, _ = call("lstm_recurrence", given, weights[1], states[0], states[1])
        return out, [call("select", each, 0, steps - 1) for each in (out, cells)]
    given = call("linear", x, weights[0], biases[0])
    hidden, outs = states[0], []
    for step in range(steps):
        now = call("select", given, 0, step)
        more = call("linear", hidden, weights[1], biases[1])
        hidden = _gru(call, now, more, hidden) if mode == "GRU" else _plain(call, mode, now, more)
        outs.append(hidden)
    return call("stack", outs, 0), [hidden]


def _plain(call: Add, mode: str, now: Value, more: Value) -> Value:
    return call("tanh" if mode == "RNN_TANH" else "relu", call("add", now, more))


def _gru(call: Add, now: Value, more: Value, hidden: Value) -> Value:
    """Gates are reset, update and candidate; the reset multiplies what the state adds, after its weights."""
    size = hidden.shape[1]
    given, added = (
        [call("narrow", each, 1, index * size, size) for index in range(3)] for each in (now, more)
    )
    reset, update = (call("sigmoid", call("add", given[i], added[i])) for i in range(2))
    candidate = call("tanh", call("add", given[2], call("multiply", reset, added[2])))
    kept = call("multiply", update, call("subtract", hidden, candidate))
    return call("add", candidate, kept)


def causal_softmax(call: Add, X: Value) -> Value:
    """Of scores of which a row sees no column behind it."""
    rows, columns = list(X.shape)[-2:]
    seen = call("tril", call("full", [rows, columns], True, dtype="bool"))
    return call("softmax", call("where", seen, X, float("-inf")), -1)


def flash_attention(
    call: Add,
    q: Value,
    k: Value,
    v: Value,
    fixed_seed_offset: Any,
    attn_mask: Any,
    dropout: float,
    causal: bool,
    return_softmax: bool,
    is_test: bool,
    rng_name: str,
) -> list[Value]:
    """Of [batch, length, heads, features]."""
    if return_softmax or (dropout and not is_test):
        raise Refused("with return_softmax or dropout")
    moved = [call("permute", each, [0, 2, 1, 3]) for each in (q, k, v)]
    out = call("scaled_dot_product_attention", *moved, attn_mask, 0.0, causal)
    return [call("permute", out, [0, 2, 1, 3])]
