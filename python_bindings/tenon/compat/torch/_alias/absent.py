# SPDX-License-Identifier: Apache-2.0
"""Names that libraries mention, in annotations or in questions by isinstance(), of things that Tenon does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["absent_class", "absent_function"]


def absent_class(name: str) -> type:
    """A class without objects: nothing is an instance of it, and making one is an error that names it."""

    def refuse(cls: type, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: Tenon, which stands for PyTorch here, does not have it")

    module, _, last = name.rpartition(".")
    return type(
        last,
        (),
        {
            "__new__": refuse,
            "__module__": module,
            "__doc__": f"{name}, which is absent.",
            "is_absent": True,
        },
    )


def absent_function(name: str, instead: str = "") -> Callable[..., NoReturn]:
    """A function whose call is an error that names it, and what to use instead."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}(): Tenon, which stands for PyTorch here, does not have it"
            + (instead and f"; {instead}")
        )

    refuse.__name__ = name.rpartition(".")[2]
    refuse.is_absent = True  # type: ignore[attr-defined]
    return refuse
