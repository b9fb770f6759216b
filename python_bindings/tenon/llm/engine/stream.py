# SPDX-License-Identifier: Apache-2.0
"""Answers of the engine's thread as an asynchronous iterator of an event loop."""

from __future__ import annotations

import asyncio
from collections import deque

from .requests import Token


class Stream:
    """What `put` is given in any thread comes out of the loop that reads, in order.

    The loop is woken once for all that waits, not once for each token. It ends after a token with a
    `finish_reason`, and raises an exception that was put.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._waiting: deque = deque()
        self._ready = asyncio.Event()
        self._ended = False

    def put(self, answer: Token | Exception) -> None:
        self._waiting.append(answer)
        if len(self._waiting) == 1:
            try:
                self._loop.call_soon_threadsafe(self._ready.set)
            except RuntimeError:  # the loop is closed, and its readers are gone
                pass

    def __aiter__(self):
        return self

    async def __anext__(self) -> Token:
        if self._ended:
            raise StopAsyncIteration
        while not self._waiting:
            self._ready.clear()
            if not self._waiting:  # put may have come in between
                await self._ready.wait()
        answer = self._waiting.popleft()
        if isinstance(answer, Exception):
            self._ended = True
            raise answer
        self._ended = answer.finish_reason is not None
        return answer
