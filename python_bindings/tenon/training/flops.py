# SPDX-License-Identifier: Apache-2.0
"""FLOPs of a network, counted from the operator calls that it makes."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor, _core, nn
from tenon.ops._flop_formulas import UNKNOWN, evaluate, formula_of

Arguments = Mapping[str, Any]


class FlopReport:
    """FLOPs: `total`, `by_operator`, and `by_module`, whose numbers include the modules inside.

    A multiplication and an addition count 2. The operator's definition says how many a call has (`flops` in
    opdefs/README.md, `flops=` of `tenon.op`); where it says nothing, one for each element of its largest
    operand or result. `uncounted` has the calls whose definition says "unknown", such as factorizations and
    Fourier transforms, which the total leaves out.
    """

    def __init__(self) -> None:
        self.by_operator: Counter[str] = Counter()
        self.uncounted: Counter[str] = Counter()
        self.by_module: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return sum(self.by_operator.values())

    def __int__(self) -> int:
        return self.total

    def __repr__(self) -> str:
        rows = [f"{count:>16,}  {name}" for name, count in self.by_operator.most_common()]
        rows += [f"{'?':>16}  {name}, {calls} calls" for name, calls in self.uncounted.items()]
        return "\n".join([f"{self.total:>16,}  FLOPs", *rows])


def flops(function: Callable[..., Any], *inputs: Any) -> FlopReport:
    """Run `function(*inputs)`, for example a network, and count.

    A module runs in eval mode and without gradients. A function runs as it is: one that calls
    backward() counts the gradients too. Tuples of ints among the inputs of a module stand for a
    float32 tensor of that shape.
    """
    report = FlopReport()
    path: list[str] = []

    def see(name: str, arguments: Arguments, results: Sequence[Any], has_parts: bool) -> None:
        count = _count(name, arguments, results, has_parts)
        name = name.removeprefix("tenon::")
        if count is None:
            report.uncounted[name] += 1
        if not count:
            return
        report.by_operator[name] += count
        for module in set(path):
            report.by_module[module] += count

    observer = _core._CallObserver(see)
    with contextlib.ExitStack() as stack:
        if isinstance(function, nn.Module):
            inputs = tensors_of(inputs, function)
            stack.enter_context(evaluating(function))
            stack.enter_context(tracking(function, path))
        observer.enter()
        stack.callback(observer.exit)
        function(*inputs)
    return report


def _count(name: str, arguments: Arguments, results: Sequence[Any], has_parts: bool) -> int | None:
    """None: the definition says that it cannot be known."""
    formula = formula_of(name)
    if formula == UNKNOWN:
        return None
    if formula is not None:
        return evaluate(
            formula, {**arguments, **dict(zip(_result_names(name), results, strict=False))}
        )
    if has_parts:
        return 0
    tensors = [value for value in (*arguments.values(), *results) if isinstance(value, Tensor)]
    return max((tensor.numel() for tensor in tensors), default=0)


@functools.cache
def _result_names(name: str) -> tuple[str, ...]:
    return tuple(_core.operator_results(name))


def tensors_of(inputs: Sequence[Any], network: nn.Module) -> tuple:
    """The inputs, with a tensor of zeros on the network's device for each shape."""
    device = next((parameter.device for parameter in network.parameters()), "cpu")
    return tuple(
        tenon.zeros(value, device=device)
        if isinstance(value, tuple) and all(type(size) is int for size in value)
        else value
        for value in inputs
    )


@contextlib.contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Eval mode and no gradients; then every module has its mode again."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with tenon.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextlib.contextmanager
def tracking(network: nn.Module, path: list[str]) -> Iterator[None]:
    """Keep the names of the modules that run in `path`."""
    handles = []
    for name, module in network.named_modules():

        def begin(module: nn.Module, arguments: Any, name: str = name) -> None:
            path.append(name)

        def end(module: nn.Module, arguments: Any, result: Any) -> None:
            path.pop()

        handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
