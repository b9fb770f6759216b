# SPDX-License-Identifier: Apache-2.0
"""FLOPs of a network, counted from the operator calls that it makes."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import tenon
from tenon import Tensor, _core, nn

Arguments = Mapping[str, Any]
Formula = Callable[[Arguments, Sequence[Any]], int]


def _matmul(a: Arguments, outs: Sequence[Any]) -> int:
    return 2 * outs[0].size * a["x"].shape[-1]


def _linear(a: Arguments, outs: Sequence[Any]) -> int:
    bias = outs[0].size if a["bias"] is not None else 0
    return 2 * outs[0].size * a["x"].shape[-1] + bias


def _conv(a: Arguments, outs: Sequence[Any]) -> int:
    # The weight is [out, in / groups, ...]: every result is a product over all but its first axis.
    bias = outs[0].size if a["bias"] is not None else 0
    return 2 * outs[0].size * math.prod(a["weight"].shape[1:]) + bias


def _conv_input_grad(a: Arguments, outs: Sequence[Any]) -> int:
    return 2 * a["grad_out"].size * math.prod(a["weight"].shape[1:])


def _conv_weight_grad(a: Arguments, outs: Sequence[Any]) -> int:
    return 2 * a["grad_out"].size * math.prod(outs[0].shape[1:])


def _attention(a: Arguments, outs: Sequence[Any]) -> int:
    # Two products and a softmax, for which 5 operations are usual; a causal kernel may do half.
    query, key, value = a["query"].shape, a["key"].shape, a["value"].shape
    return math.prod(query[:-1]) * key[-2] * (2 * query[-1] + 2 * value[-1] + 5)


def _lstm(a: Arguments, outs: Sequence[Any]) -> int:
    # `x` holds the products with the inputs; what remains per step is the product with the state.
    return 2 * a["x"].size * a["h"].shape[-1] + 9 * outs[0].size


def _per_input(operations: int) -> Formula:
    return lambda a, outs: operations * a["x"].size


# Operators with products, and those that do several operations for each element. Composite
# operators have none: the calls that they are made of count.
FORMULAS: Final[dict[str, Formula]] = {
    "matmul": _matmul,
    "matmul_integer": _matmul,
    "linear": _linear,
    "conv2d": _conv,
    "conv2d_input_grad": _conv_input_grad,
    "conv2d_weight_grad": _conv_weight_grad,
    "attention": _attention,
    "lstm_recurrence": _lstm,
    "softmax": _per_input(5),
    "log_softmax": _per_input(5),
    "layer_norm": _per_input(8),
    "batch_norm": _per_input(8),
}
# Operators that move numbers and compute none; views are not seen at all.
FREE: Final = frozenset(
    """
    arange cast clone compress concat copy_to_device diagonal_grad embedding eye full gather index
    index_put index_select linspace nonzero pad_constant primitive_copy primitive_gather
    primitive_iota scatter select_grad slice_grad
    """.split()
)
# Operators that do more than some work for each element, and for which no formula stands above.
UNCOUNTED: Final = frozenset(
    """
    adjugate cholesky det eig eigh eigvals eigvalsh fft_c2c fft_c2r fft_r2c geqrf
    householder_product inv lstsq_solve lu_factor matrix_exp pinv qr slogdet solve svd svdvals
    triangular_solve
    """.split()
)


class FlopReport:
    """FLOPs: `total`, `by_operator`, and `by_module`, whose numbers include the modules inside.

    A multiplication and an addition count 2. An operator that has no formula counts one for each
    element of its largest operand or result. `uncounted` has the calls of factorizations and
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
        name = name.removeprefix("tenon::")
        if name in UNCOUNTED:
            report.uncounted[name] += 1
        count = _count(name, arguments, results, has_parts)
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


def _count(name: str, arguments: Arguments, results: Sequence[Any], has_parts: bool) -> int:
    if name in FORMULAS:
        return FORMULAS[name](arguments, results)
    if has_parts or name in FREE or name in UNCOUNTED:
        return 0
    tensors = [value for value in (*arguments.values(), *results) if isinstance(value, Tensor)]
    return max((tensor.size for tensor in tensors), default=0)


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
