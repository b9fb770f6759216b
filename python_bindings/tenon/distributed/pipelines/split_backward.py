# SPDX-License-Identifier: Apache-2.0
"""Backward passes in two halves: the gradients of a stage's inputs first, those of its weights later.

While a stage runs forward, every module that has parameters of its own sees stand-ins for them, one for each call. The
first half stops at what modules returned, and keeps the gradients there; the second half is one short pass for each
call, from what it returned to its stand-ins. What reaches a parameter on another way, as a function that is given the
weight of another module, is in the first half: it is not postponed, and not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import Module


class Recorder:
    """Puts stand-ins in front of the parameters of a module and those below it while `calls` is a list."""

    def __init__(self, module: Module) -> None:
        self.calls: list[Call] | None = None
        self._open: list[Call] = []
        for each in module.modules():
            names = [
                name
                for name, value in vars(each).items()
                if isinstance(value, tenon.nn.Parameter) and value.requires_grad
            ]
            if names:
                each.register_forward_pre_hook(self._before)
                each.register_forward_hook(self._behind)

    def run(self, function: Callable[..., Any], *args: Any) -> tuple[Any, list[Call]]:
        """function(*args), and the calls of modules in it."""
        self.calls, self._open = [], []
        try:
            result = function(*args)
            return result, self.calls
        finally:
            for call in reversed(self._open):  # one of them raised
                call.restore()
            self.calls = None

    def _before(self, module: Module, _args: tuple) -> None:
        if self.calls is not None:
            self._open.append(Call(module))

    def _behind(self, _module: Module, _args: tuple, result: Any) -> None:
        if self.calls is None:
            return
        call = self._open.pop()
        call.restore()
        results = result if isinstance(result, (tuple, list)) else [result]
        call.results = [y for y in results if isinstance(y, Tensor) and y.requires_grad]
        if call.results:
            self.calls.append(call)


class Call:
    """One call of a module: its parameters, what stands for them, and what it returned."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._params = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, tenon.nn.Parameter) and value.requires_grad
        }
        self._standins = {
            name: param.detach().requires_grad_() for name, param in self._params.items()
        }
        vars(module).update(self._standins)
        self.results: list[Tensor] = []

    def restore(self) -> None:
        vars(self._module).update(self._params)

    def add_gradients(self, grads: Sequence[Tensor | None]) -> None:
        """Those of the parameters, from `grads` of what the call returned."""
        known = [(y, g) for y, g in zip(self.results, grads, strict=True) if g is not None]
        if not known:
            return
        found = tenon.autograd.grad(
            [y for y, _ in known],
            list(self._standins.values()),
            [g for _, g in known],
            allow_unused=True,
            retain_graph=True,
        )
        for param, grad in zip(self._params.values(), found, strict=True):
            add_gradient(param, grad)


class Halves:
    """The backward pass of one micro-batch of one stage."""

    def __init__(self, calls: list[Call], params: Sequence[Tensor]) -> None:
        self._calls, self._params = calls, list(params)
        self._grads: list[Tensor | None] = []

    def inputs(
        self, outputs: Sequence[Tensor], grads: Sequence[Tensor | None], inputs: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """The first half: gradients of `inputs`."""
        results = [y for call in self._calls for y in call.results]
        found = tenon.autograd.grad(
            list(outputs),
            [*inputs, *results, *self._params],
            list(grads),
            allow_unused=True,
            retain_graph=True,
        )
        first, last = len(inputs), len(inputs) + len(results)
        for param, grad in zip(self._params, found[last:], strict=True):
            add_gradient(param, grad)
        self._grads = list(found[first:last])
        return list(found[:first])

    def weights(self) -> None:
        """The second half: adds to .grad of the parameters."""
        start = 0
        for call in self._calls:
            end = start + len(call.results)
            call.add_gradients(self._grads[start:end])
            start = end
        self._calls, self._grads = [], []


def add_gradient(param: Tensor, grad: Tensor | None) -> None:
    """As a backward pass does."""
    if grad is None:
        return
    with tenon.no_grad():
        param.grad = grad if param.grad is None else param.grad + grad
