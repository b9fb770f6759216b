# SPDX-License-Identifier: Apache-2.0
"""paddle.nn: recurrent cells and layers. Sequences are [batch, steps, features] unless `time_major`; weights are named as
Paddle names them, which is how Tenon does, but for that of `proj_size`, and steps run by Tenon's kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.paddle.nn import initializer
from tenon.compat.paddle.nn._layer import Layer
from tenon.nn import recurrent as _ours

__all__ = "BiRNN GRU GRUCell LSTM LSTMCell RNN RNNCellBase SimpleRNN SimpleRNNCell".split()

_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class _Weights(Layer):
    """Parameters that attributes make; without one they are uniform within 1 / sqrt(hidden_size)."""

    gates: int
    hidden_size: int
    proj_size: int
    _attrs: tuple[Any, ...]

    def _take(self, name: str, attrs: tuple[Any, ...]) -> None:
        for part, attr in zip(_PARTS[:2], attrs, strict=False):
            if attr is False:
                raise NotImplementedError(
                    f"{name}(): expected {part}_attr None or a ParamAttr, got False; only biases can be left out"
                )
        self._attrs = attrs

    def _add_weights(self, inputs: int, suffix: str, bias: bool, options: dict[str, Any]) -> None:
        rows, bound = self.gates * self.hidden_size, 1.0 / math.sqrt(self.hidden_size)
        fill = initializer.Uniform(-bound, bound)
        shapes = {
            "weight_ih": [rows, inputs],
            "weight_hh": [rows, self.proj_size or self.hidden_size],
            "bias_ih": [rows],
            "bias_hh": [rows],
        }
        for (part, shape), attr in zip(shapes.items(), self._attrs, strict=True):
            made = self.create_parameter(
                shape, attr, is_bias=len(shape) == 1, default_initializer=fill
            )
            setattr(self, part + suffix, made)
        if self.proj_size:
            made = self.create_parameter(
                [self.proj_size, self.hidden_size], self._attrs[1], default_initializer=fill
            )
            setattr(self, "weight_hr" + suffix, made)

    def _weights(self, suffix: str = "") -> list[Any]:
        names = (*_PARTS, "weight_hr")
        w_ih, w_hh, b_ih, b_hh, w_hr = (getattr(self, name + suffix, None) for name in names)
        if (b_ih is None) != (b_hh is None):  # of one that is left out there is a zero
            given: Any = b_hh if b_ih is None else b_ih
            zero = tenon.zeros_like(given)
            b_ih, b_hh = (zero if b is None else b for b in (b_ih, b_hh))
        return [w_ih, w_hh, b_ih, b_hh, w_hr]

    def reset_parameters(self) -> None:
        """Does nothing: parameters are made with their values."""


def _transposed(value: Any) -> Tensor:
    return tenon.transpose(tenon.asarray(value), 0, 1)


# -- one step --------------------------------------------------------------------------------------


class RNNCellBase(Layer):
    """What RNN() takes: a layer whose forward(inputs, states) gives the result of a step and the states after it."""

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States [batch, size] filled with `init_value`, in the structure of `shape`, by default the cell's `state_shape`."""
        shape = self.state_shape if shape is None else shape
        batch, like = batch_ref.shape[batch_dim_idx], batch_ref

        def made(sizes: Any) -> Any:
            if isinstance(sizes, (list, tuple)) and sizes and isinstance(sizes[0], (list, tuple)):
                return tuple(made(each) for each in sizes)
            sizes = [sizes] if isinstance(sizes, int) else list(sizes)
            return tenon.full(
                [batch, *sizes], init_value, dtype=dtype or like.dtype, device=like.device
            )

        return made(shape)

    @property
    def state_shape(self) -> Any:
        """The shape of a state without the axis of the batch, or a tuple of such."""
        raise NotImplementedError(f"{type(self).__name__} must define state_shape")


