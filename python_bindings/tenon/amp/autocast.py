# SPDX-License-Identifier: Apache-2.0
"""Regions in which operators get their tensors in the dtype that suits them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import tenon
from tenon import _core

F = TypeVar("F", bound=Callable[..., Any])

_LEVELS = {"O0": 0, "O1": 1, "O2": 2}


class _Entered(threading.local):
    """The regions that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.regions: list[autocast] = []


_entered = _Entered()


class autocast:
    """Run operators of this thread in mixed precision, as a context manager or a decorator.

        with tenon.amp.autocast():
            loss = loss_of(model(x), target)
        loss.backward()

    At level "O1" products of matrices and convolutions compute in `dtype` (bfloat16 or float16), and
    operators that need digits or range, such as sums, exponentials, norms and losses, in float32;
    `operator_class(name)` tells what an operator gets, and its reference page. Others take what comes.
    At level "O2" all but those that need float32 compute in `dtype`: for models whose parameters are
    in it already, see `decorate`. "O0", or `enabled=False`, casts nothing: for a part of a region that
    must stay as it is.

    `custom_white_list` names operators that compute in `dtype` as well, `custom_black_list` operators
    that compute in float32. Composite operators cannot be named, as their parts are cast.

    Regions nest, the innermost decides, and end with their block. They belong to the thread. Casts are
    differentiated like other operators, and made anew wherever they are needed. Backward passes compute
    in the dtypes of the forward pass, inside a region or outside of it.

    Raises ValueError for other dtypes and levels, unknown operators, and operators in both lists.
    """

    def __init__(
        self,
        dtype: Any = "bfloat16",
        level: str = "O1",
        enabled: bool = True,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
    ) -> None:
        if level not in _LEVELS:
            raise ValueError(f"autocast: expected level 'O0', 'O1' or 'O2', got {level!r}")
        dtype = tenon.dtype(dtype)
        if dtype not in (tenon.float16, tenon.bfloat16):
            raise ValueError(f"autocast: expected dtype bfloat16 or float16, got {dtype.name}")
        low, high = _names(custom_white_list, "white"), _names(custom_black_list, "black")
        both = sorted(set(low) & set(high))
        if both:
            raise ValueError(
                f"autocast: expected an operator in one list, got {', '.join(both)} in both "
                "custom_white_list and custom_black_list"
            )
        self.dtype, self.level = dtype, level
        self.enabled = bool(enabled) and level != "O0"
        self._region = _core.AmpRegion(dtype, _LEVELS[level], low, high) if self.enabled else None

    def __enter__(self) -> autocast:
        if self._region is None:
            _core.amp_push_off()
        else:
            self._region.push()
        _entered.regions.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _entered.regions.pop()
        _core.amp_pop()

    def __call__(self, function: F) -> F:
        """`function`, in such a region."""

        @functools.wraps(function)
        def in_region(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_region  # type: ignore[return-value]

    def __repr__(self) -> str:
        state = "" if self.enabled else ", enabled=False"
        return f"autocast(dtype={self.dtype.name}, level={self.level!r}{state})"


def _names(names: Iterable[str] | None, color: str) -> list[str]:
    if names is None:
        return []
    if isinstance(names, str):
        raise TypeError(
            f"autocast: expected custom_{color}_list to be a list of operators, got the text "
            f"{names!r}; write [{names!r}]"
        )
    return sorted(set(names))


def current_region() -> autocast | None:
    """The innermost region of this thread, to be entered again where a call is repeated."""
    return _entered.regions[-1] if _entered.regions else None


def is_autocast_enabled() -> bool:
    """Whether this thread is in a region that casts."""
    return _core.amp_dtype() is not None


def get_autocast_dtype() -> tenon.dtype | None:
    """The dtype of this thread's region, or None outside of one."""
    return _core.amp_dtype()


def operator_class(name: str) -> str:
    """What becomes of an operator's floats here: "low" (the region's dtype), "high" (float32), "widest"
    (the widest among them), "keep" (nothing), or "parts": it is composite, and its parts are cast.

    Outside of a region: what level "O1" makes of them.
    """
    return _core.amp_class(name)


def white_list() -> list[str]:
    """Operators that compute in the region's dtype here; outside of a region, at level "O1"."""
    return _of_class("low")


def black_list() -> list[str]:
    """Operators that compute in float32 here; outside of a region, at level "O1"."""
    return _of_class("high")


def _of_class(wanted: str) -> list[str]:
    names = (name.removeprefix("tenon::") for name in _core.operator_names())
    return sorted(name for name in names if _core.amp_class(name) == wanted)
