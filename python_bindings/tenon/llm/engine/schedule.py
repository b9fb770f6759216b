# SPDX-License-Identifier: Apache-2.0
"""Which tokens of which requests the next step computes.

There is no phase of prompts: a request has `computed` tokens and a length, and each step moves some
of them on (Yu et al., 2022, "Orca"; Agrawal et al., 2023, "Sarathi", for prompts in chunks). While some
requests decode, prompts get what time of a step is left to them (decision 264). When
blocks are short, the last in order gives its own back and is computed again later.
"""

from __future__ import annotations

import bisect
import math
from typing import NamedTuple

from ..draft import Draft
from .cache import BlockCache
from .cost import StepCost
from .requests import Request


class Piece(NamedTuple):
    """`length` tokens of a request from its `computed`."""

    request: Request
    length: int


class Scheduler:
    """Requests that wait and run, in the order of priority and arrival.

    `token_budget` bounds the tokens of a step and `chunk_size` those of one request in it; `max_slowdown` bounds
    its time while requests decode, by the estimates of `cost`. With a `draft`
    requests whose next token is computed get guesses behind it, as far as there are blocks and budget.
    """

    def __init__(
        self,
        cache: BlockCache,
        max_sequences: int,
        token_budget: int,
        chunk_size: int,
        draft: Draft | None = None,
        max_slowdown: float = math.inf,
    ):
        self.cache = cache
        self.cost = StepCost()
        self.max_slowdown = max_slowdown
        self.draft = draft
        self.max_sequences = max_sequences
        self.token_budget = token_budget
        self.chunk_size = chunk_size
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.preemptions = 0

    def add(self, request: Request) -> None:
        bisect.insort(self.waiting, request, key=lambda one: one.order)

    def remove(self, request: Request) -> None:
        """Forget a request; its blocks are free at once."""
        for requests in (self.running, self.waiting):
            if request in requests:
                requests.remove(request)
        self._release(request)

    def plan(self) -> list[Piece]:
        """The pieces of the next step. Their tables have room for what the step writes."""
        budget, before = self.token_budget, self.preemptions
        prompts = self._prompt_budget()
        pieces: list[Piece] = []
        for request in list(self.running):
            if budget <= 0:
                break
            if request in self.running:  # not preempted for one before it
                count = self._count(request, budget, prompts)
                if count and self._make_room(request, count):
                    if not request.is_decoding:
                        prompts -= count
                    count += self._guess(request, count, budget - count)
                    pieces.append(Piece(request, count))
                    budget -= count
        while self.waiting and min(budget, prompts) > 0 and len(self.running) < self.max_sequences:
            if self.preemptions != before:
                break  # what was just given back would be taken again
            request = self.waiting[0]
            if not self._admit(request):
                break
            count = self._count(request, budget, prompts)
            assert request.table is not None
            if not self.cache.grow(request.table, request.computed + count):
                self._release(request)
                break
            self.waiting.pop(0)
            bisect.insort(self.running, request, key=lambda one: one.order)
            pieces.append(Piece(request, count))
            budget -= count
            prompts -= count
        return pieces

    def _prompt_budget(self):
        """Tokens of prompts in the next step: as many as may be, if no request waits for its next token."""
        decoding = sum(request.is_decoding for request in self.running)
        if not decoding:
            return math.inf
        present = min(len(self.running) + len(self.waiting), self.max_sequences)
        return self.cost.prompt_tokens(decoding, present, self.max_slowdown)

    def _count(self, request, budget, prompts):
        left = len(request.tokens) - request.computed
        return min(left, budget, self.chunk_size, left if request.is_decoding else prompts)

    def _guess(self, request, count, budget):
        """Put guesses behind a request whose next token is computed, and say how many."""
        request.draft = []
        left = request.max_tokens - request.generated - 1
        most = min(request.draft_limit, budget, self.chunk_size - count, left)
        if self.draft is None or most < 1 or request.computed + count < len(request.tokens):
            return 0
        if self.cache.free <= len(self.running):  # no request is preempted for a guess
            return 0
        if request.guesses is None:
            request.guesses = self.draft.start(len(request.prompt) + request.max_tokens)
        draft = request.guesses.next(request.tokens, min(most, self.draft.count))
        if draft and self.cache.grow(request.table, request.computed + count + len(draft)):
            request.draft = draft
        return len(request.draft)

    def _admit(self, request):
        table = self.cache.admit(request.tokens, request.salt)
        if table is None:
            return False
        request.table = table
        request.computed = table.cached
        if not request.preemptions:
            request.reused = table.cached
        return True

    def _make_room(self, request, count):
        """Preempt from the end of the order until `request` has blocks; False if it was the end."""
        while not self.cache.grow(request.table, request.computed + count):
            victim = self.running[-1]
            self.running.pop()
            self._release(victim)
            victim.preemptions += 1
            self.preemptions += 1
            self.add(victim)
            if victim is request:
                return False
        return True

    def _release(self, request):
        if request.table is not None:
            self.cache.release(request.table)
            request.table = None
            request.draft = []
            request.computed = 0
