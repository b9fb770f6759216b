# SPDX-License-Identifier: Apache-2.0
"""What is asked of the engine, and what it answers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from ..draft import Guesses
from ..grammar import Grammar
from ..sampling import Sampler, SamplingOptions
from .cache import Table


class Token(NamedTuple):
    """One generated token.

    `logprob` is the natural logarithm of its probability before temperature, penalties and bias;
    `top` the most probable (token, logprob) of that distribution, as many as the options say.
    `finish_reason` is None until the last: then "stop" or "length".
    """

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()
    finish_reason: str | None = None


class RequestError(RuntimeError):
    """This request failed in the engine; others go on."""


class QueueFull(RuntimeError):
    """As many requests wait as may. Ask again later."""


class EngineStopped(RuntimeError):
    """The engine was closed or its thread has died."""


@dataclass(eq=False)
class Request:
    """One prompt and what became of it. The engine's thread is the only writer."""

    prompt: list[int]
    options: SamplingOptions
    max_tokens: int
    stop_tokens: frozenset[int]
    deliver: object  # called in the engine's thread with a Token or an exception
    priority: int = 0  # smaller runs first
    salt: str = ""
    grammar: Grammar | None = None
    deadline: float | None = None  # of time.monotonic()
    arrival: float = field(default_factory=time.monotonic)
    number: int = 0  # in order of arrival
    tokens: list[int] = field(default_factory=list)
    computed: int = 0
    table: Table | None = None
    cancelled: bool = False
    preemptions: int = 0
    draft: list[int] = field(default_factory=list)  # guesses behind `tokens`, in this step alone
    guesses: Guesses | None = None
    draft_limit: int = 4
    reused: int = 0  # tokens of the prompt that the prefix cache held at first admission

    def __post_init__(self):
        self.tokens = list(self.prompt)
        self.sampler = Sampler(self.options, self.prompt, self.grammar)

    @property
    def order(self):
        return (self.priority, self.number)

    @property
    def is_decoding(self) -> bool:
        """Whether its next token needs only the last one to be computed."""
        return len(self.tokens) - self.computed == 1 and len(self.tokens) > len(self.prompt)

    @property
    def generated(self) -> int:
        return len(self.tokens) - len(self.prompt)
