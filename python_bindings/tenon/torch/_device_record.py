# SPDX-License-Identifier: Apache-2.0
"""A call of PyTorch on the device, told in operators: they run at once, and are written down as the tape that runs next time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import tenon
from tenon.jit.foreign_calls import Refused
from tenon.torch._convert import dtype_name

Reference = tuple[Any, ...]  # ("a", argument), ("e", argument, element), ("s", step, result)
_DTYPE: Final = type(tenon.float32)
# What two numbers become without an operator.
_OF_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}


class Value:
    """A tensor on the device, with what lines ask of one."""

    __slots__ = ("_record", "reference", "tensor")

    def __init__(self, record: Record, tensor: Any, reference: Reference | None) -> None:
        self._record, self.tensor, self.reference = record, tensor, reference

    @property
    def dtype(self) -> Any:
        return getattr(tenon, dtype_name(self.tensor.dtype))

    @property
    def ndim(self) -> int:
        return int(self.tensor.dim())

    @property
    def shape(self) -> list[int]:
        self._record.by_shape = True
        return list(self.tensor.shape)

    def numel(self) -> int:
        self._record.by_shape = True
        return int(self.tensor.numel())


class Integer(int):
    """A number that the tape reads from PyTorch's call each time."""

    reference: Reference


class Real(float):
    """As Integer."""

    reference: Reference


class Record:
    """One call: `record(operator, ...)` runs an operator and writes it down."""

    def __init__(self, torch: Any, native: Any, index: int, target_dtype: Any) -> None:
        self.steps: list[tuple[str, list[Any]]] = []
        self.writes: list[tuple[Value, int]] = []  # beside the results: what arguments get
        self.by_shape = self.by_value = False
        self.has_numbers = False
        self.free = 0  # a bit for each argument that is a number, which the tape reads and does not depend on
        self.is_open = False  # what was done depends on more than the tape would be kept for
        self.index = index
        self.target_dtype = target_dtype  # of the tensor that gets the result; None: there is none
        self._torch, self._native = torch, native

    def wrapped(self, value: Any, reference: Reference) -> Any:
        """An argument of PyTorch's call, as lines take it."""
        torch = self._torch
        if isinstance(value, torch.Tensor):
            return self._wrapped_tensor(value, reference)
        if isinstance(value, (list, tuple)):
            return [
                self.wrapped(each, ("e", reference[1], index)) for index, each in enumerate(value)
            ]
        if isinstance(value, torch.dtype):
            return getattr(tenon, dtype_name(value))
        if isinstance(value, (torch.device, torch.memory_format)):
            return None
        if isinstance(value, torch.layout):
            if value != torch.strided:
                raise Refused(
                    f"it asks for the layout {value}; the device has only strided tensors"
                )
            return None
        return value

    def _wrapped_tensor(self, tensor: Any, reference: Reference) -> Any:
        if tensor.device.type != "cpu":
            return Value(self, tensor, reference)
        if tensor.dim():  # indices and masks may lie on the CPU
            self.is_open = True
            return Value(self, tensor.to(self._device()), None)
        return self.number(tensor.item(), reference)

    def number(self, number: Any, reference: Reference) -> Any:
        """A number for a tensor, as PyTorch gives those of Python."""
        self.has_numbers = True
        if isinstance(number, bool) or isinstance(number, complex):
            self.by_value = True
            return number
        made: Any = Integer(number) if isinstance(number, int) else Real(number)
        made.reference = reference
        return made

    def free_number(self, number: float, index: int) -> Real:
        """A number that lines hand on and do not look at."""
        made = Real(number)
        made.reference = ("a", index)
        self.free |= 1 << index
        return made

    def _is_free(self, number: Any) -> bool:
        return isinstance(number, Real) and bool(self.free >> number.reference[1] & 1)

    def _device(self) -> Any:
        return self._torch.device(self._torch._C._get_privateuse1_backend_name(), self.index)

    def __call__(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        if name in _OF_NUMBERS and all(
            isinstance(each, (int, float, complex)) for each in arguments
        ):
            self.by_value = True
            return _OF_NUMBERS[name](*arguments)
        names, count, is_list, is_data_dependent = _signature(self._native, name)
        given = list(arguments)
        for keyword, value in keywords.items():
            place = names.index(keyword)
            given += [...] * (place + 1 - len(given))
            given[place] = value
        made = self._native.call(name, [self._run(each) for each in given])
        self.is_open |= is_data_dependent
        self.steps.append((name, [self._written(each) for each in given]))
        step = len(self.steps) - 1
        values = [Value(self, each, ("s", step, index)) for index, each in enumerate(made)]
        return values if is_list or count > 1 else values[0]

    def _run(self, value: Any) -> Any:
        """An argument as it is now."""
        if isinstance(value, Value):
            return value.tensor
        if isinstance(value, Integer):
            return int(value)
        if isinstance(value, Real):
            return float(value)
        if isinstance(value, (list, tuple)):
            return [self._run(each) for each in value]
        if isinstance(value, _DTYPE):
            return str(value).removeprefix("tenon.")
        return value

    def _written(self, value: Any) -> Any:
        """An argument as the tape says it."""
        if isinstance(value, (Value, Integer, Real)):
            if value.reference is None:
                self.is_open = True
                return ...
            return value.reference
        if isinstance(value, (list, tuple)):
            return [self._written(each) for each in value]
        if isinstance(value, _DTYPE):
            return str(value).removeprefix("tenon.")
        return value

    def own(self, value: Value) -> Value:
        """A value that is the result of a step."""
        is_made = value.reference is not None and value.reference[0] == "s"
        return value if is_made else self("clone", value)

    def tape(
        self, results: Sequence[Value | int | None], *, is_list: bool, may_resize: bool
    ) -> Any:
        """What runs next time; None where nothing can be promised."""
        if self.is_open:
            return None
        writes = [(value.reference, target) for value, target in self.writes]
        kept = [each.reference if isinstance(each, Value) else each for each in results]
        return (self.steps, kept, writes, is_list, may_resize)


@cache
def _signature(native: Any, name: str) -> tuple[list[str], int, bool, bool]:
    """(names of parameters, number of results, whether they are a list, whether their shapes depend on data)"""
    found: tuple[list[str], int, bool, bool] = native.signature(name)
    return found
