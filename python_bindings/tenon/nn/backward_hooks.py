# SPDX-License-Identifier: Apache-2.0
"""Backward hooks of modules.

The tensors among the arguments, and those of the result, pass through a function that returns them
unchanged. Its backward step sees all gradients of one side together, and calls the hooks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tenon import Function, Tensor
from tenon._tensor.batched import raw_of


class _Boundary(Function):
    """Returns its tensors; gives their gradients to `seen`, which may replace them."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[[tuple], tuple], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.seen = seen
        return tuple(tensor.view(tensor.shape) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return (None, *ctx.seen(grads))


def call_with_backward_hooks(module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """module.forward(...), such that the gradients reach the module's backward hooks."""
    indices = [
        i for i, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad
    ]
    grad_output: list[Any] = [None]

    def at_input(grads: tuple) -> tuple:
        full = tuple(grads[indices.index(i)] if i in indices else None for i in range(len(args)))
        replaced = _run(module, "_backward_hooks", full, grad_output[0])
        return tuple(replaced[i] for i in indices)

    def at_output(grads: tuple) -> tuple:
        for hook in tuple((module._backward_pre_hooks or {}).values()):
            with _unwritten(*grads):
                replaced = hook(module, grads)
            if replaced is not None:
                grads = _as_tuple(replaced)
        grad_output[0] = grads
        if not indices:  # no gradient comes back to the arguments
            _run(module, "_backward_hooks", (None,) * len(args), grads)
        return grads

    if indices:
        passed = _as_tuple(_Boundary.apply(at_input, *(args[i] for i in indices)))
        changed = list(args)
        for i, tensor in zip(indices, passed):
            changed[i] = tensor
        args = tuple(changed)
    result = module.forward(*args, **kwargs)
    tensors = (result,) if isinstance(result, Tensor) else result
    if not isinstance(tensors, (tuple, list)) or not any(
        isinstance(each, Tensor) and each.requires_grad for each in tensors
    ):
        return result
    chosen = [i for i, each in enumerate(tensors) if isinstance(each, Tensor)]
    passed = _as_tuple(_Boundary.apply(at_output, *(tensors[i] for i in chosen)))
    if isinstance(result, Tensor):
        return passed[0]
    items = list(result)
    for i, tensor in zip(chosen, passed):
        items[i] = tensor
    if hasattr(result, "_fields"):
        return type(result)(*items)
    return type(result)(items)


def _run(module: Any, kind: str, grad_input: tuple, grad_output: Any) -> tuple:
    for hook in tuple((getattr(module, kind) or {}).values()):
        with _unwritten(*grad_input, *(grad_output or ())):
            replaced = hook(module, grad_input, grad_output)
        if replaced is not None:
            grad_input = _as_tuple(replaced)
    return grad_input


@contextlib.contextmanager
def _unwritten(*grads: Tensor | None) -> Iterator[None]:
    """An error if a hook in this block writes into a gradient, which other branches may share."""
    tensors = [raw_of(grad) for grad in grads if grad is not None]
    versions = [tensor._version for tensor in tensors]
    yield
    if versions != [tensor._version for tensor in tensors]:
        raise RuntimeError(
            "a backward hook of a module wrote into a gradient, which other branches may share; "
            "return a new one instead"
        )


def _as_tuple(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)
