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


def _sigmoid_grad(call: Record, y: Value) -> Value:
    """The derivative, of the result y."""
    grad: Value = call("multiply", y, call("subtract", 1.0, y))
    return grad


def _tanh_grad(call: Record, y: Value) -> Value:
    """The derivative, of the result y."""
    grad: Value = call("subtract", 1.0, call("multiply", y, y))
    return grad


def _lstm_cell(
    call: Record,
    input_gates: Value,
    hidden_gates: Value,
    cx: Value,
    input_bias: Any,
    hidden_bias: Any,
) -> list[Value]:
    """hy, cy and the workspace: the input, forget, cell and output gates after their activations."""
    gates = call(
        "add", _with(call, input_gates, input_bias), _with(call, hidden_gates, hidden_bias)
    )
    i, f, g, o = _split(call, gates, 4)
    i, f, o = (call("sigmoid", gate) for gate in (i, f, o))
    g = call("tanh", g)
    cy = call("add", call("multiply", f, cx), call("multiply", i, g))
    hy = call("multiply", o, call("tanh", cy))
    return [hy, cy, _joined(call, [i, f, g, o])]


def _lstm_cell_backward(
    call: Record,
    grad_hy: Any,
    grad_cy: Any,
    cx: Value,
    cy: Value,
    workspace: Value,
    has_bias: bool,
) -> list[Any]:
    i, f, g, o = _split(call, workspace, 4)
    activated = call("tanh", cy)
    grad_hy = grad_hy if grad_hy is not None else call("zeros_like", cy)
    grad_cell = _times(call, grad_hy, o, _tanh_grad(call, activated))
    if grad_cy is not None:
        grad_cell = call("add", grad_cell, grad_cy)
    grad_gates = _joined(
        call,
        [
            _times(call, grad_cell, g, _sigmoid_grad(call, i)),
            _times(call, grad_cell, cx, _sigmoid_grad(call, f)),
            _times(call, grad_cell, i, _tanh_grad(call, g)),
            _times(call, grad_hy, activated, _sigmoid_grad(call, o)),
        ],
    )
    grad_bias = call("sum", grad_gates, [0]) if has_bias else None
    return [grad_gates, call("multiply", grad_cell, f), grad_bias]


def _gru_cell(
    call: Record,
    input_gates: Value,
    hidden_gates: Value,
    hx: Value,
    input_bias: Any,
    hidden_bias: Any,
) -> list[Value]:
    """hy and the workspace: the reset, update and new gates after their activations, hx, and what hx gives the new gate."""
    of_input = _split(call, _with(call, input_gates, input_bias), 3)
    of_hidden = _split(call, _with(call, hidden_gates, hidden_bias), 3)
    reset = call("sigmoid", call("add", of_input[0], of_hidden[0]))
    update = call("sigmoid", call("add", of_input[1], of_hidden[1]))
    new = call("tanh", call("add", of_input[2], call("multiply", reset, of_hidden[2])))
    hy = call("add", new, call("multiply", update, call("subtract", hx, new)))
    return [hy, _joined(call, [reset, update, new, hx, of_hidden[2]])]


def _gru_cell_backward(call: Record, grad_hy: Value, workspace: Value, has_bias: bool) -> list[Any]:
    reset, update, new, hx, hidden_of_new = _split(call, workspace, 5)
    grad_hx = call("multiply", grad_hy, update)
    grad_update = _times(call, grad_hy, call("subtract", hx, new), _sigmoid_grad(call, update))
    grad_new = _times(call, call("subtract", grad_hy, grad_hx), _tanh_grad(call, new))
    grad_reset = _times(call, grad_new, hidden_of_new, _sigmoid_grad(call, reset))
    grad_input = _joined(call, [grad_reset, grad_update, grad_new])
    grad_hidden = _joined(call, [grad_reset, grad_update, call("multiply", grad_new, reset)])
    biases = [call("sum", grad, [0]) if has_bias else None for grad in (grad_input, grad_hidden)]
    return [grad_input, grad_hidden, grad_hx, *biases]


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "_thnn_fused_gru_cell": _gru_cell,
    "_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
