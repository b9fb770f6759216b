# SPDX-License-Identifier: Apache-2.0
"""What the metadata and tensors of a GGUF file mean for a Decoder.

architectures.json has an entry an architecture of llama.cpp, on top of the one that it `extends`, or of
"common":

    sizes      option of DecoderConfig: its field, behind "ARCHITECTURE."; null for none
    options    option: its value in this architecture
    experts    option of Experts: its field; `experts_are_optional` in an architecture without, too, and
               `normalizes_experts` says whether weights of experts sum to one
    accepts    field: the values that mean what the decoder does
    ignored    fields that do not matter to what the model computes
    windows    which layers use `attention.sliding_window`: "all", or {"pattern": n}, all but each n-th
               layer, whose rotary base is `freq_base` where there is one
    rotary     "none", or "interleaved": pairs of features side by side
    weights    module of the file: module of the decoder, or {"to": several, which share its rows}, or
               {"to": one, "stacked": true}, a matrix for each expert; null for none

Biases and a head of its own are there if their tensors are. A field or a tensor that no entry knows is an
error that names it.
"""

from __future__ import annotations

import functools
import json
import math
import pathlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.llm.loading.gguf import GgufError, GgufFile
from tenon.llm.models.blocks import BlockWeight
from tenon.llm.models.config import DecoderConfig, Experts, LayerOptions, Rotary
from tenon.llm.models.families import pattern_of
from tenon.llm.models.rotary import rotary_of

MAX_SIZE = 1 << 24  # features, heads, positions
FACTORS = "rope_freqs.weight"  # divides the frequencies of rotary embeddings
_TABLES = ("sizes", "options", "experts", "accepts", "weights")
_KINDS = {"norm_eps": float, "attention_softcap": float, "logits_softcap": float, "parallel": bool}
# Models that scale attention by the features of the hidden state for each head: by layers.
_SCALED_BY_HIDDEN = {"gemma2": 46, "gemma3": 62}
_ENDS = ("eos", "eot", "eom")
# Control tokens that end an answer though no field says so, as files often name one end alone.
_TEXTS_OF_ENDS = (
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
)


@functools.cache
def _entries() -> dict[str, dict[str, Any]]:
    return json.loads((pathlib.Path(__file__).parent / "architectures.json").read_text())


def architectures() -> list[str]:
    """The names of architectures, those with more options first."""
    return [name for name in _entries() if name not in ("common", "expert_weights")]


@functools.cache
def architecture(name: str) -> dict[str, Any]:
    """The entry of an architecture, with what it extends."""
    if name not in architectures():
        raise ValueError(
            f"general.architecture: expected one of {', '.join(sorted(architectures()))}, got {name!r:.60}"
        )
    entry = _entries()[name]
    base = architecture(entry["extends"]) if "extends" in entry else _entries()["common"]
    whole = {**base, **entry}
    for table in _TABLES:
        whole[table] = {**base.get(table, {}), **entry.get(table, {})}
    if whole["experts"]:
        whole["weights"].update(_entries()["expert_weights"])
    whole["weights"] = {name: rule for name, rule in whole["weights"].items() if rule}
    return whole


class _Fields:
    """The fields of one architecture, taken one by one. What was not taken is an error."""

    def __init__(self, metadata: Mapping[str, Any], name: str) -> None:
        self._prefix = f"{name}."
        self._rest = {
            key.removeprefix(self._prefix): value
            for key, value in metadata.items()
            if key.startswith(self._prefix)
        }

    def take(self, name: str, kind: type, default: Any = None) -> Any:
        """A field of `kind` int, float, bool or str; equal numbers of all layers are one."""
        value = self._rest.pop(name, default)
        if value is default:
            return default
        if isinstance(value, list) and value and all(each == value[0] for each in value):
            value = value[0]
        if kind is float and type(value) in (int, float) and math.isfinite(value):
            return shortest(float(value))
        if kind is int and type(value) is int and 0 <= value <= MAX_SIZE:
            return value
        if kind in (bool, str) and type(value) is kind:
            return value
        expected = {
            int: f"a whole number up to {MAX_SIZE}",
            float: "a finite number",
            bool: "true or false",
            str: "a text",
        }
        raise ValueError(f"{self._prefix}{name}: expected {expected[kind]}, got {value!r:.60}")

    def need(self, name: str, kind: type) -> Any:
        value = self.take(name, kind)
        if value is None:
            raise ValueError(f"{self._prefix}{name}: expected it in the metadata, got nothing")
        return value

    def take_any(self, name: str) -> Any:
        return self._rest.pop(name, None)

    def finish(self, entry: Mapping[str, Any]) -> None:
        for name, value in self._rest.items():
            accepted = entry["accepts"].get(name)
            if accepted is None and name not in entry["ignored"]:
                raise ValueError(
                    f"{self._prefix}{name}: this architecture has no such field here (it says "
                    f"{value!r:.60}), so its meaning would be lost"
                )
            if accepted is not None and value not in accepted:
                raise ValueError(
                    f"{self._prefix}{name}: expected {' or '.join(map(repr, accepted))}, got {value!r:.60}"
                )


