# SPDX-License-Identifier: Apache-2.0
"""paddle.static.nn: branches, loops and functions of sequences. A sequence of Paddle's, a tensor with levels of detail, is a tensor
of layout ragged here. What makes parameters in a program is an AttributeError that names the layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import jit
from tenon._core import Tensor, compose
from tenon.compat._signature import table
from tenon.compat._signed import bound

_SIGNATURES = table("""
case(pred_fn_pairs, default=None, name=None)
cond(pred, true_fn=None, false_fn=None, name=None, return_names=None)
sequence_first_step sequence_last_step(input)
sequence_pool(input, pool_type, is_test=False, pad_value=0.0)
sequence_softmax(input, use_cudnn=False, name=None)
switch_case(branch_index, branch_fns, default=None, name=None)
while_loop(cond, body, loop_vars, is_test=False, name=None)
""")

# What Paddle makes with parameters of its program, and the layer or operator that has them here.
_WITH_PARAMETERS = {
    "batch_norm": "paddle.nn.BatchNorm",
    "bilinear_tensor_product": "paddle.nn.Bilinear",
    "conv2d": "paddle.nn.Conv2D",
    "conv2d_transpose": "paddle.nn.Conv2DTranspose",
    "conv3d": "paddle.nn.Conv3D",
    "conv3d_transpose": "paddle.nn.Conv3DTranspose",
    "deform_conv2d": "tenon.deform_conv2d",
    "embedding": "paddle.nn.Embedding",
    "fc": "paddle.nn.Linear",
    "group_norm": "paddle.nn.GroupNorm",
    "instance_norm": "paddle.nn.InstanceNorm2D",
    "layer_norm": "paddle.nn.LayerNorm",
    "nce": "tenon.nn.NCELoss",
    "prelu": "paddle.nn.PReLU",
    "sequence_conv": "tenon.sequence_conv",
    "sparse_embedding": "tenon.nn.Embedding",
    "spectral_norm": "paddle.nn.SpectralNorm",
}

_POOLS = {
    "average": "mean",
    "sum": "sum",
    "sqrt": "sqrt",
    "max": "max",
    "last": "last",
    "first": "first",
}


def _ragged(name: str, x: Any) -> Tensor:
    if isinstance(x, Tensor) and x.layout == "ragged":
        return x
    raise TypeError(
        f"{name}(): expected a tensor of layout ragged, got {getattr(x, 'layout', type(x).__name__)}; make one with "
        "tenon.sparse.ragged(rows) or tenon.sparse.ragged_from_offsets(offsets, values)"
    )


def sequence_pool(input: Tensor, pool_type: str, pad_value: float = 0.0) -> Tensor:
    """tenon.sequence_pool() of the rows of `input`."""
    if pool_type.lower() not in _POOLS:
        raise ValueError(
            f"sequence_pool(): expected pool_type {', '.join(map(repr, _POOLS))}, got {pool_type!r}"
        )
    x = _ragged("sequence_pool", input)
    return tenon.sequence_pool(
        x.values(), tenon.sparse.lengths(x), _POOLS[pool_type.lower()], pad_value
    )


def sequence_first_step(input: Tensor) -> Tensor:
    """The first element of each row."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Tensor) -> Tensor:
    """The last element of each row."""
    return sequence_pool(input, "last")


def sequence_softmax(input: Tensor) -> Tensor:
    """The softmax over the elements of each row, which are numbers or vectors of one number."""
    x = _ragged("sequence_softmax", input)
    values, offsets = x.values(), x.offsets()
    if values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
        raise ValueError(
            f"sequence_softmax(): expected elements of one number, got shape {tuple(values.shape[1:])}"
        )
    count = offsets.shape[0] - 1
    row = tenon.searchsorted(offsets[1:], tenon.arange(values.shape[0]), right=True)
    largest = tenon.segment_max(values.detach(), row, count)
    powers = tenon.exp(values - tenon.index_select(largest, row, 0))
    sums = tenon.segment_sum(powers, row, count)
    return compose("ragged", list(x.shape), [offsets, powers / tenon.index_select(sums, row, 0)])


