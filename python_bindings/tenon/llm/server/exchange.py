# SPDX-License-Identifier: Apache-2.0
"""One request over ASGI: its body in, its answer or its events out."""

from __future__ import annotations

import asyncio
import json
import time

from .errors import ApiError

JSON = (b"content-type", b"application/json")


class ClientGone(Exception):
    """The client has left, or reads nothing."""


class Exchange:
    """One request and its response over ASGI's two functions."""

    def __init__(self, receive, send, metrics, write_timeout):
        self._receive = receive
        self._send = send
        self._metrics = metrics
        self._write_timeout = write_timeout
        self._sending_since: float | None = None
        self.started = False

    async def body(self, limit):
        parts, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            size += len(part)
            more = message.get("more_body", False)
            if size > limit:
                # A client that still writes when its connection is closed does not see the answer,
                # so what is a little too much is read, and forgotten.
                parts.clear()
                if more and size <= 8 * limit:
                    continue
                raise ApiError(413, f"body: expected at most {limit} bytes, got more")
            parts.append(part)
            if not more:
                return b"".join(parts)

    async def while_there(self, work):
        """Run `work`, or raise ClientGone as soon as the client has left or reads nothing."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._left())
        try:
            while not task.done():
                await asyncio.wait(
                    (task, gone), timeout=self._patience(), return_when=asyncio.FIRST_COMPLETED
                )
                if not task.done() and (gone.done() or self._patience() <= 0):
                    raise ClientGone
            task.result()
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    def _patience(self):
        """How long what is being sent may still take, in seconds. One look at this serves all parts of a
        stream, of which each would need a timer of its own otherwise."""
        if self._sending_since is None:
            return self._write_timeout
        return self._sending_since + self._write_timeout - time.monotonic()

    async def _left(self):
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status, headers):
        self.started = True
        self._metrics.responses[status] = self._metrics.responses.get(status, 0) + 1
        await self._put({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data, more=True):
        await self._put({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, status, body, headers):
        length = (b"content-length", str(len(body)).encode())

        async def send():
            await self.start(status, (*headers, length))
            await self.write(body, more=False)

        await self._in_time(send())

    async def end(self, data):
        """The last part of a stream, outside of while_there."""
        await self._in_time(self.write(data, more=False))

    async def _in_time(self, sending):
        try:
            await asyncio.wait_for(sending, self._write_timeout)
        except asyncio.TimeoutError:
            raise ClientGone from None

    async def json(self, value):
        await self.answer(200, dumped(value), (JSON,))

    async def _put(self, message):
        self._sending_since = time.monotonic()
        try:
            await self._send(message)
        except OSError:
            raise ClientGone from None
        finally:
            self._sending_since = None


def dumped(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "replace"
    )


def event(value):
    return b"data: " + dumped(value) + b"\n\n"
