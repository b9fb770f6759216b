# SPDX-License-Identifier: Apache-2.0
"""A model as the server sees it: an engine, and text to tokens and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..engine import Engine


@dataclass
class ServedModel:
    """`encode(text, add_special_tokens)` gives tokens, `decode(tokens)` text without special tokens,
    `render(messages)` the prompt of a chat as text, whose special tokens are written out.

    They are called from several threads. `render` is None for a model without a template of chats.
    """

    name: str
    engine: Engine
    encode: Callable[[str, bool], list[int]]
    decode: Callable[[list[int]], str]
    render: Callable[[list[dict]], str] | None = None
    fingerprint: str = field(default="")
