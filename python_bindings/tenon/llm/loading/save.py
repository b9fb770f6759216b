# SPDX-License-Identifier: Apache-2.0
"""save_gguf(): a model as one GGUF file, which llama.cpp reads too."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tenon
from tenon import Tensor
from tenon.io.safetensors import bytes_of
from tenon.llm.generate import LanguageModel
from tenon.llm.loading.gguf_model import FACTORS, architecture, architectures, config_of
from tenon.llm.loading.gguf_vocabulary import metadata_of
from tenon.llm.loading.gguf_writer import Entry, write_gguf
from tenon.llm.models.blocks import FORMATS, BlockWeight
from tenon.llm.models.config import DecoderConfig, Rotary
from tenon.llm.models.decoder import Decoder
from tenon.llm.quantize import QUANTIZABLE, quantize

_FLOATS = {"f32": tenon.float32, "f16": tenon.float16, "bf16": tenon.bfloat16}
# What the field general.file_type calls a file by most of its tensors.
_FILE_TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q8_0": 7,
    "q5_0": 8,
    "q5_1": 9,
    "q2_K": 10,
    "q3_K": 11,
    "q4_K": 14,
    "q5_K": 16,
    "q6_K": 18,
    "iq4_nl": 25,
    "iq4_xs": 30,
    "bf16": 32,
}
# What takes the place of formats with 256 numbers in a block, for rows of whole blocks of 32 alone.
_SMALLER = {"q2_K": "q4_0", "q3_K": "q4_0", "q4_K": "q5_0", "q5_K": "q5_1", "q6_K": "q8_0"}
_SMALLER["iq4_xs"] = "iq4_nl"
Weights = Mapping[str, Tensor | BlockWeight]


def save_gguf(
    model: LanguageModel | Decoder, path: str | os.PathLike[str], quantization: str | None = None
) -> dict[str, int]:
    """Write a model, with its tokenizer and chat template, to a GGUF file.

    `quantization`: "f32", "f16", "bf16", or a format of blocks that has a quantiser ("q8_0", "q4_0",
    "q4_1", "q5_0", "q5_1", "q2_K" to "q6_K", "iq4_nl", "iq4_xs"), for matrices of products and embeddings.
    Where rows are no whole blocks of 256 numbers, "q2_K" and "q3_K" become "q4_0", "q4_K" "q5_0", "q5_K"
    "q5_1", "q6_K" "q8_0" and "iq4_xs" "iq4_nl"; where they are none of 32 either, "f16". None keeps the weights as they are. Returned is how
    many tensors have which type. A model that no architecture of llama.cpp describes in full is refused:
    what is read again is the same model.
    """
    known = [*_FLOATS, *QUANTIZABLE]
    if quantization is not None and quantization not in known:
        raise ValueError(
            f"save_gguf: expected one of {', '.join(known)} as quantization, got '{quantization}'"
        )
    decoder = model if isinstance(model, Decoder) else model.decoder
    name, metadata, tensors = _described(decoder)
    if isinstance(model, LanguageModel):
        metadata.update(_texts_of(model, decoder.config))
    else:
        metadata["tokenizer.ggml.model"] = "none"
    _add_tokens(metadata, decoder.config)
    if quantization in _FILE_TYPES:
        metadata["general.file_type"] = _FILE_TYPES[quantization]
    if quantization not in _FLOATS:
        metadata["general.quantization_version"] = 2
    entries = [
        _entry(each, tensor, _kind_of(each, tensor, quantization))
        for each, tensor in tensors.items()
    ]
    write_gguf(path, metadata, entries)
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.kind] = counts.get(entry.kind, 0) + 1
    return counts


def _kind_of(name: str, tensor: Tensor | BlockWeight, quantization: str | None) -> str:
    if len(tensor.shape) == 1 or name in (FACTORS, "position_embd.weight") or "_inp" in name:
        return "f32"  # as llama.cpp's own files have them: small, and the model depends on them
    if quantization is None:
        if isinstance(tensor, BlockWeight):
            return tensor.format
        return next((kind for kind, dtype in _FLOATS.items() if dtype == tensor.dtype), "f32")
    columns = tensor.shape[-1]
    if quantization in _SMALLER and columns % FORMATS[quantization][0]:
        quantization = _SMALLER[quantization]
    if quantization in FORMATS and columns % FORMATS[quantization][0]:
        return "f16"
    return quantization


def _entry(name: str, tensor: Tensor | BlockWeight, kind: str) -> Entry:
    def content() -> memoryview:
        if isinstance(tensor, BlockWeight):
            if tensor.format == kind:
                return bytes_of(tensor.blocks)
            plain = tensor.dequantized()
        else:
            plain = tensor
        if kind in _FLOATS:
            return bytes_of(plain.to(_FLOATS[kind]))
        return bytes_of(quantize(plain.to(tenon.float32), kind).blocks)

    return Entry(name, tuple(tensor.shape), kind.upper(), content)


def _described(decoder: Decoder) -> tuple[str, dict[str, Any], dict[str, Tensor | BlockWeight]]:
    """The first architecture that says all of a decoder's options, its metadata and tensors."""
    reasons = []
    # GGUF has no float8.
    weights = {
        name: weight if isinstance(weight, Tensor | BlockWeight) else weight.dequantized()
        for name, weight in decoder.weights.items()
    }
    for name in architectures():
        entry = architecture(name)
        if entry.get("is_only_read"):
            continue
        try:
            metadata = _metadata(decoder.config, name, entry)
            factors = _factors(decoder.config)
            order = (
                _order_of_pairs(decoder.config) if entry.get("rotary") == "interleaved" else None
            )
            tensors = dict(_tensors(decoder.config, weights, entry, order))
            if factors is not None:
                tensors[FACTORS] = tenon.tensor(factors, dtype=tenon.float32)
            shapes = {each: tuple(tensor.shape) for each, tensor in tensors.items()}
            _check_same(decoder.config, config_of(metadata, shapes, factors))
        except (ValueError, KeyError) as error:
            reasons.append(f"{name}: {error}")
            continue
        return name, metadata, tensors
    raise ValueError(
        "save_gguf: no architecture of llama.cpp says what this model is; " + "; ".join(reasons)
    )