class _Cell(_Weights, RNNCellBase):
    def _prepare(self, input_size: int, hidden_size: int, attrs: tuple[Any, ...]) -> None:
        name = type(self).__name__
        if hidden_size < 1:
            raise ValueError(f"{name}(): expected hidden_size above 0, got {hidden_size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        self._take(name, attrs)
        self._add_weights(input_size, "", True, {})

    def _take_names_of_paddle(self, state: dict[str, Any], prefix: str) -> None:
        if f"{prefix}weight_ho" in state:
            state[f"{prefix}weight_hr"] = _transposed(state.pop(f"{prefix}weight_ho"))

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Any]:
        """The result [batch, hidden_size], and the states after the step."""
        after = _ours._Cell.forward(self, inputs, states)  # type: ignore[arg-type]
        return (after[0] if self.states > 1 else after), after  # type: ignore[attr-defined]


class SimpleRNNCell(_Cell, _ours._ElmanRule, _ours.RNNCellBase):
    """h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh), or relu of it (Elman, 1990)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        Layer.__init__(self)
        self._set_nonlinearity(activation)
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._prepare(input_size, hidden_size, attrs)

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)


class LSTMCell(_Cell, _ours._LSTMRule, _ours.RNNCellBase):
    """One step of long short-term memory; the states are (h, c), the gates are input, forget, cell, output."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        Layer.__init__(self)
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"LSTMCell(): expected proj_size from 0 to below hidden_size {hidden_size}, got {proj_size}"
            )
        self.proj_size = proj_size
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._prepare(input_size, hidden_size, attrs)

    @property
    def state_shape(self) -> Any:
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class GRUCell(_Cell, _ours._GRURule, _ours.RNNCellBase):
    """One step of the gated recurrent unit (Cho et al., 2014); the gates are reset, update, new."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        Layer.__init__(self)
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._prepare(input_size, hidden_size, attrs)

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)


# -- any cell over a sequence ----------------------------------------------------------------------


def _each(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """`function` of the tensors at the same indices of nested tuples."""
    if isinstance(first, Tensor):
        return function(first, *others)
    return tuple(_each(function, *parts) for parts in zip(first, *others, strict=True))


def _lengths(name: str, lengths: Any, batch: int, steps: int) -> Tensor | None:
    if lengths is None:
        return None
    lengths = tenon.tensor(lengths) if not isinstance(lengths, Tensor) else lengths
    lengths = lengths.to(tenon.int64)
    if list(lengths.shape) != [batch]:
        raise ValueError(
            f"{name}: expected sequence_length [batch] of {batch}, got shape {tuple(lengths.shape)}"
        )
    if not bool(tenon.all((lengths >= 0) & (lengths <= steps))):
        raise ValueError(
            f"{name}: expected sequence_length from 0 to the {steps} steps, got {lengths.tolist()}"
        )
    return lengths


class RNN(Layer):
    """A cell over sequences, step by step; with `is_reverse` from the last step to the first."""

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Results of all steps, and the states after the last one of each sequence. What is behind a sequence's end
        changes no state."""
        axis = 0 if self.time_major else 1
        steps, batch = inputs.shape[axis], inputs.shape[1 - axis]
        if steps < 1:
            raise ValueError("RNN: expected at least one step, got none")
        lengths = _lengths("RNN", sequence_length, batch, steps)
        states = initial_states
        if states is None:
            states = self.cell.get_initial_states(inputs, batch_dim_idx=1 - axis)
        results: list[Any] = []
        for t in self._steps(steps):
            out, after = self.cell(tenon.select(inputs, axis, t), states, **kwargs)
            if lengths is not None:
                inside = (lengths > t).unsqueeze(-1)
                after = _each(lambda new, old: tenon.where(inside, new, old), after, states)  # noqa: B023
            states = after
            results.append(out)
        if self.is_reverse:
            results.reverse()
        return _each(lambda *every: tenon.stack(list(every), axis), *results), states

    def _steps(self, count: int) -> Iterator[int]:
        return iter(range(count - 1, -1, -1) if self.is_reverse else range(count))


