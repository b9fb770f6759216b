# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as Hugging Face publishes them: a folder of config.json, tensors and a tokenizer.

Nothing in the folder is run. What of it matters: config.json, model.safetensors or shards with their
index, tokenizer.json, tokenizer_config.json, generation_config.json, chat_template.jinja.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from tenon import Tensor
from tenon.io import safetensors, sharded
from tenon.llm.loading.float8 import scheme_of, with_scales
from tenon.llm.models import families
from tenon.llm.models.decoder import Decoder

MAX_JSON = 64 << 20  # bytes


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """The object in a JSON file, {} if there is no file."""
    if not path.exists():
        return {}
    if path.stat().st_size > MAX_JSON:
        raise ValueError(f"{path}: expected at most {MAX_JSON} bytes, got {path.stat().st_size}")
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def read_decoder(
    path: str | os.PathLike[str], dtype: str = "float32", activations: str = "float"
) -> Decoder:
    """The model of a folder, its weights converted to `dtype`; matrices of float8 stay so. `activations`
    "float8" also rounds what meets these, as the checkpoint says.

    `eos_token_id` of generation_config.json, where there is one, comes before that of config.json.
    """
    folder = pathlib.Path(path)
    if not (folder / "config.json").exists():
        raise FileNotFoundError(f"{folder}: expected a folder with a config.json")
    fields = read_json(folder / "config.json")
    generation = read_json(folder / "generation_config.json")
    if generation.get("eos_token_id") is not None:
        fields["eos_token_id"] = generation["eos_token_id"]
    scheme = scheme_of(fields)
    config = families.config_of(fields)
    tensors: Mapping[str, Any] = _tensors(folder)
    if scheme is not None:
        if activations == "float8" and not scheme.rounds_activations:
            raise ValueError(
                f"{folder}: expected activations 'float' of a checkpoint that rounds weights alone, got "
                "'float8'"
            )
        tensors = with_scales(tensors, scheme)
    weights = families.weights_of(fields["model_type"], config, tensors, dtype)
    return Decoder(config, weights, activations)


def _tensors(folder: pathlib.Path) -> Mapping[str, Tensor]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        return sharded.read(str(index), memory_map=True)[0]
    file = folder / "model.safetensors"
    if not file.exists():
        raise FileNotFoundError(
            f"{folder}: expected model.safetensors or model.safetensors.index.json; other formats of "
            "weights are not read, as theirs may hold code"
        )
    return safetensors.read(str(file), memory_map=True)[0]
