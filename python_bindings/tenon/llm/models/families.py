# SPDX-License-Identifier: Apache-2.0
"""Families of models: how a checkpoint's config.json and tensors become a Decoder's.

families.json has an entry a family, by its `model_type`. An entry starts from the one that it
`extends`, or from "common", and adds to its tables:

    sizes      option of DecoderConfig: the field of config.json, several to try in turn, null for none
    options    option: its value in this family
    experts    option of Experts: its field
    defaults   field: its value where config.json has none
    accepts    field: the values that mean what the decoder does, "any" for all
    ignored    fields that do not matter to what the model computes (training, other tasks)
    windows    which layers use `sliding_window`, where `layer_types` does not say: "all",
               "from_max_window_layers", or {"pattern": n}, all but each n-th layer
    rotary     false for a family without rotary embeddings
    prefix     what names of tensors may start with
    buffers    tensors that hold no weights
    weights    module of the checkpoint: module of the decoder, or {"to": one or several, which share
               its rows; "transposed", "plus_one", "interleaved_heads": true}

A field, a value or a tensor that no entry knows is an error that names it.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import tenon
from tenon import Tensor
from tenon.llm.models.config import DecoderConfig, Experts, LayerOptions
from tenon.llm.models.float8 import Float8Weight
from tenon.llm.models.rotary import rotary_of

_TABLES = ("sizes", "options", "experts", "defaults", "accepts", "weights")
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
_HANDLED = {"eos_token_id", "quantization_config", "tie_word_embeddings"}
_ROTARY = {
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "rotary_pct",
    "partial_rotary_factor",
    "rope_local_base_freq",
}
_WINDOWS = {
    "layer_types",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "sliding_window_pattern",
    "_sliding_window_pattern",
}


@functools.cache
def _entries() -> dict[str, dict[str, Any]]:
    text = (pathlib.Path(__file__).parent / "families.json").read_text()
    return json.loads(text)


def names() -> list[str]:
    """The `model_type` of each family."""
    return sorted(set(_entries()) - {"common"})


def family(name: str) -> dict[str, Any]:
    """The entry of a family, with what it extends."""
    if name not in names():
        raise ValueError(f"model_type: expected one of {', '.join(names())}, got '{name}'")
    entry = _entries()[name]
    base = family(entry["extends"]) if "extends" in entry else _entries()["common"]
    whole = {**base, **entry}
    for table in _TABLES:
        whole[table] = {**base.get(table, {}), **entry.get(table, {})}
    return whole


def config_of(fields: Mapping[str, Any]) -> DecoderConfig:
    """The options that the fields of a config.json describe."""
    if "auto_map" in fields:
        raise ValueError(
            "config.json: 'auto_map' names code of the folder, which is never run; expected one of the "
            f"families {', '.join(names())}"
        )
    entry = family(str(fields.get("model_type")))
    _check_fields(fields, entry)
    fields = {**entry["defaults"], **fields}
    options = dict(entry["options"])
    query_scalar = None
    for option, sources in entry["sizes"].items():
        value = _first(fields, sources)
        if option == "query_scalar":
            query_scalar = value
        elif value is not None:
            options[option] = value
    for option in ("vocab_size", "hidden_size", "layers", "heads", "max_positions"):
        if type(options.get(option)) is not int:
            raise ValueError(
                f"config.json: expected a whole number as '{entry['sizes'][option]}', got "
                f"{options.get(option)!r}"
            )
    options.setdefault("kv_heads", options["heads"])
    options.setdefault("head_dim", options["hidden_size"] // options["heads"])
    options.setdefault("intermediate_size", 4 * options["hidden_size"])
    options["activation"] = _activation(options.get("activation", "silu"))
    options["tied_head"] = bool(fields.get("tie_word_embeddings", False))
    options["eos_token_ids"] = token_ids(fields.get("eos_token_id"), "eos_token_id")
    if query_scalar is not None:
        options["attention_scale"] = query_scalar**-0.5
    if entry.get("scaled_embedding"):
        options["embedding_scale"] = options["hidden_size"] ** 0.5
    if entry["experts"]:
        found = {name: _first(fields, sources) for name, sources in entry["experts"].items()}
        options["experts"] = Experts(**{name: v for name, v in found.items() if v is not None})
    options["layer_options"] = tuple(_layers(fields, entry, options))
    return DecoderConfig(**options)


def token_ids(value: Any, name: str) -> tuple[int, ...]:
    """A field that holds no id, one, or a list of them."""
    found = [] if value is None else value if isinstance(value, list) else [value]
    for each in found:
        if type(each) is not int:
            raise ValueError(f"{name}: expected numbers of tokens, got {each!r}")
    return tuple(found)


def weights_of(
    name: str,
    config: DecoderConfig,
    tensors: Mapping[str, Tensor] | Mapping[str, Tensor | Float8Weight],
    dtype: str = "float32",
) -> dict[str, Tensor | Float8Weight]:
    """A checkpoint's tensors under the decoder's names, converted to `dtype`. Matrices of float8 stay so,
    but for those whose columns or rows have another order here."""
    entry = family(name)
    rules = [(pattern_of(source), rule) for source, rule in entry["weights"].items()]
    buffers = [pattern_of(source) for source in entry.get("buffers", [])]
    shapes = config.weight_shapes()
    weights: dict[str, Tensor | Float8Weight] = {}
    for full_name in tensors:
        short = full_name.removeprefix(entry["prefix"])
        if any(pattern.fullmatch(short) for pattern in buffers):
            continue
        module, _, kind = short.rpartition(".")
        found = ((rule, pattern.fullmatch(module)) for pattern, rule in rules)
        rule, match = next(((r, m) for r, m in found if m), (None, None))
        if match is None or kind not in ("weight", "bias"):
            raise ValueError(
                f"family '{name}': no part of the model takes the tensor '{full_name}'"
            )
        tensor = tensors[full_name]
        for target, part in _parts(rule, match.groupdict(), kind, tensor, config, shapes):
            if target in weights:
                raise ValueError(f"family '{name}': a second tensor for '{target}': '{full_name}'")
            if isinstance(part, Float8Weight) and len(shapes.get(target, ())) == 2:
                weights[target] = part
            else:
                weights[target] = _plain(part).to(dtype).contiguous()
    if config.tied_head and "head.weight" in weights:
        head, table = _plain(weights["head.weight"]), _plain(weights["embedding.weight"])
        if not bool((head == table).all()):
            raise ValueError(
                "tie_word_embeddings is true, but the checkpoint has another head than its embedding"
            )
        del weights["head.weight"]
    return weights


def _plain(weight: Tensor | Float8Weight) -> Tensor:
    return weight.dequantized() if isinstance(weight, Float8Weight) else weight


def _check_fields(fields: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    known = set(entry["ignored"]) | _HANDLED
    for sources in (*entry["sizes"].values(), *entry["experts"].values()):
        known.update(sources if isinstance(sources, list) else [sources])
    known.update(_ROTARY if entry.get("rotary", True) else ())
    known.update(_WINDOWS if "windows" in entry else ("layer_types", "sliding_window"))
    for name, value in fields.items():
        accepted = entry["accepts"].get(name)
        if accepted is None and name not in known:
            raise ValueError(
                f"config.json: the family '{fields['model_type']}' has no field '{name}' (here "
                f"{value!r:.60}), so its meaning would be lost"
            )
        if accepted is not None and accepted != "any" and value not in accepted:
            raise ValueError(
                f"config.json: '{name}': expected {' or '.join(map(repr, accepted))}, got {value!r:.60}"
            )


def _first(fields: Mapping[str, Any], sources: Any) -> Any:
    for source in sources if isinstance(sources, list) else [sources]:
        if fields.get(source) is not None:
            return fields[source]
    return None


def _activation(name: str) -> str:
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"config.json: activation: expected one of {', '.join(_ACTIVATIONS)}, got '{name}'"
        )
    return _ACTIVATIONS[name]


def _layers(
    fields: Mapping[str, Any], entry: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[LayerOptions]:
    size = fields.get("sliding_window")
    for kind in _layer_types(fields, entry.get("windows"), options["layers"]):
        if kind not in ("full_attention", "sliding_attention"):
            raise ValueError(
                f"layer_types: expected 'full_attention' or 'sliding_attention', got '{kind}'"
            )
        window = size if kind == "sliding_attention" else None
        if kind == "sliding_attention" and (type(size) is not int or size < 1):
            raise ValueError(f"sliding_window: expected a number of keys, got {size!r}")
        rotary = None
        if entry.get("rotary", True):
            parameters = _rope_parameters(fields, kind)
            rotary = rotary_of(parameters, options["head_dim"], options["max_positions"])
        yield LayerOptions(window, rotary)


def _layer_types(fields: Mapping[str, Any], windows: Any, layers: int) -> list[str]:
    given = fields.get("layer_types")
    if given is not None:
        if not isinstance(given, list) or len(given) != layers:
            raise ValueError(f"layer_types: expected a list of {layers}, got {given!r:.60}")
        return given
    slides = [False] * layers
    if windows == "all":
        slides = [fields.get("sliding_window") is not None] * layers
    elif windows == "from_max_window_layers" and fields.get("use_sliding_window"):
        slides = [layer >= fields.get("max_window_layers", 28) for layer in range(layers)]
    elif isinstance(windows, dict):
        names = ("sliding_window_pattern", "_sliding_window_pattern")
        pattern = _first(fields, list(names)) or windows["pattern"]
        slides = [(layer + 1) % pattern != 0 for layer in range(layers)]
    return ["sliding_attention" if each else "full_attention" for each in slides]


def _rope_parameters(fields: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The fields of one layer: `rope_parameters`, by kind of layer or for all, or the older names."""
    given = fields.get("rope_parameters")
    if given is not None:
        if not isinstance(given, dict):
            raise ValueError(f"rope_parameters: expected an object, got {given!r:.60}")
        return given.get(kind, given)
    parameters = {} if fields.get("rope_scaling") is None else dict(fields["rope_scaling"])
    parameters["rope_theta"] = _first(fields, ["rope_theta", "rotary_emb_base"]) or 10000.0
    if kind == "sliding_attention" and fields.get("rope_local_base_freq") is not None:
        return {"rope_theta": fields["rope_local_base_freq"]}
    share = _first(fields, ["partial_rotary_factor", "rotary_pct"])
    if share is not None:
        parameters["partial_rotary_factor"] = share
    return parameters