class BiRNN(Layer):
    """Two cells over sequences, one in each direction; their results are joined."""

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        for one, name in ((cell_fw, "cell_fw"), (cell_bw, "cell_bw")):
            if not callable(getattr(one, "forward", None)):
                raise TypeError(f"BiRNN(): expected a cell as {name}, got {type(one).__name__}")
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Results [..., both sizes], and a pair of the states of both cells."""
        given = (None, None) if initial_states is None else initial_states
        out, after = [], []
        for cell, states, backwards in zip(
            (self.cell_fw, self.cell_bw), given, (False, True), strict=True
        ):
            one = RNN(cell, backwards, self.time_major)
            results, states = one(inputs, states, sequence_length, **kwargs)
            out.append(results)
            after.append(states)
        return _each(lambda x, y: tenon.concat([x, y], -1), *out), tuple(after)


# -- layers over sequences -------------------------------------------------------------------------


class _Stack(_Weights):
    def _take_names_of_paddle(self, state: dict[str, Any], prefix: str) -> None:
        """Paddle's layers hold each weight twice, "weight_ih_l0" and "0.cell.weight_ih", and that of `proj_size` in the cell
        alone, transposed; with it the first names are those of other weights."""
        of_cell = re.compile(re.escape(prefix) + r"(\d+)\.cell(_fw|_bw)?\.(\w+)")
        for name in list(state):
            if not (found := of_cell.fullmatch(name)):
                continue
            layer, side, part = found.groups()
            suffix, value = f"_l{layer}" + "_reverse" * (side == "_bw"), state.pop(name)
            if part == "weight_ho":
                state[f"{prefix}weight_hr{suffix}"] = _transposed(value)
            else:
                state[f"{prefix}{part}{suffix}"] = value

    def _prepare_stack(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        direction: str,
        time_major: bool,
        dropout: float,
        attrs: tuple[Any, ...],
        proj_size: int = 0,
    ) -> None:
        name = type(self).__name__
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(
                f"{name}(): expected direction 'forward', 'bidirect' or 'bidirectional', got {direction!r}"
            )
        self._take(name, attrs)
        self.time_major = time_major
        _ours.RNNBase.__init__(
            self,  # type: ignore[arg-type]
            input_size,
            hidden_size,
            num_layers,
            dropout=dropout,
            bidirectional=direction != "forward",
            proj_size=proj_size,
        )

    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Tensor, Any]:
        """Results of the last layer at all steps, zeros behind a sequence's end, and the states [layers * directions,
        batch, size] after the last step of each sequence."""
        layout = "[steps, batch, features]" if self.time_major else "[batch, steps, features]"
        self._check(inputs, 3, layout)  # type: ignore[attr-defined]
        x = inputs if self.time_major else tenon.transpose(inputs, 0, 1)
        lengths = _lengths(type(self).__name__, sequence_length, x.shape[1], x.shape[0])
        if lengths is not None and not bool(tenon.all(lengths > 0)):
            raise ValueError(
                f"{type(self).__name__}: expected sequence_length from 1 on, got {lengths.tolist()}"
            )
        out, after = self._run(x, initial_states, lengths)  # type: ignore[attr-defined]
        if lengths is not None:
            steps = tenon.arange(x.shape[0], device=x.device)
            out = tenon.where((steps.unsqueeze(1) < lengths).unsqueeze(-1), out, 0.0)
        return (out if self.time_major else tenon.transpose(out, 0, 1)), self._given(after)  # type: ignore[attr-defined]


class SimpleRNN(_Stack, _ours._ElmanRule, _ours.RNNBase):
    """Layers of h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh), or relu of it."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        self._set_nonlinearity(activation)
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._prepare_stack(
            input_size, hidden_size, num_layers, direction, time_major, dropout, attrs
        )


class LSTM(_Stack, _ours._LSTMRule, _ours.RNNBase):
    """Layers of long short-term memory; the states are (h, c)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._prepare_stack(
            input_size, hidden_size, num_layers, direction, time_major, dropout, attrs, proj_size
        )


class GRU(_Stack, _ours._GRURule, _ours.RNNBase):
    """Layers of gated recurrent units."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._prepare_stack(
            input_size, hidden_size, num_layers, direction, time_major, dropout, attrs
        )
