# SPDX-License-Identifier: Apache-2.0
"""An engine: one thread that moves many requests on, a step at a time."""

from __future__ import annotations

import asyncio
import queue
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import tenon

from ..draft import Draft
from ..grammar import Grammar
from ..sampling import SamplingOptions
from .batch import build_batch, padding_blocks
from .cache import BlockCache, Table
from .requests import EngineStopped, QueueFull, Request, RequestError, Token
from .schedule import Scheduler
from .stream import Stream

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30}

# Below so many rows the CPU's products of matrices add in another order (docs/serving.md). A decoder
# that needs fewer, or more, says so in `minimum_rows`.
MINIMUM_ROWS = 24

# The default: no gap between two tokens of a stream is to be longer than two usual ones.
MAX_SLOWDOWN = 1.8


class Engine:
    """Generates for many requests at once with a decoder, each as if it were alone.

    `model` is a decoder or has one as `decoder`: `forward(tokens, positions, slots, offsets, table,
    lengths, picks, pools)` gives the logits of the picked rows. `kv_cache` is the memory of keys and
    values, in bytes or with a unit; it must hold one sequence of `max_length` tokens. At most
    `max_sequences` run and `max_waiting` wait; a step has at most `token_budget` tokens, `chunk_size`
    of them from one request. While requests decode, a step takes so many tokens of prompts that it lasts at most
    `max_slowdown` times as long as one in which all requests decode, by what steps have taken, and a few in any
    case; with inf only their number is bounded. `dtype` is that of keys and values: float32, bfloat16, float16, or int8 with a
    scale for each token and head.

    A request's tokens and log-probabilities are the same bits whatever runs beside it, however its
    prompt is cut and whether it was preempted: steps are filled up to `minimum_rows` rows, by default
    as many as the decoder says that it needs. A decoder
    whose rows depend on their neighbours none the less is refused, unless `check_rows` is False. A
    `draft` (PromptLookup, DraftModel) guesses tokens that a step verifies; it changes no bit either.

    `stream`, `submit`, `cancel` and `close` are safe from any thread.
    """

    def __init__(
        self,
        model,
        kv_cache: int | str = "1GiB",
        max_sequences: int = 32,
        *,
        max_length: int | None = None,
        max_waiting: int = 256,
        token_budget: int = 512,
        chunk_size: int = 256,
        max_slowdown: float = MAX_SLOWDOWN,
        block_size: int = 16,
        dtype="float32",
        minimum_rows: int | None = None,
        check_rows: bool = True,
        draft: Draft | None = None,
    ):
        self.decoder = getattr(model, "decoder", model)
        config = self.decoder.config
        if minimum_rows is None:
            minimum_rows = int(getattr(self.decoder, "minimum_rows", MINIMUM_ROWS))
        if getattr(config, "window", None):
            raise NotImplementedError(
                f"Engine: this model has a window of {config.window} tokens, and sliding windows are "
                "not there yet; tenon.llm.generate runs it"
            )
        for name, value in (
            ("max_sequences", max_sequences),
            ("max_waiting", max_waiting),
            ("token_budget", token_budget),
            ("chunk_size", chunk_size),
            ("block_size", block_size),
            ("minimum_rows", minimum_rows),
        ):
            if value < 1:
                raise ValueError(f"Engine: expected {name} of at least 1, got {value}")
        if not max_slowdown >= 1:
            raise ValueError(f"Engine: expected max_slowdown of at least 1, got {max_slowdown}")
        self.max_length = max_length or config.max_positions
        if self.max_length > config.max_positions:
            raise ValueError(
                f"Engine: expected max_length of at most the model's {config.max_positions} "
                f"positions, got {max_length}"
            )
        self.vocab_size = config.vocab_size
        guessing = getattr(draft, "decoder", None)
        if guessing is not None and guessing.config.vocab_size != self.vocab_size:
            raise ValueError(
                f"Engine: expected a draft model of {self.vocab_size} tokens, got "
                f"{guessing.config.vocab_size}"
            )
        self.max_waiting = max_waiting
        self._minimum_rows = minimum_rows
        self._reserved = padding_blocks(minimum_rows, block_size)
        self._table_width = max(-(-self.max_length // block_size), self._reserved)
        blocks = self._count_blocks(config, kv_cache, block_size, dtype)
        self._pools = self.decoder.new_pools(blocks, block_size=block_size, dtype=dtype)
        if any(pool.shape[0] != blocks for layer in self._pools for pool in layer):
            raise ValueError(
                f"Engine: expected pools whose first dimension is their {blocks} blocks, got "
                f"{tuple(self._pools[0][0].shape)}"
            )
        self.cache = BlockCache(blocks, block_size, reserved=self._reserved)
        self.scheduler = Scheduler(
            self.cache, max_sequences, token_budget, chunk_size, draft, max_slowdown
        )
        self.steps = 0
        self.drafted = self.accepted = 0  # tokens of drafts, and those that were right
        self.forward_seconds = 0.0
        self.step_seconds = 0.0
        self.last_error = ""
        self.failure: BaseException | None = None
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._outbox: list[tuple[Request, Token | Exception]] = []
        self._count_lock = threading.Lock()
        self._open_requests = 0
        self._numbers = 0
        self._closed = False
        if check_rows:
            self._check_rows()
        self._thread = threading.Thread(target=self._run, name="tenon-engine", daemon=True)
        self._thread.start()

    # From any thread.

    def submit(
        self,
        prompt: Sequence[int],
        deliver: Callable[[Token | Exception], None],
        *,
        max_tokens: int | None = None,
        stop_tokens: Sequence[int] | None = None,
        options: SamplingOptions | None = None,
        priority: int = 0,
        salt: str = "",
        timeout: float | None = None,
        grammar: Grammar | None = None,
    ) -> Request:
        """Ask for at most `max_tokens` tokens after `prompt`. Each is given to `deliver` in the
        engine's thread; after one with a `finish_reason`, or an exception, nothing more comes.

        `stop_tokens` are the model's ends of text unless given. `salt` keeps prefixes apart that no
        other salt may find. `timeout` in seconds fails the request however far it is. A `grammar` says
        which tokens may follow; the request owns it. Raises ValueError, QueueFull or EngineStopped.
        """
        prompt = [int(token) for token in prompt]
        if not prompt:
            raise ValueError("prompt: expected at least one token, got none")
        for place, token in enumerate(prompt):
            if not 0 <= token < self.vocab_size:
                raise ValueError(
                    f"prompt: expected tokens from 0 to {self.vocab_size - 1}, got {token} at {place}"
                )
        room = self.max_length - len(prompt)
        max_tokens = room if max_tokens is None else max_tokens
        if max_tokens < 1:
            raise ValueError(
                f"max_tokens: expected at least 1 beside a prompt of {len(prompt)} tokens and a "
                f"context of {self.max_length}, got {max_tokens}"
            )
        if max_tokens > room:
            raise ValueError(
                f"max_tokens: a prompt of {len(prompt)} tokens and {max_tokens} more exceed the "
                f"context of {self.max_length}"
            )
        options = options or SamplingOptions()
        for token in options.logit_bias:
            if not 0 <= token < self.vocab_size:
                raise ValueError(
                    f"logit_bias: expected tokens from 0 to {self.vocab_size - 1}, got {token}"
                )
        if stop_tokens is None:
            stop_tokens = self.decoder.config.eos_token_ids
        request = Request(
            prompt=prompt,
            options=options,
            max_tokens=max_tokens,
            stop_tokens=frozenset(stop_tokens),
            deliver=deliver,
            priority=priority,
            salt=salt,
            grammar=grammar,
            deadline=None if timeout is None else time.monotonic() + timeout,
        )
        with self._count_lock:
            if self._closed or self.failure is not None:
                raise EngineStopped(self._why_stopped())
            if self._open_requests >= self.max_waiting + self.scheduler.max_sequences:
                raise QueueFull(
                    f"{self._open_requests} requests run or wait, as many as may; ask again later"
                )
            self._open_requests += 1
            self._numbers += 1
            request.number = self._numbers
            self._inbox.put(request)  # under the lock, so that a thread that ends finds it
        return request

    async def stream(
        self, prompt: Sequence[int], *, seed: int = 0, **arguments
    ) -> AsyncIterator[Token]:
        """The tokens after `prompt` as they come. Fields of SamplingOptions and arguments of
        `submit` are keywords. Leaving the loop cancels the request."""
        names = SamplingOptions.__dataclass_fields__
        fields = {name: arguments.pop(name) for name in list(arguments) if name in names}
        stream = Stream(asyncio.get_running_loop())
        request = self.submit(
            prompt, stream.put, options=SamplingOptions(seed=seed, **fields), **arguments
        )
        try:
            async for token in stream:
                yield token
        finally:
            self.cancel(request)

    def cancel(self, request: Request) -> None:
        """Let a request go: its blocks are free before the next step. Idempotent."""
        request.cancelled = True
        self._inbox.put(None)

    @property
    def open_requests(self) -> int:
        """Requests that run or wait."""
        return self._open_requests

    def close(self) -> None:
        """Cancel all requests and end the thread. Idempotent."""
        with self._count_lock:
            self._closed = True
        self._inbox.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    # In the engine's thread.

    def _run(self):
        try:
            with tenon.no_grad():
                while not self._closed:
                    self._receive(wait=not (self.scheduler.running or self.scheduler.waiting))
                    if not self._closed:
                        self._step()
                    self._hand_out()
            error = EngineStopped("the engine was closed")
        except (
            BaseException
        ) as failure:  # a fault of the engine itself, for which no client may wait
            error = EngineStopped(f"the engine has died: {failure}")
            self.failure = failure
        with self._count_lock:
            self._closed = True
        while not self._inbox.empty():
            request = self._inbox.get()
            if request is not None:
                self.scheduler.add(request)
        for request in self.scheduler.running + self.scheduler.waiting:
            self._finish(request, error)
        self._hand_out()

    def _hand_out(self):
        """Deliver what a step has made, all at once: readers that wake in between would take the
        interpreter from the thread that draws for the others."""
        answers, self._outbox = self._outbox, []
        for request, answer in answers:
            request.deliver(answer)

    def _receive(self, wait):
        while wait or not self._inbox.empty():
            request = self._inbox.get()
            wait = False
            if request is not None:
                self.scheduler.add(request)
        now = time.monotonic()
        for request in self.scheduler.running + self.scheduler.waiting:
            if request.cancelled:
                self._finish(request, RequestError("the request was cancelled"))
            elif request.deadline is not None and now > request.deadline:
                self._finish(request, RequestError("the request's time is over"))

    def _step(self):
        pieces = self.scheduler.plan()
        if not pieces:
            return
        start = time.perf_counter()
        rows = sum(count for request, count in pieces if request.is_decoding)
        tokens = sum(count for _, count in pieces) - rows
        try:
            self._copy_rows(pieces)
            logits, picked, seconds = self._forward(pieces)
        except Exception as error:
            self.last_error = f"{type(error).__name__}: {error}"
            for request, _ in pieces:
                self._finish(request, RequestError(f"a step of the model failed: {error}"))
            return
        for request, count in pieces:
            request.computed += count - len(request.draft)
            self.cache.commit(request.table, request.tokens, request.computed)
        first = 0
        for request, count in picked:
            self._draw_all(request, logits[first : first + count])
            first += count
        self.steps += 1
        self.forward_seconds += seconds
        taken = time.perf_counter() - start
        self.scheduler.cost.learn(rows, tokens, taken)
        self.step_seconds += taken

    def _forward(self, pieces):
        batch = build_batch(pieces, self.cache.block_size, self._minimum_rows, self._table_width)
        start = time.perf_counter()
        logits = self.decoder.forward(*batch.arguments, self._pools)
        # A step that ends no prompt has no picks, and its work must be done all the same.
        rows = logits.numpy() if batch.picked else ()
        return rows, batch.picked, time.perf_counter() - start

    def _copy_rows(self, pieces):
        for request, _ in pieces:
            table = request.table
            if table.copied_from is None:
                continue
            target = table.blocks[(table.cached - 1) // self.cache.block_size]
            for keys, values in self._pools:
                keys[target] = keys[
                    table.copied_from
                ]  # rows behind the copied ones are written yet
                values[target] = values[table.copied_from]
            table.copied_from = None

    def _draw_all(self, request, rows):
        """Draw behind the last token, and behind each guess as long as guesses are what is drawn."""
        draft, request.draft = request.draft, []
        accepted = 0
        for place, row in enumerate(rows):
            if not self._draw(request, row):
                break
            if place == len(draft) or request.tokens[-1] != draft[place]:
                break
            accepted += 1
            request.computed += 1  # its key and value are those that the step wrote
        if draft:
            self.drafted += len(draft)
            self.accepted += accepted
            is_right = accepted == len(draft)
            request.draft_limit = 2 * len(draft) if is_right else accepted + 1

    def _draw(self, request, row):
        """Whether the request goes on."""
        try:
            token, logprob, top = request.sampler.draw(row, len(request.tokens))
        except (FloatingPointError, RuntimeError) as error:
            self._finish(request, RequestError(f"the model's answer is of no use: {error}"))
            return False
        request.tokens.append(token)
        reason = None
        if token in request.stop_tokens:
            reason = "stop"
        elif request.generated >= request.max_tokens:
            reason = "length"
        answer = Token(token, logprob, top, reason)
        if reason:
            self._finish(request, answer)
        else:
            self._outbox.append((request, answer))
        return not reason

    def _finish(self, request, answer):
        self.scheduler.remove(request)
        with self._count_lock:
            self._open_requests -= 1
        self._outbox.append((request, answer))

    def _why_stopped(self):
        return f"the engine has died: {self.failure}" if self.failure else "the engine was closed"

    # At the start.

    def _count_blocks(self, config, kv_cache, block_size, dtype):
        item = tenon.zeros(1, dtype=dtype).numpy().itemsize if dtype != "bfloat16" else 2
        row = config.head_dim * item + (4 if str(dtype) == "int8" else 0)  # with its scale
        block = 2 * config.layers * config.kv_heads * block_size * row
        wanted = parse_bytes(kv_cache)
        least = (self._table_width + self._reserved) * block
        if wanted < least:
            raise ValueError(
                f"Engine: expected kv_cache of at least {least} bytes, for one sequence of "
                f"{self.max_length} tokens in blocks of {block} bytes, got {wanted}; give more, or a "
                "smaller max_length"
            )
        return wanted // block

    def _check_rows(self):
        """Compute a few tokens alone, in pieces and beside others; refuse a decoder that tells these
        apart."""
        size = self.cache.block_size
        length = min(size, self.max_length, 8)
        count = min(6, self.cache.free)
        prompts = [
            [(7 * row + 3 * place) % self.vocab_size for place in range(length)]
            for row in range(count)
        ]

        def logits(rows, start, end):
            pieces = []
            for block, row in enumerate(rows):
                request = Request(prompts[row][:end], SamplingOptions(), 1, frozenset(), None)
                request.table = Table([self._reserved + block])
                request.computed = start
                pieces.append((request, end - start))
            batch = build_batch(pieces, size, self._minimum_rows, self._table_width)
            return self.decoder.forward(*batch.arguments, self._pools).numpy()[: len(rows)]

        def check(case, made, row):
            if not np.array_equal(made, together[row], equal_nan=True):
                raise NotImplementedError(
                    "Engine: this decoder's logits depend on what runs beside a sequence, so answers "
                    f"would depend on neighbours: row {row} {case} and among {count} differ with "
                    f"minimum_rows={self._minimum_rows}; raise it, or give check_rows=False"
                )

        with tenon.no_grad():
            together = logits(range(count), 0, length)
            for row in range(count):
                check("alone", logits([row], 0, length)[0], row)
            for end in range(1, length):
                logits([0], end - 1, end)
            check("token by token", logits([0], length - 1, length)[0], 0)


def parse_bytes(size: int | str) -> int:
    """A number of bytes from a number, or a text such as "2GiB" or "500 MB"."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
    if not match or match[2].upper() not in _UNITS:
        raise ValueError(f"expected bytes such as 2GiB, 500MB or a number, got '{size}'")
    return int(float(match[1]) * _UNITS[match[2].upper()])
