# SPDX-License-Identifier: Apache-2.0
"""One request of a client over the engine: its choices, merged as they come."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from dataclasses import dataclass, field

from ..engine.requests import EngineStopped, QueueFull, Request, Token
from ..sampling import philox
from ..tokenizer import AnswerText
from .errors import ApiError
from .fields import Generation
from .tools import CallText


@dataclass
class Piece:
    """Text of the choice `index`, the tokens it is of, and the reason if it is the last; then `calls` are
    the functions that the answer calls."""

    index: int
    text: str
    tokens: list[Token]
    finish_reason: str | None
    calls: list[dict] = field(default_factory=list)


class Choices:
    """`wanted.choices` answers to each of `prompts`, numbered in that order.

    `pieces` gives what there is by then: lists, so that what one step made is written at once.
    `cancel` lets everything go; it must be called however the request ends.
    """

    def __init__(self, served, metrics, prompts: list[list[int]], wanted: Generation):
        self._served = served
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._arrived: list[tuple[int, Token | Exception]] = []
        self._ready = asyncio.Event()
        self._requests: list[Request] = []
        self._start = time.perf_counter()
        self._open = 0
        self._texts: list[AnswerText | None] = []
        self._calls: list[CallText | None] = []
        self._pending: list[list[Token]] = []
        self._last: list[float | None] = []
        self.prompt_tokens = sum(map(len, prompts))
        self.generated = 0
        self.reused = 0
        try:
            for prompt in prompts:
                for choice in range(wanted.choices):
                    self._submit(prompt, choice, wanted)
        except BaseException:
            self.cancel()
            raise
        metrics.prompt_tokens += self.prompt_tokens

    def _submit(self, prompt, choice, wanted):
        index = len(self._requests)
        seed = wanted.seed if choice == 0 else derived_seed(wanted.seed, choice)
        options = dataclasses.replace(wanted.options, seed=seed)
        self._texts.append(AnswerText(self._served, wanted.stops))
        self._calls.append(None if wanted.tools is None else CallText(wanted.tools))
        self._pending.append([])
        self._last.append(None)
        try:
            request = self._served.engine.submit(
                prompt,
                lambda answer: self._put(index, answer),
                max_tokens=wanted.max_tokens,
                stop_tokens=() if wanted.ignore_eos else None,
                options=options,
                priority=wanted.priority,
                salt=wanted.salt,
                grammar=None if wanted.grammar is None else wanted.grammar.copy(),
            )
        except QueueFull as error:
            raise ApiError(
                429, str(error), code="queue_full", headers=((b"retry-after", b"1"),)
            ) from None
        except EngineStopped as error:
            raise ApiError(503, str(error), code="engine_stopped") from None
        except ValueError as error:
            raise ApiError(400, str(error)) from None
        self._requests.append(request)
        self._open += 1

    def _put(self, index, answer):
        """In the engine's thread. The loop is woken for the first of what it has not read."""
        self._arrived.append((index, answer))
        if len(self._arrived) == 1:
            try:
                self._loop.call_soon_threadsafe(self._ready.set)
            except RuntimeError:  # the loop is closed, and its readers are gone
                pass

    async def pieces(self):
        while self._open:
            await self._ready.wait()
            self._ready.clear()
            # Appended to by another thread: what is taken is cut off in one go.
            count = len(self._arrived)
            arrived, self._arrived[:count] = self._arrived[:count], []
            if len(self._arrived):
                self._ready.set()
            pieces = []
            for index, answer in arrived:
                piece = self._piece(index, answer)
                if piece is not None:
                    pieces.append(piece)
            if pieces:
                yield pieces
        self.reused = sum(request.reused for request in self._requests)

    def _piece(self, index, answer):
        text_of = self._texts[index]
        if text_of is None:  # a stop was found before; the engine did not know yet
            return None
        if isinstance(answer, Exception):
            raise ApiError(500, str(answer), code="generation_failed")
        self._count(index)
        # The token that ends a text is none of its text.
        ends = answer.finish_reason == "stop"
        text = "" if ends else text_of.add(answer.id)
        if not ends:
            self._pending[index].append(answer)
        reason = answer.finish_reason
        if text_of.stopped:
            reason = "stop"
            self._served.engine.cancel(self._requests[index])
        elif reason:
            text += text_of.finish()
            if text_of.stopped:
                reason = "stop"
        calls: list[dict] = []
        call_text = self._calls[index]
        if call_text is not None:
            text = call_text.add(text)
            if reason:
                rest, calls = call_text.finish()
                text += rest
            if calls and reason == "stop":
                reason = "tool_calls"
        if reason:
            self._texts[index] = None
            self._open -= 1
            self._metrics.whole.observe(time.perf_counter() - self._start)
            self._metrics.finished[reason] = self._metrics.finished.get(reason, 0) + 1
        elif not text:
            return None
        tokens, self._pending[index] = self._pending[index], []
        return Piece(index, text, tokens, reason, calls)

    def _count(self, index):
        now = time.perf_counter()
        if self._last[index] is None:
            self._metrics.first_token.observe(now - self._start)
        else:
            self._metrics.between_tokens.observe(now - self._last[index])
        self._last[index] = now
        self.generated += 1
        self._metrics.generation_tokens += 1

    def cancel(self) -> None:
        for request, text in zip(self._requests, self._texts):
            if text is not None:
                self._served.engine.cancel(request)

    def usage(self) -> dict:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.generated,
            "total_tokens": self.prompt_tokens + self.generated,
            "prompt_tokens_details": {"cached_tokens": self.reused},
        }


def derived_seed(seed: int, choice: int) -> int:
    """The seed of a further choice, so that n choices differ and each can be had again."""
    first, second, _, _ = philox(seed & (1 << 64) - 1, (choice << 64) | 1)
    return first << 32 | second
