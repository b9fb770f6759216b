# SPDX-License-Identifier: Apache-2.0
"""Calls that go on while the program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .futures import Future

if TYPE_CHECKING:
    from tenon import _core

_FOREVER = 1e9  # seconds, some thirty years


class Work:
    """A call with `async_op=True`. Its tensors are neither read nor written by the program until `wait` returns.

    `wait(timeout)`, in seconds, returns True when the call is done, raises what it raised, and raises TimeoutError if
    it goes on for longer: the call goes on then, and may be waited for again.
    """

    def __init__(
        self,
        work: _core.GroupWork | None,
        result: Any = None,
        finish: Callable[[], None] | None = None,
        keep: Any = None,
        turn: Any = None,
    ) -> None:
        self._work, self._result, self._finish, self._keep = work, result, finish, keep
        self._turn = turn
        self._error: BaseException | None = None

    def is_completed(self) -> bool:
        return self._work is None or self._work.is_completed()

    def wait(self, timeout: float | None = None) -> bool:
        if self._error is not None:
            raise self._error
        if self._work is not None:
            try:
                is_done = self._wait(_FOREVER if timeout is None else timeout)
            except Exception as error:
                self._error, self._work, self._keep = error, None, None
                raise
            if not is_done:
                raise TimeoutError(f"the call is not done after {timeout} s; it goes on")
            self._work = self._keep = None
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()
        return True

    def _wait(self, timeout: float) -> bool:
        assert self._work is not None
        if self._turn is None:
            return self._work.wait(timeout)
        with self._turn.given_away():
            return self._work.wait(timeout)

    def result(self) -> Any:
        """What the call without `async_op` returns; waits for it."""
        self.wait()
        return self._result

    def get_future(self) -> Future:
        """Of a list of the result's tensors."""

        def make() -> Any:
            result = self.result()
            return result if isinstance(result, list) else [result]

        return Future(make)

    def exception(self) -> BaseException | None:
        """What the call raised, or None; waits for it."""
        try:
            self.wait()
        except Exception as error:
            return error
        return None