def _metadata(config: DecoderConfig, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "general.architecture": name,
        "general.type": "model",
        f"{name}.vocab_size": config.vocab_size,
    }
    for option, field in entry["sizes"].items():
        value = getattr(config, option)
        if field is not None and value is not None:
            metadata[f"{name}.{field}"] = value
    if entry["sizes"]["head_dim"] is not None:
        metadata[f"{name}.attention.value_length"] = config.head_dim
    if config.experts is not None:
        for option, field in entry["experts"].items():
            metadata[f"{name}.{field}"] = getattr(config.experts, option)
    windows = [options.window for options in config.layer_options]
    if entry.get("windows") and any(windows):
        metadata[f"{name}.attention.sliding_window"] = max(filter(None, windows))
    rotary = next(
        (each.rotary for each in config.layer_options if each.rotary and not each.window),
        config.layer_options[0].rotary,
    )
    if rotary is not None:
        metadata[f"{name}.rope.dimension_count"] = 2 * len(rotary.frequencies)
        metadata[f"{name}.rope.freq_base"] = _base_of(rotary)
    return metadata


def _base_of(rotary: Rotary) -> float:
    """The base whose powers the highest frequencies are: scaled embeddings keep those."""
    if len(rotary.frequencies) < 2 or not rotary.frequencies[0] == 1.0:
        return 10000.0
    base = rotary.frequencies[1] ** -len(rotary.frequencies)
    short = float(f"{base:.7g}")
    return short if abs(short - base) < 1e-9 * base else base


def _factors(config: DecoderConfig) -> list[float] | None:
    """What divides the frequencies of layers that see all keys; None where nothing does."""
    rotary = next(
        (each.rotary for each in config.layer_options if each.rotary and not each.window), None
    )
    if rotary is None:
        return None
    base, count = _base_of(rotary), len(rotary.frequencies)
    factors = [
        base ** (-pair / count) / frequency for pair, frequency in enumerate(rotary.frequencies)
    ]
    return None if all(abs(factor - 1) < 1e-6 for factor in factors) else factors


def _order_of_pairs(config: DecoderConfig) -> dict[int, Tensor]:
    """By the heads of a projection: its rows in the order that puts the features of a pair side by side."""
    rotary = config.layer_options[0].rotary
    if rotary is None:
        raise ValueError("expected rotary embeddings")
    if rotary.interleaved:
        return {}
    half = len(rotary.frequencies)
    features = [pair + side * half for pair in range(half) for side in range(2)]
    features += range(2 * half, config.head_dim)
    return {
        heads: tenon.tensor(
            [head * config.head_dim + each for head in range(heads) for each in features],
            dtype=tenon.int64,
        )
        for heads in (config.heads, config.kv_heads)
    }