def shortest(value: float) -> float:
    """The number with the fewest digits that is the same in float32: files hold 1e-6 as float32."""
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if abs(value) < 3e38 and struct.pack("<f", short) == struct.pack("<f", value):
            return short
    return value


def config_of(
    metadata: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    factors: Sequence[float] | None = None,
) -> DecoderConfig:
    """The options that a file's metadata and the shapes of its tensors describe; `factors` are the
    numbers of the tensor rope_freqs.weight."""
    name = metadata.get("general.architecture")
    entry = architecture(name if isinstance(name, str) else repr(name))
    fields = _Fields(metadata, str(name))
    options = dict(entry["options"])
    for option, field in entry["sizes"].items():
        value = None if field is None else fields.take(field, _KINDS.get(option, int))
        if value is not None:
            options[option] = value
    for option in ("layers", "hidden_size", "heads", "max_positions", "norm_eps"):
        if not options.get(option):
            raise ValueError(
                f"{name}.{entry['sizes'][option]}: expected a number above 0, got {options.get(option)}"
            )
    if options["layers"] > len(shapes):
        raise ValueError(
            f"{name}.{entry['sizes']['layers']}: expected at most the {len(shapes)} tensors, got "
            f"{options['layers']}"
        )
    table = shapes.get("token_embd.weight", ())
    if len(table) != 2 or table[1] != options["hidden_size"]:
        raise ValueError(
            f"token_embd.weight: expected rows of {options['hidden_size']} numbers, got shape {table}"
        )
    options["vocab_size"] = fields.take("vocab_size", int, table[0])
    if options["vocab_size"] != table[0]:
        raise ValueError(
            f"{name}.vocab_size: expected the {table[0]} rows of token_embd.weight, got "
            f"{options['vocab_size']}"
        )
    options.setdefault("kv_heads", options["heads"])
    options.setdefault("head_dim", options["hidden_size"] // options["heads"])
    options.setdefault("intermediate_size", 0)
    if fields.take("attention.value_length", int, options["head_dim"]) != options["head_dim"]:
        raise ValueError(f"{name}.attention.value_length: expected attention.key_length")
    _add_what_is_there(options, shapes)
    if entry.get("scaled_embedding"):
        options["embedding_scale"] = options["hidden_size"] ** 0.5
    if _SCALED_BY_HIDDEN.get(str(name)) == options["layers"]:
        options["attention_scale"] = (options["hidden_size"] / options["heads"]) ** -0.5
    _add_experts(options, fields, entry, shapes)
    options["layer_options"] = tuple(_layers(fields, entry, options, factors))
    fields.finish(entry)
    _add_tokens(options, metadata)
    return DecoderConfig(**options)


def _add_what_is_there(options: dict[str, Any], shapes: Mapping[str, Any]) -> None:
    options.setdefault("tied_head", "output.weight" not in shapes)
    options["head_bias"] = "output.bias" in shapes
    for option, modules in (
        ("attention_bias", ("attn_q", "attn_qkv")),
        ("output_bias", ("attn_output",)),
        ("mlp_bias", ("ffn_up",)),
    ):
        options.setdefault(option, any(f"blk.0.{each}.bias" in shapes for each in modules))


def _add_experts(
    options: dict[str, Any],
    fields: _Fields,
    entry: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    if not entry["experts"]:
        return
    found = {
        option: options["intermediate_size"]
        if field == "feed_forward_length"
        else fields.take(field, int)
        for option, field in entry["experts"].items()
    }
    if not found["count"] and entry.get("experts_are_optional"):
        return
    if not found["count"]:
        raise ValueError(f"expert_count: expected a number above 0, got {found['count']}")
    found = {option: value for option, value in found.items() if value is not None}
    for layer in range(options["layers"]):
        at = f"blk.{layer}.ffn_gate_exps.weight"
        if shapes.get(at, (0,))[0] != found["count"]:
            raise ValueError(f"{at}: expected {found['count']} experts, got shape {shapes.get(at)}")
    normalizes = entry["normalizes_experts"]
    if fields.take("expert_weights_norm", bool, normalizes) != normalizes:
        raise ValueError(f"expert_weights_norm: expected {normalizes} in this architecture")
    if not 1 <= found.get("per_token", 0) <= found["count"] or not found.get("size"):
        raise ValueError(f"expert_used_count: expected 1 to {found['count']}, got {found}")
    options["experts"] = Experts(normalize=normalizes, **found)


def _layers(
    fields: _Fields,
    entry: Mapping[str, Any],
    options: Mapping[str, Any],
    factors: Sequence[float] | None,
) -> Iterator[LayerOptions]:
    windows = entry.get("windows")
    size = fields.take("attention.sliding_window", int) if windows else None
    slides = [windows == "all"] * options["layers"]
    if isinstance(windows, dict):
        pattern = fields.take_any("attention.sliding_window_pattern")
        pattern = windows["pattern"] if pattern is None else pattern
        if isinstance(pattern, list):
            slides = [each is True for each in pattern]
        elif type(pattern) is int and pattern > 0:
            slides = [(layer + 1) % pattern != 0 for layer in range(options["layers"])]
        if len(slides) != options["layers"]:
            raise ValueError(
                f"attention.sliding_window_pattern: expected {options['layers']} layers, got {len(slides)}"
            )
        if not size:
            raise ValueError(f"attention.sliding_window: expected a number of keys, got {size}")
    whole = local = None
    if entry.get("rotary") != "none":
        is_interleaved = entry.get("rotary") == "interleaved"
        whole, local = _rotaries(fields, options, windows, factors, is_interleaved)
    elif factors is not None:
        raise ValueError(f"{FACTORS}: this architecture has no rotary embeddings")
    for slide in slides:
        yield LayerOptions(size if slide and size else None, local if slide else whole)


def _rotaries(
    fields: _Fields,
    options: Mapping[str, Any],
    windows: Any,
    factors: Sequence[float] | None,
    is_interleaved: bool,
) -> tuple[Rotary, Rotary]:
    """The embeddings of layers that see all keys, and of those with a window."""
    features = fields.take("rope.dimension_count", int, options["head_dim"])
    if not 2 <= features <= options["head_dim"]:
        raise ValueError(
            f"rope.dimension_count: expected 2 to {options['head_dim']}, got {features}"
        )
    base = fields.take("rope.freq_base", float, 10000.0)
    factor = fields.take("rope.scaling.factor", float)
    kind = fields.take("rope.scaling.type", str, "none" if factor is None else "linear")
    kinds = {"none": "default", "linear": "linear", "yarn": "yarn"}
    if kind not in kinds:
        raise ValueError(f"rope.scaling.type: expected one of {', '.join(kinds)}, got '{kind}'")
    parameters: dict[str, Any] = {"rope_type": kinds[kind], "rope_theta": base}
    original = fields.take("rope.scaling.original_context_length", int)
    if kind == "none":
        factor = None
    else:
        parameters["factor"] = factor
    if kind == "yarn":
        parameters["original_max_position_embeddings"] = original or options["max_positions"]
        for name in ("beta_fast", "beta_slow"):
            parameters[name] = fields.take(f"rope.scaling.yarn_{name}", float)
    local_base = windows.get("freq_base", base) if isinstance(windows, dict) else base
    local_base = fields.take("rope.freq_base_swa", float, local_base)
    for number in (base, local_base):
        if not 1 < number < 1e15:
            raise ValueError(f"rope.freq_base: expected a number above 1, got {number}")
    if factor is not None and not 1e-6 < factor < 1e6:
        raise ValueError(f"rope.scaling.factor: expected a number above 0, got {factor}")
    whole = rotary_of(parameters, features, options["max_positions"])
    frequencies = whole.frequencies
    if factors is not None:
        if len(factors) != len(frequencies) or not all(1e-6 < each < 1e6 for each in factors):
            raise ValueError(f"{FACTORS}: expected {len(frequencies)} numbers above 0")
        frequencies = tuple(each / by for each, by in zip(frequencies, factors))
    whole = Rotary(frequencies, whole.scale, is_interleaved)
    if local_base == base:
        return whole, whole
    return whole, rotary_of({"rope_theta": local_base}, features, options["max_positions"])


def _add_tokens(options: dict[str, Any], metadata: Mapping[str, Any]) -> None:
    def token(name: str) -> int | None:
        value = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if value is not None and (type(value) is not int or not 0 <= value < options["vocab_size"]):
            raise ValueError(
                f"tokenizer.ggml.{name}_token_id: expected 0 to {options['vocab_size'] - 1}, got "
                f"{value!r:.60}"
            )
        return value

    options["bos_token_id"] = token("bos")
    ends = [end for end in map(token, _ENDS) if end is not None]
    texts, kinds = (metadata.get(f"tokenizer.ggml.{name}") for name in ("tokens", "token_type"))
    if isinstance(texts, list) and isinstance(kinds, list):
        known = {
            text: place
            for place, (text, kind) in enumerate(zip(texts, kinds))
            if kind == 3 and isinstance(text, str)
        }
        ends += [known[text] for text in _TEXTS_OF_ENDS if text in known]
    options["eos_token_ids"] = tuple(dict.fromkeys(ends))


def weights_of(
    file: GgufFile, name: str, config: DecoderConfig, dtype: str
) -> dict[str, Tensor | BlockWeight]:
    """A file's tensors under the decoder's names: blocks mapped from the file, others converted to `dtype`."""
    rules = [(pattern_of(source), rule) for source, rule in architecture(name)["weights"].items()]
    shapes = config.weight_shapes()
    weights: dict[str, Tensor | BlockWeight] = {}
    for full_name in file.names():
        if full_name == FACTORS:
            continue
        module, _, kind = full_name.rpartition(".")
        found = ((rule, pattern.fullmatch(module)) for pattern, rule in rules)
        rule, match = next(((r, m) for r, m in found if m), (None, None))
        if match is None or kind not in ("weight", "bias"):
            raise GgufError(
                f"{file.path}: no part of the architecture '{name}' takes the tensor '{full_name}'"
            )
        tensor = file.tensor(full_name)
        for target, part in _parts(rule, match.groupdict(), kind, tensor, shapes):
            shape = shapes.get(target, ())
            if isinstance(part, BlockWeight) and len(shape) == 2:
                weights[target] = part
                continue
            plain = part.dequantized() if isinstance(part, BlockWeight) else part
            if shape == (1, *plain.shape):  # llama.cpp drops the dimension of one
                plain = plain.unsqueeze(0)
            weights[target] = plain.to(dtype)
    return weights


def _parts(
    rule: Any,
    indices: Mapping[str, str],
    kind: str,
    tensor: Tensor | BlockWeight,
    shapes: Mapping[str, tuple[int, ...]],
) -> Iterator[tuple[str, Tensor | BlockWeight]]:
    rule = {"to": rule} if isinstance(rule, str) else rule
    if rule.get("stacked"):
        for expert in range(tensor.shape[0]):
            yield f"{rule['to'].format(**indices, expert=expert)}.{kind}", tensor[expert]
        return
    if isinstance(rule["to"], str):
        yield f"{rule['to'].format(**indices)}.{kind}", tensor
        return
    targets = [f"{target.format(**indices)}.{kind}" for target in rule["to"]]
    rows = [shapes[target][0] if target in shapes else 0 for target in targets]
    if not tensor.shape or tensor.shape[0] != sum(rows):
        raise ValueError(
            f"expected {sum(rows)} rows for {', '.join(targets)}, got shape {tuple(tensor.shape)}"
        )
    if isinstance(tensor, BlockWeight):
        yield from zip(targets, tensor.split(rows))
    else:
        yield from zip(targets, tenon.split(tensor, rows, 0))
