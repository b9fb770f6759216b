# SPDX-License-Identifier: Apache-2.0
"""Cells of LSTM and GRU, which PyTorch calls as one piece on devices other than its CPU, and their gradients.

Gates lie side by side along the last axis [N, gates H], in PyTorch's order. What a gradient needs is kept in a workspace whose
layout is the business of these functions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenon.torch._device_record import Record, Value


def _split(call: Record, gates: Value, count: int) -> Any:
    return call("split", gates, [gates.shape[1] // count] * count, 1)


def _joined(call: Record, parts: list[Any]) -> Value:
    joined: Value = call("concat", parts, 1)
    return joined


def _with(call: Record, gates: Value, bias: Any) -> Value:
    return gates if bias is None else call("add", gates, bias)


def _times(call: Record, *factors: Any) -> Any:
    result = factors[0]
    for each in factors[1:]:
        result = call("multiply", result, each)
    return result


def _slope_of_sigmoid(call: Record, y: Value) -> Value:
    slope: Value = call("multiply", y, call("subtract", 1.0, y))
    return slope


def _slope_of_tanh(call: Record, y: Value) -> Value:
    slope: Value = call("subtract", 1.0, call("multiply", y, y))
    return slope


def _lstm_cell(
    call: Record,
    input_gates: Value,
    hidden_gates: Value,
    cx: Value,
    input_bias: Any,
    hidden_bias: Any,
) -> list[Value]:
    """hy, cy and the four gates after their functions: of the input, of what is kept, of the cell, of the result."""
    gates = call(
        "add", _with(call, input_gates, input_bias), _with(call, hidden_gates, hidden_bias)
    )
    enter, keep, cell, leave = _split(call, gates, 4)
    enter, keep, leave = (call("sigmoid", each) for each in (enter, keep, leave))
    cell = call("tanh", cell)
    cy = call("add", call("multiply", keep, cx), call("multiply", enter, cell))
    hy = call("multiply", leave, call("tanh", cy))
    return [hy, cy, _joined(call, [enter, keep, cell, leave])]


def _lstm_cell_backward(
    call: Record,
    grad_hy: Any,
    grad_cy: Any,
    cx: Value,
    cy: Value,
    workspace: Value,
    has_bias: bool,
) -> list[Any]:
    enter, keep, cell, leave = _split(call, workspace, 4)
    shown = call("tanh", cy)
    hy = grad_hy if grad_hy is not None else call("zeros_like", cy)
    of_cell = _times(call, hy, leave, _slope_of_tanh(call, shown))
    if grad_cy is not None:
        of_cell = call("add", of_cell, grad_cy)
    grads = _joined(
        call,
        [
            _times(call, of_cell, cell, _slope_of_sigmoid(call, enter)),
            _times(call, of_cell, cx, _slope_of_sigmoid(call, keep)),
            _times(call, of_cell, enter, _slope_of_tanh(call, cell)),
            _times(call, hy, shown, _slope_of_sigmoid(call, leave)),
        ],
    )
    of_bias = call("sum", grads, [0]) if has_bias else None
    return [grads, call("multiply", of_cell, keep), of_bias]


def _gru_cell(
    call: Record,
    input_gates: Value,
    hidden_gates: Value,
    hx: Value,
    input_bias: Any,
    hidden_bias: Any,
) -> list[Value]:
    """hy, and the gates of reset and of update, the new state, hx and what the state before gives the new one."""
    from_input = _split(call, _with(call, input_gates, input_bias), 3)
    from_state = _split(call, _with(call, hidden_gates, hidden_bias), 3)
    reset = call("sigmoid", call("add", from_input[0], from_state[0]))
    update = call("sigmoid", call("add", from_input[1], from_state[1]))
    new = call("tanh", call("add", from_input[2], call("multiply", reset, from_state[2])))
    hy = call("add", new, call("multiply", update, call("subtract", hx, new)))
    return [hy, _joined(call, [reset, update, new, hx, from_state[2]])]


def _gru_cell_backward(call: Record, grad_hy: Value, workspace: Value, has_bias: bool) -> list[Any]:
    reset, update, new, hx, from_state = _split(call, workspace, 5)
    stays = call("multiply", grad_hy, update)
    of_update = _times(call, grad_hy, call("subtract", hx, new), _slope_of_sigmoid(call, update))
    of_new = _times(call, call("subtract", grad_hy, stays), _slope_of_tanh(call, new))
    of_reset = _times(call, of_new, from_state, _slope_of_sigmoid(call, reset))
    of_input = _joined(call, [of_reset, of_update, of_new])
    of_state = _joined(call, [of_reset, of_update, call("multiply", of_new, reset)])
    biases = [call("sum", each, [0]) if has_bias else None for each in (of_input, of_state)]
    return [of_input, of_state, stays, *biases]


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "_thnn_fused_gru_cell": _gru_cell,
    "_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
