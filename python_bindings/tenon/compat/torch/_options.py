# SPDX-License-Identifier: Apache-2.0
"""Parameters that many of PyTorch's functions share: `out`, `inplace`, `size_average` and `reduce`, and the options
of tensors that are made, `layout`, `memory_format`, `pin_memory`, `requires_grad` and `generator`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat._calls import Option

Function = Callable[..., Any]
Chosen = Mapping[str, Any]


class layout(str):
    """How the elements of a tensor are stored: a text, which is what `Tensor.layout` says."""

    _name: str

    def __new__(cls, name: str, ours: str | None = None) -> layout:
        made = super().__new__(cls, name if ours is None else ours)
        made._name = name
        return made

    def __repr__(self) -> str:
        return self._name


class memory_format(layout):
    """In which order the elements lie. Tenon's results are dense; `contiguous_format` and `preserve_format` ask for
    no other order than they have."""


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc, sparse_bsr = (
    layout(f"sparse_{ours}", ours) for ours in ("coo", "csr", "csc", "bsr")
)
jagged = layout("jagged", "ragged")
LAYOUTS = {
    str(each): each for each in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, jagged)
}
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")


def _out(name: str, function: Function, given: dict[str, Any], chosen: Chosen) -> Function:
    """The results are written into `out`, which is what the call gives."""
    out = chosen["out"]
    if out is None:
        return function
    return lambda *args, **kwargs: _written(name, function(*args, **kwargs), out)


def _out_of_factory(
    name: str, function: Function, given: dict[str, Any], chosen: Chosen
) -> Function:
    """As _out(); the dtype is that of `out`, unless one is given."""
    if isinstance(chosen["out"], Tensor):
        given.setdefault("dtype", chosen["out"].dtype)
    return _out(name, function, given, chosen)


def _written(name: str, result: Any, out: Any) -> Any:
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}(): expected out with {len(result)} tensors, got {out!r}")
        for each, place in zip(result, out, strict=True):
            _written(name, each, place)
        return type(result)(*out) if hasattr(result, "_fields") else type(result)(out)
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): expected out to be a tensor, got {type(out).__name__}")
    if tuple(out.shape) != tuple(result.shape):
        raise ValueError(
            f"{name}(): expected out of shape {tuple(result.shape)}, got {tuple(out.shape)}; it is not resized"
        )
    if kind(result.dtype) > kind(out.dtype):
        raise TypeError(
            f"{name}(): expected out of a dtype that holds {result.dtype}, got {out.dtype}"
        )
    if tenon.is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise ValueError(
            f"{name}(): expected tensors without gradients beside out, got one that requires gradients; "
            f"call it under no_grad(), or leave out away"
        )
    out.copy_(result)
    return out


def kind(dtype: Any) -> int:
    """0 for bool, 1 for whole numbers, 2 for floating and 3 for complex ones: PyTorch casts upwards alone."""
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype != tenon.bool)


def _inplace(name: str, function: Function, given: dict[str, Any], chosen: Chosen) -> Function:
    """The result is written into `input`, which is what the call gives."""
    if not chosen["inplace"]:
        return function
    target = given["input"]

    def call(*args: Any, **kwargs: Any) -> Tensor:
        # A gradient that reads the argument reads this copy, which the write leaves as it is.
        kwargs = {key: value.clone() if value is target else value for key, value in kwargs.items()}
        result = function(*args, **kwargs)
        if tuple(result.shape) != tuple(target.shape) or kind(result.dtype) > kind(target.dtype):
            raise ValueError(
                f"{name}(): expected a result of shape {tuple(target.shape)} that {target.dtype} holds, got shape "
                f"{tuple(result.shape)} and {result.dtype}; call the function that is not in place"
            )
        return target.copy_(result)

    return call


def in_place(name: str, function: Function) -> Function:
    """`function`, whose result is written into its first argument."""
    given = inspect.signature(function).parameters.values()
    own = [each for each in given if each.name not in ("out", "inplace")]
    limit = sum(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in own)
    signature = inspect.Signature(own)

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        unknown = [key for key in ("out", "inplace") if key in kwargs]
        if unknown or len(args) >= limit:
            got = f"{unknown[0]!r}" if unknown else f"{len(args) + 1} positional arguments"
            raise TypeError(f"{name}(): expected the parameters {signature}, got {got}")
        write = _inplace(
            name,
            lambda input: function(input, *args, **kwargs),
            {"input": input},
            {"inplace": True},
        )
        return write(input=input)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name[:-1]}(), written into the first argument."
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _older_reduction(
    name: str, function: Function, given: dict[str, Any], chosen: Chosen
) -> Function:
    """`size_average` and `reduce`, PyTorch's older words for `reduction`, which they outweigh."""
    average, reduce = chosen.get("size_average"), chosen.get("reduce")
    for word, value in (("size_average", average), ("reduce", reduce)):
        if value is not None and not isinstance(value, int):
            raise TypeError(f"{name}(): expected True, False or None for {word!r}, got {value!r}")
    if average is None and reduce is None:
        return function
    if reduce is not None and not reduce:
        given["reduction"] = "none"
    else:
        given["reduction"] = "mean" if average is None or average else "sum"
    return function


def _layout(name: str, function: Function, given: dict[str, Any], chosen: Chosen) -> Function:
    if chosen["layout"] not in (None, strided):
        raise NotImplementedError(f"{name}(): expected layout=strided, got {chosen['layout']!r}")
    return function


def _memory_format(
    name: str, function: Function, given: dict[str, Any], chosen: Chosen
) -> Function:
    if chosen["memory_format"] not in (None, contiguous_format, preserve_format):
        raise NotImplementedError(
            f"{name}(): expected memory_format contiguous_format or preserve_format, got "
            f"{chosen['memory_format']!r}"
        )
    return function


def _pin_memory(name: str, function: Function, given: dict[str, Any], chosen: Chosen) -> Function:
    if chosen["pin_memory"]:
        raise NotImplementedError(
            f"{name}(): expected pin_memory=False, got {chosen['pin_memory']!r}; tenon.runtime.memory.pinned() makes "
            f"pinned memory"
        )
    return function


def _promise(name: str, function: Function, given: dict[str, Any], chosen: Chosen) -> Function:
    """What the caller knows of the arguments, and no result depends on."""
    return function


def _requires_grad(
    name: str, function: Function, given: dict[str, Any], chosen: Chosen
) -> Function:
    if not chosen["requires_grad"]:
        return function
    return lambda *args, **kwargs: function(*args, **kwargs).requires_grad_()


def _generator(name: str, function: Function, given: dict[str, Any], chosen: Chosen) -> Function:
    """Random numbers come from the generator."""
    generator = chosen["generator"]
    if generator is None:
        return function
    if not isinstance(generator, tenon.Generator):
        raise TypeError(f"{name}(): expected a Generator, got {type(generator).__name__}")

    def call(*args: Any, **kwargs: Any) -> Any:
        with generator:
            return function(*args, **kwargs)

    return call


OPTIONS: dict[str, Option] = {
    "size_average": _older_reduction,
    "reduce": _older_reduction,
    "layout": _layout,
    "memory_format": _memory_format,
    "pin_memory": _pin_memory,
    "generator": _generator,
    "requires_grad": _requires_grad,
    "assume_unique": _promise,
    "inplace": _inplace,
    "out": _out,
}

FACTORY_OPTIONS: dict[str, Option] = {"out": _out_of_factory}
