# SPDX-License-Identifier: Apache-2.0
"""Arguments that functions take in two forms."""

from __future__ import annotations

from typing import Any


def one_sequence(given: tuple[Any, ...]) -> Any:
    """The shape, or the axes, that both `f(2, 3)` and `f((2, 3))` give to `def f(*given)`."""
    return given[0] if len(given) == 1 and not isinstance(given[0], int) else given
