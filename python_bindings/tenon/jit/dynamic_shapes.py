# SPDX-License-Identifier: Apache-2.0
"""Sizes that a program leaves open, and what a function asks of them while it is recorded.

Python's numbers of sizes (`x.shape[0]`) are followed: comparisons become what a program requires of the sizes of
its inputs, and what cannot be followed is refused where it differs between sizes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FAR = 2**31 - 1


class Dim:
    """A size of inputs that each call of an exported program chooses.

    `min` and `max` both belong to it, and sizes are multiples of `multiple_of`. The function is recorded at both
    ends, at the size of the example and at sizes next to it; `max` should therefore be a size that it can run.
    """

    def __init__(self, name: str, *, min: int = 1, max: int, multiple_of: int = 1) -> None:
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"Dim: expected a name of letters, digits and _, got {name!r}")
        if not 1 <= min < max <= _FAR or multiple_of < 1:
            raise ValueError(
                f"Dim: expected 1 <= min < max <= {_FAR} and a positive multiple_of, got "
                f"min={min}, max={max}, multiple_of={multiple_of}"
            )
        self.name = name
        self.min = min
        self.max = max
        self.multiple_of = multiple_of

    def __repr__(self) -> str:
        multiple = f", multiple_of={self.multiple_of}" if self.multiple_of > 1 else ""
        return f"Dim({self.name!r}, min={self.min}, max={self.max}{multiple})"


class Size(int):
    """A size, whose comparisons are written down."""

    tracer: SizeTracer

    def _made(self, value: int) -> Size:
        size = Size(value)
        size.tracer = self.tracer
        return size

    def _compared(self, other: Any, comparison: str, holds: Any) -> Any:
        if isinstance(other, int):
            self.tracer.require(_digits(self), comparison, _digits(other), holds)
        elif isinstance(other, float):
            self.tracer.leak(self, "a comparison with a float")
        return holds

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, "==", int.__eq__(self, other))

    def __ne__(self, other: Any) -> Any:
        return self._compared(other, "!=", int.__ne__(self, other))

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<", int.__lt__(self, other))

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=", int.__le__(self, other))

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">", int.__gt__(self, other))

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=", int.__ge__(self, other))

    def __bool__(self) -> bool:
        self.tracer.require(_digits(self), "!=", "0", int.__ne__(self, 0))
        return int.__bool__(self)

    # A quotient is an expression of the size where the rest is, and the rest where the quotient is.
    def _divided(self, a: int, b: int) -> tuple[int, int]:
        quotient, rest = int.__divmod__(_plain(a), _plain(b))
        self.tracer.require(f"{_digits(a)} % {_digits(b)}", "==", str(rest), True)
        return quotient, rest

    def __floordiv__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return self._leaked("//", int.__floordiv__(self, other))
        return self._made(self._divided(self, other)[0])

    def __rfloordiv__(self, other: Any) -> Any:
        return self._made(self._divided(other, self)[0])

    def __mod__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return self._leaked("%", int.__mod__(self, other))
        return self._rest(self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._rest(other, self)

    def _rest(self, a: int, b: int) -> Size:
        quotient, rest = int.__divmod__(_plain(a), _plain(b))
        self.tracer.require(f"{_digits(a)} // {_digits(b)}", "==", str(quotient), True)
        return self._made(rest)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def _leaked(self, what: str, result: Any) -> Any:
        if result is not NotImplemented:
            self.tracer.leak(self, what)
        return result


def _plain(number: int) -> int:
    return int.__add__(number, 0)


def _digits(number: int) -> str:
    return int.__repr__(_plain(number))


def _arithmetic(name: str) -> Callable[..., Any]:
    """Sums, differences and products are expressions again."""
    method = getattr(int, name)

    def compute(self: Size, *others: Any) -> Any:
        result = method(self, *others)
        if type(result) is int:
            return self._made(result)
        if result is not NotImplemented:
            self.tracer.leak(self, name)
        return result

    compute.__name__ = name
    return compute


def _leaving(name: str) -> Callable[..., Any]:
    """What gives Python a plain number or text, or another kind of function of the size."""
    method = getattr(int, name)

    def compute(self: Size, *others: Any) -> Any:
        return self._leaked(name.strip("_") + "()", method(_plain(self), *others))

    compute.__name__ = name
    return compute


for _name in ("add", "sub", "mul"):
    setattr(Size, f"__{_name}__", _arithmetic(f"__{_name}__"))
    setattr(Size, f"__r{_name}__", _arithmetic(f"__r{_name}__"))
for _name in ("neg", "pos"):
    setattr(Size, f"__{_name}__", _arithmetic(f"__{_name}__"))
for _name in (
    "abs and ceil float floor format hash int invert lshift or pow rand rdivmod repr rlshift ror round rpow "
    "rrshift rshift rtruediv rxor str truediv trunc xor bit_length bit_count to_bytes"
).split():
    _name = _name if hasattr(int, _name) else f"__{_name}__"
    setattr(Size, _name, _leaving(_name))


class SizeTracer:
    """What one recording of a function asked of sizes."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._is_over = False
        self.requirements: list[str] = []
        self.leaks: list[tuple[int, str, str]] = []

    def __enter__(self) -> SizeTracer:
        _core.trace_sizes(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        _core.trace_sizes(None)

    def _listens(self) -> bool:
        # Loops are also run as they are, which is no part of the program.
        return not self._is_over and threading.get_ident() == self._thread and _core.is_recording()

    # Called by the bindings.
    def size(self, value: int) -> int:
        if not self._listens():
            return value
        size = Size(value)
        size.tracer = self
        return size

    def length(self, value: int) -> None:
        if self._listens():
            self.leak(value, "len()")

    def require(self, left: str, comparison: str, right: str, holds: bool) -> None:
        if not self._listens():
            return
        comparison = comparison if holds else _NEGATED[comparison]
        self.requirements.append(f"{left} {comparison} {right}")

    def leak(self, value: int, what: str) -> None:
        if not self._listens():
            return
        frame = sys._getframe(2)
        while frame.f_back and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        location = f'"{frame.f_code.co_filename}":{frame.f_lineno}'
        self.leaks.append((int.__add__(value, 0), what, location))

    def check(self, first: SizeTracer, here: str, there: str) -> None:
        """Raises where Python was given another plain number at `here` than `first` at `there`."""
        for (value, what, location), (other, _, _) in zip(self.leaks, first.leaks, strict=False):
            if value != other:
                raise RuntimeError(
                    f"export: {what} at {location} gives Python a plain number, which is not followed, of a size: "
                    f"{other} at {there} and {value} at {here}. Use sizes as x.shape gives them, with + - * // %"
                )


def plain(structure: list[Any]) -> list[Any]:
    """Of a function's results, with plain numbers for sizes."""
    if structure[0] == "value":
        return ["value", _plain(structure[1])] if isinstance(structure[1], Size) else structure
    if structure[0] == "dict":
        return ["dict", [[key, plain(item)] for key, item in structure[1]]]
    if structure[0] in ("tuple", "list"):
        return [structure[0], [plain(item) for item in structure[1]]]
    return structure


def text_of(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def axes_of(
    dynamic_shapes: Sequence[Any], inputs: Sequence[Any], tensors: Sequence[Tensor]
) -> list[dict[int, Dim]]:
    """For each of `tensors` (of `inputs`, flattened) the axes that are left open."""
    if len(dynamic_shapes) != len(inputs):
        raise ValueError(
            f"export: expected dynamic_shapes with an entry for each of {len(inputs)} inputs, got "
            f"{len(dynamic_shapes)}"
        )
    axes: list[dict[int, Dim]] = []
    for given, argument in zip(dynamic_shapes, inputs, strict=True):
        inside: list[Tensor] = []
        structures.flatten((argument,), inside)
        entries = given if isinstance(given, list | tuple) else [given] * (len(inside) or 1)
        if len(entries) != len(inside) and given is not None:
            raise ValueError(
                f"export: expected dynamic_shapes with an entry for each of {len(inside)} tensors of an input, "
                f"got {given!r}"
            )
        for entry, tensor in zip(entries, inside, strict=False):
            axes.append(_axes_of_one(entry, tensor))
    return axes


def _axes_of_one(entry: Any, tensor: Tensor) -> dict[int, Dim]:
    axes: dict[int, Dim] = {}
    for axis, dim in (entry or {}).items():
        if not isinstance(dim, Dim) or not -tensor.ndim <= axis < tensor.ndim:
            raise ValueError(
                f"export: expected dynamic_shapes such as {{0: tenon.Dim('batch', max=64)}} with axes of "
                f"{tensor.ndim}, got {axis!r}: {dim!r}"
            )
        axes[axis % tensor.ndim] = dim
    return axes


def dimensions_of(
    axes: Sequence[dict[int, Dim]], tensors: Sequence[Tensor]
) -> list[tuple[str, int, int, int, int]]:
    """(name, min, max, multiple, size to record at), in the order in which they are named.

    That is the size of the example, but not 1: what an axis of one element does, as being dense in any layout,
    is no example of others.
    """
    found: dict[str, tuple[Dim, int]] = {}
    for entry, tensor in zip(axes, tensors, strict=True):
        for axis, dim in entry.items():
            size = tensor.shape[axis]
            known, other = found.setdefault(dim.name, (dim, size))
            if known is not dim:
                raise ValueError(f"export: expected one Dim called {dim.name!r}, got two")
            if other != size:
                raise ValueError(
                    f"export: {dim!r} is {other} and {size} in the example; expected one size"
                )
            if not dim.min <= size <= dim.max or size % dim.multiple_of:
                raise ValueError(f"export: expected an example of {dim!r}, got one of size {size}")
    return [
        (name, dim.min, dim.max, dim.multiple_of, min(2, dim.max) if size == 1 else size)
        for name, (dim, size) in found.items()
    ]


def resized(
    tensors: Sequence[Tensor], axes: Sequence[dict[int, Dim]], sizes: dict[str, int]
) -> list[Tensor]:
    """The example with other sizes: its elements again and again along each axis."""
    made = []
    for tensor, entry in zip(tensors, axes, strict=True):
        wanted = tensor
        for axis, dim in entry.items():
            size, old = sizes[dim.name], wanted.shape[axis]
            if size != old:
                at = _indices(size, tensor) % old
                wanted = tenon.index_select(wanted.detach(), at, axis)
        if wanted is not tensor and tensor.requires_grad:
            wanted.requires_grad = True
        made.append(wanted)
    return made


def _indices(count: int, like: Tensor) -> Tensor:
    return tenon.arange(count, dtype="int64", device=like.device)