def _tensors(
    config: DecoderConfig,
    weights: Weights,
    entry: Mapping[str, Any],
    order: Mapping[int, Tensor] | None,
) -> Iterator[tuple[str, Tensor | BlockWeight]]:
    """A decoder's weights under the names of an architecture."""
    used = set()

    def taken(name: str) -> Tensor | BlockWeight:
        used.add(name)
        weight = weights[name]
        part = name.rsplit(".", 2)[-2]
        if order and part in ("query", "key") and name.startswith("layers."):
            rows = order[config.heads if part == "query" else config.kv_heads]
            if isinstance(weight, BlockWeight):
                return weight.reordered(rows)
            return tenon.index_select(weight, rows, 0)
        return weight

    layers = range(config.layers)
    for source, rule in entry["weights"].items():
        rule = {"to": rule} if isinstance(rule, str) else rule
        for layer in layers if "{layer}" in source else (0,):
            for kind in ("weight", "bias"):
                targets = rule["to"] if isinstance(rule["to"], list) else [rule["to"]]
                if rule.get("stacked"):
                    experts = config.experts.count if config.experts else 0
                    targets = [targets[0].replace("{expert}", str(each)) for each in range(experts)]
                names = [f"{each.format(layer=layer)}.{kind}" for each in targets]
                if not names or names[0] not in weights:
                    continue
                joined = _joined([taken(each) for each in names], rule)
                if joined.shape[0] == 1 and len(joined.shape) == 2:
                    joined = joined.dequantized() if isinstance(joined, BlockWeight) else joined
                    joined = joined[0]  # the router of a shared expert
                yield f"{source.format(layer=layer)}.{kind}", joined
    left = set(weights) - used
    if left:
        raise ValueError(f"no tensor holds '{min(left)}'")


def _joined(parts: list[Tensor | BlockWeight], rule: Mapping[str, Any]) -> Tensor | BlockWeight:
    if len(parts) == 1 and not rule.get("stacked"):
        return parts[0]
    join: Callable[[list[Tensor]], Tensor] = (
        tenon.stack if rule.get("stacked") else lambda each: tenon.concat(each, 0)
    )
    formats = {part.format if isinstance(part, BlockWeight) else "" for part in parts}
    if len(formats) == 1 and "" not in formats:
        blocks = [part.blocks for part in parts if isinstance(part, BlockWeight)]
        return BlockWeight(join(blocks), formats.pop())
    return join([part.dequantized() if isinstance(part, BlockWeight) else part for part in parts])


def _check_same(wanted: DecoderConfig, found: DecoderConfig) -> None:
    """Raise ValueError if an option would be read as another; those of tokens are written elsewhere."""
    ours, theirs = _comparable(wanted), _comparable(found)
    for name, value in ours.items():
        if not _alike(value, theirs[name]):
            raise ValueError(f"{name} would be read as {theirs[name]!r:.80}, not {value!r:.80}")


def _comparable(config: DecoderConfig) -> dict[str, Any]:
    fields = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    for name in ("bos_token_id", "eos_token_ids"):
        fields.pop(name)
    if config.attention_scale is None:
        fields["attention_scale"] = config.head_dim**-0.5
    fields["layer_options"] = [
        (each.window, each.rotary and (each.rotary.scale, each.rotary.frequencies))
        for each in config.layer_options
    ]
    if config.experts is not None:
        fields.pop("intermediate_size")  # of layers that have no experts
    return fields


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-6 * abs(one)
    return one == other


def _texts_of(model: LanguageModel, config: DecoderConfig) -> dict[str, Any]:
    if model.tokenizer is None:
        return {"tokenizer.ggml.model": "none"}
    fields = metadata_of(model.tokenizer.to_json(), config.vocab_size)
    if model.template is not None:
        fields["tokenizer.chat_template"] = model.template.text
    return fields


def _add_tokens(metadata: dict[str, Any], config: DecoderConfig) -> None:
    if config.bos_token_id is not None:
        metadata.setdefault("tokenizer.ggml.bos_token_id", config.bos_token_id)
    names = ("eos", "eot", "eom")
    ends = config.eos_token_ids
    first = metadata.get("tokenizer.ggml.eos_token_id")
    if first is not None:  # what a tokenizer puts behind texts goes first
        ends = (first, *(end for end in ends if end != first))
    if len(ends) > len(names):
        raise ValueError(f"save_gguf: expected at most {len(names)} tokens that end, got {ends}")
    for name, end in zip(names, ends):
        metadata[f"tokenizer.ggml.{name}_token_id"] = end
