# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions that make tensors of sizes, of data, and of random numbers."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.arguments import one_sequence as _one_sequence
from tenon.compat.torch._options import kind

__all__ = """arange as_tensor asarray bernoulli binomial can_cast empty full full_like normal ones poisson rand rand_like
randint randn randn_like result_type tensor zeros""".split()


def _shape(name: str, extents: tuple[Any, ...], size: Any) -> Any:
    if size is not None:
        if extents:
            raise TypeError(f"{name}(): expected one size, got {extents} and size={size!r}")
        return (size,) if isinstance(size, builtins.int) else tuple(size)
    return _one_sequence(extents)


def _filled(name: str) -> Callable[..., Tensor]:
    def function(
        *extents: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _operator(name)(
            _shape(name, extents, size), dtype=dtype, device=device, requires_grad=requires_grad
        )

    function.__doc__ = f"tenon.{name}, of a shape or of extents."
    return function


zeros, ones, empty = _filled("zeros"), _filled("ones"), _filled("empty")


def _drawn(name: str, operator: str) -> Callable[..., Tensor]:
    def function(
        *extents: Any,
        size: Any = None,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
    ) -> Tensor:
        shape = _shape(name, extents, size)
        return _with(generator, lambda: _operator(operator)(shape, dtype=dtype, device=device))

    function.__doc__ = f"tenon.{name}, of a shape or of extents."
    return function


rand, randn = _drawn("rand", "uniform"), _drawn("randn", "normal")


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value, which may be a 0-d tensor."""
    if isinstance(fill_value, Tensor) and fill_value.ndim == 0:
        fill_value = fill_value.item()
    return _operator("full")(
        size, fill_value, dtype=dtype, device=device, requires_grad=requires_grad
    )


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value, in the shape of `input`."""
    return _operator("full_like")(input, fill_value, dtype=dtype, device=device)


def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` to before `end`; arange(end) starts from 0."""
    if start is None:
        if end is None:
            raise TypeError("arange(): expected an end, got none")
        start = 0
    return _operator("arange")(
        start, end, step, dtype=dtype, device=device, requires_grad=requires_grad
    )


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`data` as a tensor of its own memory; any sequence of numbers counts as a list."""
    plain = (Tensor, list, tuple, str, bytes, memoryview)
    if isinstance(data, Sequence) and not isinstance(data, plain):
        data = list(data)
    return tenon.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, sharing memory where that is possible."""
    return _core.asarray(data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`obj` as a tensor, sharing memory where that is possible, or always a copy with `copy`."""
    result = _core.asarray(obj, dtype=dtype, device=device)
    if copy:
        result = result.clone()
    elif copy is not None and isinstance(obj, Tensor):
        if (dtype is not None and obj.dtype != result.dtype) or obj.device != result.device:
            raise ValueError(
                f"asarray(): expected copy=True or None for another dtype or device than {obj.dtype} on "
                f"{obj.device}, got False"
            )
    return result.requires_grad_() if requires_grad else result


def can_cast(from_: Any, to: Any) -> bool:
    """Whether PyTorch casts by itself: from bool to whole numbers, floating and complex ones, and never back."""
    return kind(_core.dtype(from_)) <= kind(_core.dtype(to))


def _twice(name: str, parameter: str) -> Any:
    raise TypeError(f"{name}(): expected one value for {parameter!r}, got two")


def _with(generator: Any, draw: Callable[[], Tensor]) -> Tensor:
    if generator is None:
        return draw()
    with generator:
        return draw()


def randint(
    *limits: Any,
    low: Any = 0,
    high: Any = None,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """randint(high, size) or randint(low, high, size): whole numbers from `low` to below `high`."""
    given = list(limits)
    if given and not isinstance(given[-1], builtins.int):
        size = given.pop() if size is None else _twice("randint", "size")
    if len(given) == 2:
        low, high = given
    elif given:
        high = given[0] if high is None else _twice("randint", "high")
    if high is None or size is None or len(given) > 2:
        raise TypeError("randint(): expected high and size, with low before them or without it")
    return _with(generator, lambda: whole_numbers(low, high, size, dtype, device))


def whole_numbers(low: Any, high: Any, size: Any, dtype: Any, device: Any) -> Tensor:
    """randint(), of which floating dtypes hold the numbers, too."""
    size = [size] if isinstance(size, builtins.int) else list(size)
    if dtype is None or kind(_core.dtype(dtype)) < 2:
        return _operator("randint")(low, high, size, dtype=dtype, device=device)
    return _operator("randint")(low, high, size, device=device).to(dtype=dtype)


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """1 with the probability of each element, or with `p`, else 0."""
    if p is not None:
        input = (
            _operator("full_like")(input, p) if not isinstance(p, Tensor) else p.expand(input.shape)
        )
    return _with(generator, lambda: _operator("bernoulli")(input))


def result_type(tensor: Any, other: Any) -> Any:
    """The dtype that an operation of both gives."""
    return tenon.result_type(tensor, other)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Normal numbers: of tensors of means and deviations, or of a size."""
    if size is None:
        if dtype is not None or device is not None:
            raise TypeError("normal(): expected dtype and device beside a size alone, got no size")
        likes = [each for each in (mean, std) if isinstance(each, Tensor)]
        shape = tenon.broadcast_shapes(*(tuple(x.shape) for x in likes))
        like = likes[0]
        options = {"dtype": like.dtype, "device": like.device}
    else:
        shape, options = size, {"dtype": dtype, "device": device}
    return _with(generator, lambda: mean + std * _operator("normal")(shape, **options))


def rand_like(input: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers, in the shape of `input`."""
    return _operator("uniform_like")(input, dtype=dtype, device=device)


def randn_like(input: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Normal numbers, in the shape of `input`."""
    return _operator("normal_like")(input, dtype=dtype, device=device)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Counts of these rates."""
    return _with(generator, lambda: tenon.random.poisson(input))


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Successes of `count` trials of probability `prob`."""
    return _with(generator, lambda: tenon.random.binomial(count, prob))
