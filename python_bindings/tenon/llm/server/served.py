# SPDX-License-Identifier: Apache-2.0
"""A model as the server sees it: an engine, and text to tokens and back."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

import tenon

from ..engine import Engine
from ..grammar import Grammars
from ..loading import load


@dataclass
class ServedModel:
    """`encode(text, add_special_tokens)` gives tokens, `decode(tokens)` text without special tokens,
    `render(messages)` the prompt of a chat as text, whose special tokens are written out; with
    `takes_tools` it has the keyword `tools`. `embed(tokens)` gives a vector, `grammars()` what makes
    grammars, or raises ImportError.

    They are called from several threads. What a model has not is None.
    """

    name: str
    engine: Engine
    encode: Callable[[str, bool], list[int]]
    decode: Callable[[list[int]], str]
    render: Callable[..., str] | None = None
    fingerprint: str = ""
    takes_tools: bool = False
    embed: Callable[[list[int]], list[float]] | None = None
    grammars: Callable[[], Grammars] | None = None


def served_model(
    path: str | os.PathLike[str], name: str, activations: str = "float", **settings
) -> ServedModel:
    """The model of a folder or file (tenon.llm.load) in an engine of `settings`."""
    model = load(path, activations=activations)
    if model.tokenizer is None:
        raise ValueError(f"{path}: expected a tokenizer, which a server of texts needs")
    tokenizer, template, config = model.tokenizer, model.template, model.decoder.config

    @functools.cache
    def grammars() -> Grammars:
        return Grammars(tokenizer.to_json(), config.vocab_size, config.eos_token_ids[0])

    # What an answer depends on beside its request, for clients that compare answers over time.
    options = json.dumps(asdict(config), sort_keys=True)
    digest = hashlib.sha256(f"{tenon.__version__} {activations} {options}".encode()).hexdigest()
    return ServedModel(
        name,
        Engine(model, **settings),
        tokenizer.encode,
        tokenizer.decode,
        template.render if template is not None else None,
        f"tenon-{digest[:12]}",
        template is not None and "tools" in template.text,
        model.embed,
        grammars if config.eos_token_ids else None,
    )
