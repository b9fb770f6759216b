# SPDX-License-Identifier: Apache-2.0
"""load(): a model with all that its folder or file says about using it."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

from tenon.llm.generate import LanguageModel
from tenon.llm.loading.folder import MAX_JSON, read_decoder, read_json
from tenon.llm.loading.gguf import GgufError, GgufFile
from tenon.llm.loading.gguf_model import FACTORS, config_of, weights_of
from tenon.llm.loading.gguf_vocabulary import tokenizer_json
from tenon.llm.models.decoder import Decoder
from tenon.llm.sampling import SamplingOptions
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


def load(
    path: str | os.PathLike[str], dtype: str = "float32", activations: str = "float"
) -> LanguageModel:
    """The model of a Hugging Face folder or of a GGUF file, its weights converted to `dtype`.

    Matrices that a GGUF file has in blocks stay so, mapped from the file; `activations` "int8" rounds what
    meets them to 8 bits, which is faster. Matrices that a folder has in float8 stay so, too; "float8" rounds
    what meets them as the checkpoint says. Tokenizers and chat templates need the extra `tenon-dl[llm]`.
    """
    folder = pathlib.Path(path)
    if folder.is_file():
        return _load_gguf(folder, dtype, activations)
    if activations not in ("float", "float8"):
        raise ValueError(
            f"load: expected activations 'float' or 'float8' of a folder, whose weights are floats, got "
            f"{activations!r}"
        )
    decoder = read_decoder(folder, dtype, activations)
    tokenizer = None
    if (folder / "tokenizer.json").exists():
        tokenizer = Tokenizer(folder / "tokenizer.json")
    return LanguageModel(
        decoder,
        tokenizer,
        _template(folder),
        _sampling(read_json(folder / "generation_config.json")),
    )


def _load_gguf(path: pathlib.Path, dtype: str, activations: str) -> LanguageModel:
    file = GgufFile(path)
    metadata = file.metadata
    try:
        if metadata.get("split.count", 0) not in (0, 1):
            raise GgufError(
                f"expected a whole model, got part {metadata.get('split.no')} of "
                f"{metadata['split.count']}; `llama-gguf-split --merge` joins them"
            )
        shapes = {name: file.shape(name) for name in file.names()}
        factors = file.read(FACTORS).reshape([-1]).tolist() if FACTORS in file else None
        config = config_of(metadata, shapes, factors)
        name = metadata["general.architecture"]
        decoder = Decoder(config, weights_of(file, name, config, dtype), activations)
        text = tokenizer_json(metadata)
        tokenizer = None if text is None else Tokenizer(text=text)
        template = _gguf_template(metadata, tokenizer)
    except ValueError as error:
        prefix = "" if str(error).startswith(str(path)) else f"{path}: "
        raise GgufError(f"{prefix}{error}") from None
    finally:
        file.close()  # as soon as no weight is left
    return LanguageModel(decoder, tokenizer, template)


def _gguf_template(metadata: Mapping[str, Any], tokenizer: Tokenizer | None) -> ChatTemplate | None:
    text = metadata.get("tokenizer.chat_template")
    if text is None or tokenizer is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"tokenizer.chat_template: expected a text, got {text!r:.60}")
    special = {}
    tokens = metadata["tokenizer.ggml.tokens"]
    for name, field in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        place = metadata.get(f"tokenizer.ggml.{field}_token_id")
        if type(place) is int and 0 <= place < len(tokens):
            special[f"{name}_token"] = tokens[place]
    return ChatTemplate(text, special)


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


def _sampling(fields: Mapping[str, Any]) -> SamplingOptions:
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
        return SamplingOptions(temperature=0.0, repetition_penalty=penalty)
    return SamplingOptions(**{"temperature": 1.0, **known})
