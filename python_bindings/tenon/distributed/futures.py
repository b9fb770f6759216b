# SPDX-License-Identifier: Apache-2.0
"""What a call will have made, and what is to be done with it then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Future:
    """A value that comes later: of `Work.get_future()`, or one that the program sets.

    `wait()` returns it, or raises what making it raised. `then(function)` is a future of what `function` makes of this one
    once it is there. That happens where the result is waited for, and not on another thread, so that all ranks make the
    calls of such functions in one order.
    """

    def __init__(self, make: Callable[[], Any] | None = None) -> None:
        self._make = make
        self._has_value = False
        self._value: Any = None
        self._error: BaseException | None = None

    def set_result(self, value: Any) -> None:
        self._value, self._has_value, self._make = value, True, None

    def set_exception(self, error: BaseException) -> None:
        self._error, self._make = error, None

    def done(self) -> bool:
        """Whether the value is there, so that wait() returns at once."""
        return self._has_value or self._error is not None

    def wait(self) -> Any:
        if self._make is not None:
            make, self._make = self._make, None
            try:
                self.set_result(make())
            except Exception as error:
                self._error = error
        if self._error is not None:
            raise self._error
        if not self._has_value:
            raise RuntimeError(
                "Future: expected a value, got none yet; call set_result() before wait(), as no other thread makes it"
            )
        return self._value

    value = wait

    def then(self, function: Callable[[Future], Any]) -> Future:
        def make() -> Any:
            self._settle()
            return function(self)

        return Future(make)

    def _settle(self) -> None:
        """Errors are for the function to ask for."""
        try:
            self.wait()
        except Exception:
            if self._error is None:
                raise
