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
from .utils.rnn import PackedSequence, reverse_sequences

State = tuple[Tensor, ...]


class RNNCellBase(Module):
    """What layers and cells share: weights [gates * hidden, ...], and the rule of one sequence.

    `weight_ih` takes the input, `weight_hh` the state before; each has a bias of its own.
    """

    gates = 1
    states = 1  # tensors that pass from step to step
    input_size: int
    hidden_size: int
    proj_size = 0

    def _add_weights(self, inputs: int, suffix: str, bias: bool, options: dict[str, Any]) -> None:
        rows = self.gates * self.hidden_size
        shapes = {
            "weight_ih": [rows, inputs],
            "weight_hh": [rows, self.proj_size or self.hidden_size],
        }
        if bias:
            shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
        if self.proj_size:
            shapes["weight_hr"] = [self.proj_size, self.hidden_size]
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(tenon.empty(shape, **options)))

    def _weights(self, suffix: str = "") -> list[Any]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [getattr(self, name + suffix, None) for name in names]

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _scan(self, x: Tensor, state: State, *weights: Any) -> State:
        """The states after every step, each [length, batch, ...]; the first is the result."""
        w_ih, w_hh, b_ih, b_hh, _ = weights
        projected = F.linear(x, w_ih, b_ih)  # for all steps at once
        hidden, out = state[0], []
        for t in range(x.shape[0]):
            hidden = self._step(projected[t], F.linear(hidden, w_hh, b_hh), hidden)
            out.append(hidden)
        return (tenon.stack(out),)

    def _step(self, x: Tensor, hidden: Tensor, before: Tensor) -> Tensor:
        """The next state from what the input and the state before it add."""
        raise NotImplementedError(f"{type(self).__name__} defines _step(x, hidden, before)")

    def _read_state(self, state: Any, lead: list[int], like: Tensor) -> State:
        """The initial states, zeros if none are given; the first has the size of the result."""
        sizes = [self.proj_size or self.hidden_size, self.hidden_size][: self.states]
        shapes = [[*lead, size] for size in sizes]
        if state is None:
            options: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
            return tuple(tenon.zeros(shape, **options) for shape in shapes)
        state = (state,) if isinstance(state, Tensor) else tuple(state)
        if [list(each.shape) for each in state] != shapes:
            got = ", ".join(str(tuple(each.shape)) for each in state)
            if len({tuple(shape) for shape in shapes}) == 1:
                wanted = f"{self.states} tensors of shape {tuple(shapes[0])}"
            else:
                wanted = f"shapes {', '.join(str(tuple(shape)) for shape in shapes)}"
            raise ValueError(f"{type(self).__name__}: expected a state of {wanted}, got {got}")
        return state

    def _given(self, state: State) -> Any:
        return state if self.states > 1 else state[0]

    def _check(self, x: Tensor, ndim: int, layout: str) -> None:
        if x.ndim != ndim or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: expected x of shape {layout} with "
                f"{self.input_size} features, got {tuple(x.shape)}"
            )


