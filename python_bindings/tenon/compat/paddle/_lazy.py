# SPDX-License-Identifier: Apache-2.0
"""paddle.LazyGuard: layers whose parameters get their memory and their first values later, one by one."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor

_IS_LAZY: contextvars.ContextVar[bool] = contextvars.ContextVar("paddle_lazy", default=False)


class LazyGuard:
    """A block in which paddle.nn's layers are made without memory for their parameters, on the device "meta". `parameter.initialize()` gives one its
    memory and the values that it would have had."""

    def __init__(self) -> None:
        self._tokens: list[contextvars.Token[bool]] = []

    def __enter__(self) -> LazyGuard:
        self._tokens.append(_IS_LAZY.set(True))
        return self

    def __exit__(self, *error: object) -> None:
        _IS_LAZY.reset(self._tokens.pop())


class LazyParameter(tenon.nn.Parameter):
    """A parameter without memory. An optimizer may hold it already: it is the same object once it has been initialised."""

    _make: Callable[[], Tensor]

    def initialize(self) -> None:
        """From now on an ordinary parameter, filled as its layer says, of the dtype that it has by now."""
        self.data = self._make().to(dtype=self.dtype)
        self.__class__ = tenon.nn.Parameter  # type: ignore[assignment]


def then(parameter: tenon.nn.Parameter | None, change: Callable[[Tensor], Any]) -> None:
    """Changes the values of a parameter, or those that it is going to have."""
    if isinstance(parameter, LazyParameter):
        make = parameter._make

        def value() -> Tensor:
            filled = make()
            change(filled)
            return filled

        parameter._make = value
    elif parameter is not None:
        with tenon.no_grad():
            change(parameter)


def made(
    shape: list[int], dtype: Any, device: Any, fill: Callable[[Tensor], Any] | None, trained: bool
) -> tenon.nn.Parameter:
    """A parameter of zeros on which `fill` has been called; in a block of LazyGuard one that will be."""

    def value() -> Tensor:
        zeros = _core.operator("zeros")(shape, dtype=dtype, device=device)
        if fill is not None:
            fill(zeros)
        return zeros

    if not _IS_LAZY.get():
        return tenon.nn.Parameter(value(), trained)
    parameter = LazyParameter(_core.operator("zeros")(shape, dtype=dtype, device="meta"), trained)
    parameter._make = value
    return parameter
