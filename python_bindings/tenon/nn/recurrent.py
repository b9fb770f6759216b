# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers over sequences [length, batch, features], and their single steps."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

State = tuple[Tensor, ...]


class _Weights(Module):
    """What layers and cells share: weights [gates * hidden, ...], and the rule of one sequence.

    `weight_ih` takes the input, `weight_hh` the state before; each has a bias of its own.
    """

    gates = 1
    states = 1  # tensors that pass from step to step
    input_size: int
    hidden_size: int

    def _add_weights(self, inputs: int, suffix: str, bias: bool, options: dict[str, Any]) -> None:
        rows = self.gates * self.hidden_size
        shapes = {"weight_ih": [rows, inputs], "weight_hh": [rows, self.hidden_size]}
        if bias:
            shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(tenon.empty(shape, **options)))

    def _weights(self, suffix: str = "") -> list[Any]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self, name + suffix, None) for name in names]

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _scan(self, x: Tensor, state: State, *weights: Any) -> tuple[Tensor, State]:
        """The results of every step, and the state after the last."""
        w_ih, w_hh, b_ih, b_hh = weights
        projected = F.linear(x, w_ih, b_ih)  # for all steps at once
        out = []
        for t in range(x.shape[0]):
            state = (self._step(projected[t], F.linear(state[0], w_hh, b_hh), state[0]),)
            out.append(state[0])
        return tenon.stack(out), state

    def _step(self, x: Tensor, hidden: Tensor, before: Tensor) -> Tensor:
        """The next state from what the input and the state before it add."""
        raise NotImplementedError

    def _read_state(self, state: Any, shape: list[int], like: Tensor) -> State:
        if state is None:
            zeros = tenon.zeros(shape, dtype=like.dtype, device=like.device)
            return (zeros,) * self.states
        state = (state,) if isinstance(state, Tensor) else tuple(state)
        if len(state) != self.states or any(list(each.shape) != shape for each in state):
            got = ", ".join(str(tuple(each.shape)) for each in state)
            raise ValueError(
                f"{type(self).__name__}: expected a state of {self.states} tensors of shape "
                f"{tuple(shape)}, got {got}"
            )
        return state

    def _given(self, state: State) -> Any:
        return state if self.states > 1 else state[0]

    def _check(self, x: Tensor, ndim: int, layout: str) -> None:
        if x.ndim != ndim or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: expected x of shape {layout} with "
                f"{self.input_size} features, got {tuple(x.shape)}"
            )


class _Recurrence(_Weights):
    """`num_layers` layers, each over the results of the one before.

    The state holds one entry for every layer and direction. With `bidirectional`, a second set of
    weights (`..._reverse`) runs from the last step to the first, and the features of both are
    joined. `dropout` acts between layers.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.suffixes = [
            [f"_l{layer}", f"_l{layer}_reverse"][: 1 + bidirectional] for layer in range(num_layers)
        ]
        for layer, suffixes in enumerate(self.suffixes):
            inputs = input_size if layer == 0 else hidden_size * len(suffixes)
            for suffix in suffixes:
                self._add_weights(inputs, suffix, bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """All results of the last layer, and the state after the last step."""
        self._check(
            x, 3, "[batch, length, features]" if self.batch_first else "[length, batch, features]"
        )
        if self.batch_first:
            x = x.transpose(0, 1)
        if x.shape[0] == 0:
            raise ValueError(f"{type(self).__name__}: expected at least one step, got none")
        entries = self.num_layers * (1 + self.bidirectional)
        first = self._read_state(state, [entries, x.shape[1], self.hidden_size], x)
        last: list[State] = []
        for layer, suffixes in enumerate(self.suffixes):
            if layer and self.dropout and self.training:
                x = F.dropout(x, self.dropout, True)
            directions = []
            for backwards, suffix in enumerate(suffixes):
                start = tuple(each[len(last)] for each in first)
                source = x.flip([0]) if backwards else x
                out, stop = self._scan(source, start, *self._weights(suffix))
                directions.append(out.flip([0]) if backwards else out)
                last.append(stop)
            x = directions[0] if len(directions) == 1 else tenon.concat(directions, -1)
        after = tuple(tenon.stack([each[i] for each in last]) for i in range(self.states))
        return x.transpose(0, 1) if self.batch_first else x, self._given(after)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        for name in ("batch_first", "bidirectional"):
            if getattr(self, name):
                text += f", {name}=True"
        return text


class _Cell(_Weights):
    """One step: x [batch, features] and the state to the next state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        self._add_weights(input_size, "", bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, x: Tensor, state: Any = None) -> Any:
        self._check(x, 2, "[batch, features]")
        first = self._read_state(state, [x.shape[0], self.hidden_size], x)
        return self._given(self._scan(x.unsqueeze([0]), first, *self._weights())[1])

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class _TanhRule:
    def _step(self, x: Tensor, hidden: Tensor, before: Tensor) -> Tensor:
        return tenon.tanh(x + hidden)


class _LSTMRule:
    gates = 4
    states = 2

    def _scan(self, x: Tensor, state: State, *weights: Any) -> tuple[Tensor, State]:
        w_ih, w_hh, b_ih, b_hh = weights
        projected = F.linear(x, w_ih, None if b_ih is None else b_ih + b_hh)
        out, cells, _ = tenon.lstm_recurrence(projected, w_hh, *state)
        return out, (out[-1], cells[-1])


class _GRURule:
    gates = 3
    hidden_size: int

    def _step(self, x: Tensor, hidden: Tensor, before: Tensor) -> Tensor:
        size = self.hidden_size
        open_gates = tenon.sigmoid(x[:, : 2 * size] + hidden[:, : 2 * size])
        reset, update = open_gates[:, :size], open_gates[:, size:]
        new = tenon.tanh(x[:, 2 * size :] + reset * hidden[:, 2 * size :])
        return tenon.lerp(new, before, update)


class RNN(_TanhRule, _Recurrence):
    """`h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)` (Elman, 1990)."""


class RNNCell(_TanhRule, _Cell):
    """One step of RNN."""


class LSTM(_LSTMRule, _Recurrence):
    """Long short-term memory; the state is (h, c), the gates are input, forget, cell, output."""


class LSTMCell(_LSTMRule, _Cell):
    """One step of LSTM."""


class GRU(_GRURule, _Recurrence):
    """Gated recurrent unit (Cho et al., 2014); the gates are reset, update, new.

    The reset gate acts on the product with the state, after `weight_hh` and `bias_hh`.
    """


class GRUCell(_GRURule, _Cell):
    """One step of GRU."""