class RNNBase(RNNCellBase):
    """`num_layers` layers, each over the results of the one before.

    The state holds one entry for every layer and direction. With `bidirectional`, a second set of
    weights (`..._reverse`) runs from the last step to the first, and the features of both are
    joined. `dropout` acts between layers. Sequences of different length come as a PackedSequence
    (nn.utils.rnn); a single sequence may be [length, features].
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
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if proj_size and (self.states != 2 or not 0 < proj_size < hidden_size):
            raise ValueError(
                f"{type(self).__name__}: expected proj_size 0, or for LSTM a size below "
                f"hidden_size {hidden_size}, got {proj_size}"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.bias, self.proj_size = bias, proj_size
        self.suffixes = [
            [f"_l{layer}", f"_l{layer}_reverse"][: 1 + bidirectional] for layer in range(num_layers)
        ]
        for layer, suffixes in enumerate(self.suffixes):
            inputs = input_size if layer == 0 else (proj_size or hidden_size) * len(suffixes)
            for suffix in suffixes:
                self._add_weights(inputs, suffix, bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        """All results of the last layer, and the state after the last step."""
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state)
        if x.ndim == 2:
            axis = 0 if self.batch_first else 1
            if state is not None:
                state = tuple(s.unsqueeze(1) for s in self._as_tuple(state))
            out, after = self.forward(x.unsqueeze(axis), state)
            after = tuple(s.squeeze(1) for s in self._as_tuple(after))
            return out.squeeze(axis), self._given(after)
        self._check(
            x, 3, "[batch, length, features]" if self.batch_first else "[length, batch, features]"
        )
        if self.batch_first:
            x = x.transpose(0, 1)
        out, after = self._run(x, state, None)
        return out.transpose(0, 1) if self.batch_first else out, self._given(after)

    def _forward_packed(self, packed: PackedSequence, state: Any) -> tuple[PackedSequence, Any]:
        x, lengths = packed.padded()
        self._check(x, 3, "[length, batch, features]")
        order, back = packed.sorted_indices, packed.unsorted_indices
        if state is not None and order is not None:
            state = tuple(tenon.index_select(s, order, 1) for s in self._as_tuple(state))
        out, after = self._run(x, state, lengths)
        if back is not None:
            after = tuple(tenon.index_select(s, back, 1) for s in after)
        return packed.with_padded(out), self._given(after)

    @staticmethod
    def _as_tuple(state: Any) -> State:
        return (state,) if isinstance(state, Tensor) else tuple(state)

    def _run(self, x: Tensor, state: Any, lengths: Tensor | None) -> tuple[Tensor, State]:
        """`x` [length, batch, features]; sequences end after `lengths` [batch] steps."""
        if x.shape[0] == 0:
            raise ValueError(f"{type(self).__name__}: expected at least one step, got none")
        entries = self.num_layers * (1 + self.bidirectional)
        first = self._read_state(state, [entries, x.shape[1]], x)
        last: list[State] = []
        for layer, suffixes in enumerate(self.suffixes):
            if layer and self.dropout and self.training:
                x = F.dropout(x, self.dropout, True)
            directions = []
            for backwards, suffix in enumerate(suffixes):
                start = tuple(each[len(last)] for each in first)
                source = reverse_sequences(x, lengths) if backwards else x
                every = self._scan(source, start, *self._weights(suffix))
                last.append(tuple(_final(each, lengths) for each in every))
                out = every[0]
                directions.append(reverse_sequences(out, lengths) if backwards else out)
            x = directions[0] if len(directions) == 1 else tenon.concat(directions, -1)
        after = tuple(tenon.stack([each[i] for each in last]) for i in range(self.states))
        return x, after

    def flatten_parameters(self) -> None:
        """Does nothing; programs that were written for PyTorch may call it."""

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        for name in ("batch_first", "bidirectional", "proj_size"):
            if getattr(self, name):
                text += f", {name}={getattr(self, name)}"
        return text


def _final(states: Tensor, lengths: Tensor | None) -> Tensor:
    """The state after the last step of each sequence: [length, batch, size] to [batch, size]."""
    if lengths is None:
        return states[-1]
    steps, batch, size = states.shape
    rows = (lengths - 1) * batch + tenon.arange(batch, device=states.device)
    return tenon.index_select(states.reshape([steps * batch, size]), rows, 0)


class _Cell(RNNCellBase):
    """One step: x [batch, features] and the state to the next state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        self._add_weights(input_size, "", bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, x: Tensor, state: Any = None) -> Any:
        if x.ndim == 1:
            if state is not None:
                state = tuple(s.unsqueeze(0) for s in RNNBase._as_tuple(state))
            after = RNNBase._as_tuple(self.forward(x.unsqueeze(0), state))
            return self._given(tuple(s.squeeze(0) for s in after))
        self._check(x, 2, "[batch, features]")
        first = self._read_state(state, [x.shape[0]], x)
        every = self._scan(x.unsqueeze([0]), first, *self._weights())
        return self._given(tuple(each[-1] for each in every))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class _ElmanRule:
    nonlinearity = "tanh"

    def _step(self, x: Tensor, hidden: Tensor, before: Tensor) -> Tensor:
        return tenon.tanh(x + hidden) if self.nonlinearity == "tanh" else tenon.relu(x + hidden)

    def _set_nonlinearity(self, nonlinearity: str) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"{type(self).__name__}: expected nonlinearity 'tanh' or 'relu', got "
                f"{nonlinearity!r}"
            )
        self.nonlinearity = nonlinearity


