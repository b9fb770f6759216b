# SPDX-License-Identifier: Apache-2.0
"""Generation for many requests at once: a cache of blocks, a scheduler, an engine."""

from ..sampling import Sampler, SamplingOptions, philox, uniform
from .cache import BlockCache, Table
from .engine import Engine, parse_bytes
from .requests import EngineStopped, QueueFull, Request, RequestError, Token
from .schedule import Piece, Scheduler

__all__ = [
    "BlockCache",
    "Engine",
    "EngineStopped",
    "Piece",
    "QueueFull",
    "Request",
    "RequestError",
    "Sampler",
    "SamplingOptions",
    "Scheduler",
    "Table",
    "Token",
    "parse_bytes",
    "philox",
    "uniform",
]
