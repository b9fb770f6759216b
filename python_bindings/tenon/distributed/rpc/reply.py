# SPDX-License-Identifier: Apache-2.0
"""The value of a call that goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ..futures import Future


class Reply(Future):
    """A future that another thread fulfils, or that runs out of time where it is waited for."""

    def __init__(self, timeout: float, late: Callable[[], BaseException]) -> None:
        super().__init__()
        self._deadline = time.monotonic() + timeout
        self._late = late
        self._event = threading.Event()

    def set_result(self, value: Any) -> None:
        if not self._event.is_set():
            super().set_result(value)
            self._event.set()

    def set_exception(self, error: BaseException) -> None:
        if not self._event.is_set():
            super().set_exception(error)
            self._event.set()

    def done(self) -> bool:
        return self._event.is_set()

    def wait(self) -> Any:
        if not self._event.wait(max(0.0, self._deadline - time.monotonic())):
            self.set_exception(self._late())
        return super().wait()

    value = wait
