# SPDX-License-Identifier: Apache-2.0
"""Programs that were written for PyTorch and import tenon.compat.torch as `torch`.

Calls that only PyTorch has are answered as there. Calls with another meaning there are told, once for each place. The bindings
call these functions (python_bindings/src/ports.cpp).
"""

from __future__ import annotations

import dis
import functools
import sys
import warnings
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.array_api import result_type
from tenon._tensor.methods import written


def is_port(names: dict[str, Any]) -> bool:
    """Whether a module of these names is such a program."""
    namespace = sys.modules.get("tenon.compat.torch")
    return namespace is not None and names.get("torch") is namespace


# -- x.size(0) ---------------------------------------------------------------------------------------


class _Called:
    """Of a number of elements: it can be called as PyTorch's `size()`."""

    __slots__ = ()
    _shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis."""
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int.__add__(self, 0),)  # type: ignore[operator]


class _CalledSize(_Called, int):
    """The number of elements."""


@functools.cache
def _called(kind: Any) -> Any:
    # Sizes that an export follows are of a class of their own.
    return type("_CalledSize", (_Called, kind), {})


def size(elements: int, tensor: Tensor) -> int:
    """What `tensor.size` is in such a program."""
    if type(elements) is int:
        plain = _CalledSize(elements)
        plain._shape = tensor.shape
        return plain
    # The sum is a plain number: int() of a size that is followed would be an escape of it.
    kind: Any = type(elements)
    result = _called(kind)(int.__add__(elements, 0))
    vars(result).update(getattr(elements, "__dict__", {}), _shape=tensor.shape)
    return result


# -- methods with two meanings -------------------------------------------------------------------------

_DIVIDES = (
    "divides by n, PyTorch's by n - 1; write correction=1 for PyTorch's, correction=0 for Tenon's"
)
_VALUES = "gives the values alone, PyTorch's (values, indices)"
_MEANT = "write axis= to say that the values are meant, or"
_MEANINGS: Final = {
    "std": _DIVIDES,
    "var": _DIVIDES,
    "max": f"{_VALUES}; {_MEANT} torch.max(x, dim)",
    "min": f"{_VALUES}; {_MEANT} torch.min(x, dim)",
    "sort": f"{_VALUES}; {_MEANT} torch.sort(x, dim)",
    "median": "gives the mean of the middle two, PyTorch's the lower one, and its index along an axis; write axis= to say that "
    "this is meant, or torch.median(x)",
    "repeat": "repeats each element, PyTorch's the whole; write x.tile([...]) for PyTorch's, x.repeat(n, axis=...) for Tenon's",
}
_WITHOUT_AXIS: Final = ("max", "min")  # mean the same where no axis is given
_MOST: Final = 1 << 14
_told: set[tuple[str, int, str]] = set()


def tell(name: str, arguments: tuple[Any, ...], keywords: tuple[str, ...] | None) -> None:
    """Called before a method of _MEANINGS by the module of such a program; `arguments` has the tensor first."""
    given = keywords or ()
    if "axis" in given or "correction" in given:
        return
    if name in ("std", "var"):
        if "unbiased" in given or "ddof" in given or len(arguments) > 2:
            return
        if len(arguments) == 2 and isinstance(arguments[1], bool):
            return  # is `unbiased`
    if name in _WITHOUT_AXIS and len(arguments) == 1 and "dim" not in given:
        return
    frame = sys._getframe(1)
    place = frame.f_code.co_filename, frame.f_lineno, name
    if place in _told or len(_told) >= _MOST:
        return
    _told.add(place)
    warnings.warn(f"x.{name}(): Tenon's {name} {_MEANINGS[name]}", stacklevel=2)


_VALUES_ALONE: Final = {"max": "amax", "min": "amin"}


def tell_of_dim(name: str) -> None:
    """Called before max or min with PyTorch's keyword `dim`, which gives (values, indices) there; by the names amax and amin it
    does not."""
    frame = sys._getframe(1)
    code, offset = frame.f_code, frame.f_lasti
    place = code.co_filename, offset, f"{code.co_firstlineno} {name} dim"
    if place in _told or len(_told) >= _MOST:
        return
    _told.add(place)
    if is_port(frame.f_globals):
        return  # told by the method itself
    if _called_by(code, offset) not in _VALUES_ALONE.values():
        warnings.warn(
            f"{name}(dim=): dim= is PyTorch's keyword, whose {name}() gives (values, indices), and Tenon's the values alone; write "
            f"axis= or {_VALUES_ALONE[name]}() to say that the values are meant, and arg{name}() for the indices",
            stacklevel=2,
        )


def _called_by(code: CodeType, offset: int) -> str | None:
    """The one of these names that the call at `offset` was written with."""
    names = (*_VALUES_ALONE, *_VALUES_ALONE.values())
    before = (each for each in dis.get_instructions(code) if each.offset <= offset)
    found = [each.argval for each in before if each.opname.startswith("LOAD_")]
    return next((name for name in reversed(found) if name in names), None)


# -- calls that operators refuse -------------------------------------------------------------------------

_SPREADS: Final = ("std", "var", "std_mean", "var_mean")


def call(name: str, *arguments: Any, **keywords: Any) -> Any:
    """The operator called `name`, as PyTorch has it, where only PyTorch has such a call; else NotImplemented."""
    own = name.removesuffix("_")
    if own in ("add", "subtract") and "alpha" in keywords and len(arguments) == 2:
        alpha = keywords.pop("alpha")
        return _operator(name)(arguments[0], arguments[1] * alpha, **keywords)
    if own == "divide" and "rounding_mode" in keywords and len(arguments) == 2:
        return _divided(name, *arguments, **keywords)
    if name == "topk" and ("sorted" in keywords or len(arguments) == 5):
        return _largest(*arguments, **keywords)
    if name in _SPREADS and len(arguments) == 2 and isinstance(arguments[1], bool) and not keywords:
        return _operator(name)(arguments[0], correction=int(arguments[1]))  # x.std(unbiased)
    if name in ("full", "full_like"):
        return _filled(name, *arguments, **keywords)
    if name == "repeat" and arguments and isinstance(arguments[0], Tensor) and not keywords:
        _refuse_repeat(arguments[1:])
    return NotImplemented


def _divided(name: str, x: Any, y: Any, *, rounding_mode: Any, **keywords: Any) -> Any:
    if rounding_mode is None:
        return _operator(name)(x, y, **keywords)
    if rounding_mode == "floor":
        return _operator(f"floor_{name}")(x, y, **keywords)
    if rounding_mode != "trunc":
        raise ValueError(
            f"{name}(): expected rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}"
        )
    if keywords:
        return NotImplemented
    in_place = name.endswith("_")
    # A gradient that reads the argument reads this copy, which the write leaves as it is.
    quotient = _operator("divide")(x.clone() if in_place else x, y)
    result = _operator("cast")(_operator("trunc")(quotient), result_type(x, y))
    return written(name, x, result) if in_place else result


def _largest(*arguments: Any, sorted: bool = True, **keywords: Any) -> Any:
    # In order they are always, which is one of the orders that sorted=False leaves open.
    return _operator("topk")(*arguments[:4], **keywords)


def _refuse_repeat(given: tuple[Any, ...]) -> None:
    times = given[0] if len(given) == 1 else given
    if isinstance(times, list | tuple):
        raise TypeError(
            f"repeat(): expected one number, and an axis: Tenon's repeat, as NumPy's, repeats each element; PyTorch's "
            f"x.repeat({', '.join(map(repr, times))}), which repeats the whole, is x.tile({list(times)})"
        ) from None


def _filled(name: str, *given: Any, **keywords: Any) -> Any:
    first = given[0] if given else keywords.pop("shape", keywords.pop("size", None))
    given = given[1:]
    value = given[0] if given else keywords.get("value", keywords.get("fill_value"))
    options = {k: each for k, each in keywords.items() if k not in ("value", "fill_value")}
    if not isinstance(value, Tensor) or len(given) > 1 or options.keys() - {"dtype", "device"}:
        return NotImplemented
    dtype, device = options.get("dtype"), options.get("device")
    if name == "full":
        return filled(first, value, dtype or value.dtype, device)
    return filled(first.shape, value, dtype or first.dtype, device or first.device)


def filled(shape: int | Sequence[int], value: Tensor, dtype: Any, device: Any) -> Tensor:
    """A tensor of this shape whose elements are `value`, a tensor without axes. It is not read here, so that its device is
    not waited for and a recording follows it."""
    if value.ndim:
        raise ValueError(
            f"full(): expected a number or a tensor without axes as fill_value, got one of shape {tuple(value.shape)}"
        )
    one = _operator("cast")(value, dtype)
    one = one if device is None else one.to(device)
    sizes = [shape] if isinstance(shape, int) else list(shape)
    return _operator("clone")(_operator("expand")(one, sizes))


def watch(namespace: Any) -> None:
    """From here on, modules that have `namespace` as `torch` are such programs."""
    _core._watch_ports(namespace, tell, size)
