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
    if not is_test and dropout_prob:
        raise Refused("it draws random numbers; save the model after model.eval()")
    directions = 2 if is_bidirec else 1
    parts = num_layers * directions
    if len(weight_list) != 4 * parts:
        raise Refused(f"with {len(weight_list)} weights for {parts} layers")
    ends_at = None if sequence_length is None else _Lengths(call, x, sequence_length)
    last: list[list[Value]] = [[] for _ in pre_state]
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            part = layer * directions + direction
            weights = weight_list[2 * part : 2 * part + 2]
            biases = weight_list[2 * (parts + part) : 2 * (parts + part) + 2]
            states = [call("select", state, 0, part) for state in pre_state]
            given = _reversed(call, x, ends_at) if direction else x
            out, all_states = _layer(call, mode, given, weights, biases, states)
            if ends_at is not None:
                out = ends_at.without_rest(out)
            outs.append(_reversed(call, out, ends_at) if direction else out)
            for found, of_steps, first in zip(last, all_states, states, strict=True):
                end = call("select", of_steps, 0, x.shape[0] - 1)
                found.append(end if ends_at is None else ends_at.last(of_steps, first))
        x = call("concat", outs, 2) if len(outs) > 1 else outs[0]
    return [x, None, [call("stack", each, 0) for each in last]]


class _Lengths:
    """How many steps each sequence has: what comes behind is zero, and the last state is that of its own last step."""

    def __init__(self, call: Add, x: Value, lengths: Value) -> None:
        self._call = call
        self._lengths = call("reshape", call("cast", lengths, "int64"), [1, -1, 1])
        steps = call("reshape", call("arange", 0, x.shape[0], 1, dtype="int64"), [-1, 1, 1])
        self._is_inside = call("less", steps, self._lengths)
        back = call("subtract", call("subtract", self._lengths, 1), steps)
        self._reversed = call("where", self._is_inside, back, steps)

    def _along_steps(self, x: Value, index: Value) -> Value:
        wide = self._call("expand", index, [index.shape[0], *list(x.shape)[1:]])
        return self._call("take_along_axis", x, wide, 0)

    def reversed_steps(self, x: Value) -> Value:
        """Each sequence backwards, within its own steps."""
        return self._along_steps(x, self._reversed)

    def without_rest(self, x: Value) -> Value:
        return self._call("where", self._is_inside, x, 0.0)

    def last(self, of_steps: Value, first: Value) -> Value:
        """The state after the last step of each sequence; of one without steps the first."""
        at = self._call("maximum", self._call("subtract", self._lengths, 1), 0)
        found = self._call("squeeze", self._along_steps(of_steps, at), [0])
        has_steps = self._call("greater", self._call("squeeze", self._lengths, [0]), 0)
        return self._call("where", has_steps, found, first)


def _reversed(call: Add, x: Value, ends_at: _Lengths | None) -> Value:
    return call("flip", x, [0]) if ends_at is None else ends_at.reversed_steps(x)


def _layer(
    call: Add, mode: str, x: Value, weights: Any, biases: Any, states: Any
) -> tuple[Value, list[Value]]:
    """One direction of one layer, and its states after every step."""
    steps = x.shape[0]
    if mode == "LSTM":
        given = call("linear", x, weights[0], call("add", *biases))
        out, cells, _ = call("lstm_recurrence", given, weights[1], states[0], states[1])
        return out, [out, cells]
    given = call("linear", x, weights[0], biases[0])
    hidden, outs = states[0], []
    for step in range(steps):
        now = call("select", given, 0, step)
        more = call("linear", hidden, weights[1], biases[1])
        hidden = _gru(call, now, more, hidden) if mode == "GRU" else _plain(call, mode, now, more)
        outs.append(hidden)
    out = call("stack", outs, 0)
    return out, [out]


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
