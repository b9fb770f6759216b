# SPDX-License-Identifier: Apache-2.0
"""Backward passes through what was recorded."""

from __future__ import annotations

from tenon import _core

Tensor = _core.Tensor


def as_tuple(value):
    return (value,) if value is None or isinstance(value, Tensor) else tuple(value)


def _seeds(outputs, grads):
    grads = (None,) * len(outputs) if grads is None else as_tuple(grads)
    if len(grads) != len(outputs):
        raise ValueError(
            f"expected {len(outputs)} gradients, one for each output, got {len(grads)}"
        )
    return grads


def backward(outputs, gradients=None, retain_graph=None, create_graph=False):
    """Add the gradients of `outputs` to .grad of the leaves they depend on."""
    outputs = as_tuple(outputs)
    retain = create_graph if retain_graph is None else retain_graph
    _core._backward(outputs, _seeds(outputs, gradients), retain, create_graph)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=False,
    *,
    materialize_grads=False,
):
    """Gradients of `outputs` with respect to `inputs`, as a tuple; .grad is left alone, so that
    `only_inputs` has no other value.

    With `allow_unused`, inputs that the outputs do not depend on give None instead of an error, with
    `materialize_grads` zeros.
    """
    if only_inputs is not True:
        raise NotImplementedError(
            f"grad: expected only_inputs True, got {only_inputs!r}; backward() adds to .grad"
        )
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    found = _core._gradients(
        outputs,
        _seeds(outputs, grad_outputs),
        inputs,
        retain,
        create_graph,
        bool(allow_unused) or materialize_grads,
    )
    if materialize_grads:
        zeros = _core.operator("zeros_like")
        found = [zeros(x) if each is None else each for each, x in zip(found, inputs, strict=True)]
    return tuple(found)
