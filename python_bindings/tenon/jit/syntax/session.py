# SPDX-License-Identifier: Apache-2.0
"""What one export of a thread knows of the branches and loops that it has recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Session:
    """`function` is what to record in the place of the one that was given."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function: Any = function
        self.plans: dict[Any, Any] = {}  # of branches and loops, as they were when tried last
        self.depth = 0  # of branches and loops that are being recorded
        self.is_live = True  # what is being recorded runs for these inputs, too
        self.unrolls = False  # loops over the rows of tensors stay Python's
        self.has_scans = False

    def may_unroll(self) -> bool:
        """Whether another recording could take rows one by one; it does from now on."""
        can = self.has_scans and not self.unrolls
        self.unrolls = True
        return can

    def __enter__(self) -> Session:
        self._outer, _current.session = _current.session, self
        return self

    def __exit__(self, *_: object) -> None:
        _current.session = self._outer


class _Current(threading.local):
    def __init__(self) -> None:
        self.session = Session()


_current = _Current()


def session() -> Session:
    """This thread's."""
    return _current.session
