# SPDX-License-Identifier: Apache-2.0
"""A model as the server sees it: an engine, and text to tokens and back."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

import tenon

from ..engine import Engine
from ..loading import load


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
    fingerprint: str = ""


def served_model(path: str | os.PathLike[str], name: str, **settings) -> ServedModel:
    """The model of a folder (tenon.llm.load) in an engine of `settings`."""
    model = load(path)
    if model.tokenizer is None:
        raise ValueError(f"{path}: expected a tokenizer.json, which a server of texts needs")
    template = model.template
    # What an answer depends on beside its request, for clients that compare answers over time.
    config = json.dumps(asdict(model.decoder.config), sort_keys=True)
    digest = hashlib.sha256(f"{tenon.__version__} {config}".encode()).hexdigest()
    return ServedModel(
        name,
        Engine(model, **settings),
        model.tokenizer.encode,
        model.tokenizer.decode,
        template.render if template is not None else None,
        f"tenon-{digest[:12]}",
    )