class _LSTMRule:
    gates = 4
    states = 2
    hidden_size: int

    def _scan(self, x: Tensor, state: State, *weights: Any) -> State:
        w_ih, w_hh, b_ih, b_hh, w_hr = weights
        projected = F.linear(x, w_ih, None if b_ih is None else b_ih + b_hh)
        if w_hr is None:
            out, cells, _ = tenon.lstm_recurrence(projected, w_hh, *state)
            return out, cells
        hidden, cell = state
        results: list[Tensor] = []
        states: list[Tensor] = []
        for t in range(x.shape[0]):
            gates = projected[t] + F.linear(hidden, w_hh)
            i, f, g, o = gates.split([self.hidden_size] * 4, 1)
            cell = tenon.sigmoid(f) * cell + tenon.sigmoid(i) * tenon.tanh(g)
            hidden = F.linear(tenon.sigmoid(o) * tenon.tanh(cell), w_hr)
            results.append(hidden)
            states.append(cell)
        return tenon.stack(results), tenon.stack(states)


class _GRURule:
    gates = 3
    hidden_size: int

    def _scan(self, x: Tensor, state: State, *weights: Any) -> State:
        w_ih, w_hh, b_ih, b_hh, _ = weights
        bias = (
            tenon.zeros([w_hh.shape[0]], dtype=w_hh.dtype, device=w_hh.device)
            if b_hh is None
            else b_hh
        )
        return (tenon.gru_recurrence(F.linear(x, w_ih, b_ih), w_hh, bias, state[0])[0],)


class RNN(_ElmanRule, RNNBase):
    """`h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)` (Elman, 1990)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._set_nonlinearity(nonlinearity)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class RNNCell(_ElmanRule, _Cell):
    """One step of RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._set_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)


class LSTM(_LSTMRule, RNNBase):
    """Long short-term memory; the state is (h, c), the gates are input, forget, cell, output.

    With `proj_size`, h is multiplied by a further weight `weight_hr` [proj_size, hidden_size].
    """


class LSTMCell(_LSTMRule, _Cell):
    """One step of LSTM."""


class GRU(_GRURule, RNNBase):
    """Gated recurrent unit (Cho et al., 2014); the gates are reset, update, new.

    The reset gate acts on the product with the state, after `weight_hh` and `bias_hh`.
    """


class GRUCell(_GRURule, _Cell):
    """One step of GRU."""


class BiRNN(Module):
    """Two cells over a sequence, one in each direction; their results are joined.

    forward takes x [length, batch, features] (or batch first) and a pair of states.
    """

    def __init__(self, cell_fw: _Cell, cell_bw: _Cell, batch_first: bool = False) -> None:
        self.cell_fw, self.cell_bw, self.batch_first = cell_fw, cell_bw, batch_first

    def forward(self, x: Tensor, states: Any = None) -> tuple[Tensor, tuple[Any, Any]]:
        if self.batch_first:
            x = x.transpose(0, 1)
        states = (None, None) if states is None else states
        results, after = [], []
        for cell, state, backwards in zip((self.cell_fw, self.cell_bw), states, (False, True)):
            source = x.flip([0]) if backwards else x
            first = cell._read_state(state, [x.shape[1]], x)
            every = cell._scan(source, first, *cell._weights())
            results.append(every[0].flip([0]) if backwards else every[0])
            after.append(cell._given(tuple(each[-1] for each in every)))
        out = tenon.concat(results, -1)
        return out.transpose(0, 1) if self.batch_first else out, (after[0], after[1])