def _called(function: Callable[..., Any] | None, name: str, what: str) -> Callable[..., Any]:
    if function is None:
        return lambda: None
    if not callable(function):
        raise TypeError(f"{name}(): expected a function for {what}, got {type(function).__name__}")
    return function


def cond(
    pred: Tensor,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
) -> Any:
    """The result of `true_fn` where `pred` holds, else of `false_fn`; None for a function that is left out."""
    return jit.cond(
        pred, _called(true_fn, "cond", "true_fn"), _called(false_fn, "cond", "false_fn")
    )


def case(
    pred_fn_pairs: Sequence[tuple[Tensor, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
) -> Any:
    """The result of the function beside the first of the conditions that holds; else of `default`, or of the last function."""
    pairs = list(pred_fn_pairs)
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError(f"case(): expected pairs (condition, function), got {pred_fn_pairs!r}")
    functions = [_called(function, "case", "a condition") for _, function in pairs]
    last = functions[-1] if default is None else _called(default, "case", "default")

    def choose(number: int) -> Any:
        if number == len(pairs):
            return last()
        return jit.cond(pairs[number][0], functions[number], lambda: choose(number + 1))

    return choose(0)


def switch_case(
    branch_index: Tensor,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
) -> Any:
    """The result of the function whose number is `branch_index`; else of `default`, or of that with the largest number.
    `branch_fns` are functions by number in a dictionary, pairs (number, function), or functions numbered from 0 on."""
    if isinstance(branch_fns, dict):
        branches = list(branch_fns.items())
    else:
        branches = [
            each if isinstance(each, tuple) else (number, each)
            for number, each in enumerate(branch_fns)
        ]
    numbers = [number for number, _ in branches]
    if not branches or len({*numbers}) != len(numbers):
        raise ValueError(f"switch_case(): expected different numbers of functions, got {numbers}")
    branches.sort(key=lambda branch: branch[0])
    if default is None:
        default = branches[-1][1]
    return case([(branch_index == number, function) for number, function in branches], default)


def while_loop(
    cond: Callable[..., Tensor], body: Callable[..., Any], loop_vars: Sequence[Any]
) -> list[Any]:
    """`loop_vars = body(*loop_vars)` as long as `cond(*loop_vars)` holds, as a list; see tenon.jit.while_loop."""
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError(
            f"while_loop(): expected loop_vars as a list or tuple with at least one element, got {loop_vars!r}"
        )

    def step(*values: Any) -> tuple[Any, ...]:
        result = body(*values)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)

    return list(jit.while_loop(_called(cond, "while_loop", "cond"), step, tuple(loop_vars)))


_FREE: dict[str, Callable[..., Any]] = {
    "case": case,
    "cond": cond,
    "sequence_first_step": sequence_first_step,
    "sequence_last_step": sequence_last_step,
    "sequence_pool": sequence_pool,
    "sequence_softmax": sequence_softmax,
    "switch_case": switch_case,
    "while_loop": while_loop,
}
for _name, _signature in _SIGNATURES.items():
    globals()[_name] = bound(
        f"tenon.compat.paddle.static.nn.{_name}",
        _signature,
        _FREE[_name],
        # A label, whether Paddle keeps the indices of maxima, the library that computes, and names of a program's results.
        ignored=frozenset({"name", "is_test", "use_cudnn", "return_names"}),
    )

__all__ = sorted(_SIGNATURES)


def __getattr__(name: str) -> Any:
    instead = _WITH_PARAMETERS.get(name)
    if instead is not None:
        raise AttributeError(
            f"tenon.compat.paddle does not cover paddle.static.nn.{name}, which makes parameters in a program; use {instead}, which has them"
        )
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.static.nn.{name}; docs/from_paddle.md says what is covered"
    )


def __dir__() -> list[str]:
    return __all__
