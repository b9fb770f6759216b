# SPDX-License-Identifier: Apache-2.0
"""load(): a model with all that its folder says about using it."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

from tenon.llm.generate import LanguageModel
from tenon.llm.loading.folder import MAX_JSON, read_decoder, read_json
from tenon.llm.sample import Sampling
from tenon.llm.template import ChatTemplate
from tenon.llm.tokenizer import Tokenizer

_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
# Fields of generation_config.json that change nothing here: tokens that are read elsewhere, and limits
# that a caller sets.
_OTHERS = {
    "_from_model_config",
    "bos_token_id",
    "cache_implementation",
    "do_sample",
    "eos_token_id",
    "max_length",
    "max_new_tokens",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "transformers_version",
    "use_cache",
}


def load(path: str | os.PathLike[str], dtype: str = "float32") -> LanguageModel:
    """The model of a Hugging Face folder, its weights converted to `dtype`.

    The folder's tokenizer.json and chat template, where it has them, need the extra `tenon-dl[llm]`.
    """
    folder = pathlib.Path(path)
    decoder = read_decoder(folder, dtype)
    tokenizer = None
    if (folder / "tokenizer.json").exists():
        tokenizer = Tokenizer(folder / "tokenizer.json")
    return LanguageModel(
        decoder,
        tokenizer,
        _template(folder),
        _sampling(read_json(folder / "generation_config.json")),
    )


def _template(folder: pathlib.Path) -> ChatTemplate | None:
    fields = read_json(folder / "tokenizer_config.json")
    text = fields.get("chat_template")
    file = folder / "chat_template.jinja"
    if file.exists():
        if file.stat().st_size > MAX_JSON:
            raise ValueError(
                f"{file}: expected at most {MAX_JSON} bytes, got {file.stat().st_size}"
            )
        text = file.read_text("utf-8")
    if isinstance(text, list):  # several, by name
        named = {each.get("name"): each.get("template") for each in text if isinstance(each, dict)}
        text = named.get("default")
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"tokenizer_config.json: chat_template: expected a text, got {text!r:.60}")
    special = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = fields.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            special[name] = value
    return ChatTemplate(text, special)


def _sampling(fields: Mapping[str, Any]) -> Sampling:
    unknown = {
        name: value
        for name, value in fields.items()
        if name not in _OTHERS and name not in _SAMPLING and value not in (None, False, 0, 1, 1.0)
    }
    if unknown:
        warnings.warn(
            f"generation_config.json: {', '.join(sorted(unknown))}: not used here", stacklevel=3
        )
    known = {name: fields[name] for name in _SAMPLING if fields.get(name) is not None}
    if not fields.get("do_sample"):
        penalty = known.get("repetition_penalty", 1.0)
        return Sampling(repetition_penalty=penalty)
    return Sampling(**{"temperature": 1.0, **known})