def pattern_of(source: str) -> re.Pattern[str]:
    """What the names of modules match in which `{layer}` and `{expert}` are numbers."""
    text = re.escape(source)
    for name in ("layer", "expert"):
        text = text.replace(rf"\{{{name}\}}", rf"(?P<{name}>0|[1-9]\d*)")
    return re.compile(text)


def _parts(
    rule: Any,
    indices: Mapping[str, str],
    kind: str,
    tensor: Tensor | Float8Weight,
    config: DecoderConfig,
    shapes: Mapping[str, tuple[int, ...]],
) -> Iterator[tuple[str, Tensor | Float8Weight]]:
    if isinstance(rule, str):
        rule = {"to": rule}
    if any(rule.get(each) for each in ("transposed", "plus_one", "interleaved_heads")):
        plain = _plain(tensor)
        if rule.get("transposed") and plain.ndim == 2:
            plain = plain.transpose(0, 1)
        tensor = plain.to(tenon.float32) + 1 if rule.get("plus_one") else plain
    targets = rule["to"] if isinstance(rule["to"], list) else [rule["to"]]
    targets = [f"{target.format(**indices)}.{kind}" for target in targets]
    if len(targets) == 1:
        yield targets[0], tensor
        return
    rows = [shapes[target][0] if target in shapes else 0 for target in targets]
    if len(tensor.shape) == 0 or tensor.shape[0] != sum(rows):
        raise ValueError(
            f"expected {sum(rows)} rows for {', '.join(targets)}, got shape {tuple(tensor.shape)}"
        )
    if isinstance(tensor, Float8Weight):
        parts = tensor.split(rows)
        if parts is not None:
            yield from zip(targets, parts)
            return
        tensor = tensor.dequantized()
    if rule.get("interleaved_heads"):  # [heads, query key value, head_dim]
        parted = tensor.reshape([config.heads, len(targets), config.head_dim, *tensor.shape[1:]])
        for place, target in enumerate(targets):
            yield target, parted[:, place].reshape([-1, *tensor.shape[1:]])
        return
    yield from zip(targets, tenon.split(tensor, rows, 0))
