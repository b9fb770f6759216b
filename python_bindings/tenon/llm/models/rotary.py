# SPDX-License-Identifier: Apache-2.0
"""Frequencies of rotary embeddings from a checkpoint's `rope_parameters`.

Kinds: default (Su et al., 2021), linear (positions divided by a factor), llama3 (low frequencies
divided, high ones kept, as Llama 3.1 does) and yarn (Peng et al., 2023). Kinds whose frequencies
depend on the length of the sequence (dynamic, longrope) are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tenon.llm.models.config import Rotary

_FIELDS = {
    "default": (),
    "linear": ("factor",),
    "llama3": (
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ),
    "yarn": (
        "factor",
        "original_max_position_embeddings",
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "truncate",
    ),
}


def rotary_of(parameters: Mapping[str, Any], head_dim: int, max_positions: int) -> Rotary:
    """The embedding that `parameters` (`rope_type`, `rope_theta` and the fields of its type) describe."""
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind not in _FIELDS:
        raise ValueError(f"rope_type: expected one of {', '.join(_FIELDS)}, got '{kind}'")
    known = {"rope_type", "type", "rope_theta", "partial_rotary_factor", *_FIELDS[kind]}
    for name in parameters:
        if name not in known:
            raise ValueError(
                f"rope_parameters: '{name}' has no meaning here for rope_type '{kind}', which knows "
                f"{', '.join(sorted(known))}"
            )
    base = float(parameters.get("rope_theta", 10000.0))
    features = int(head_dim * parameters.get("partial_rotary_factor", 1.0))
    if features < 2 or features % 2:
        raise ValueError(
            f"partial_rotary_factor: expected an even number of features, got {features}"
        )
    plain = tuple(base ** (-2 * pair / features) for pair in range(features // 2))
    if kind == "default":
        return Rotary(plain)
    factor = float(_needed(parameters, "factor"))
    if kind == "linear":
        return Rotary(tuple(frequency / factor for frequency in plain))
    if kind == "llama3":
        return Rotary(tuple(map(_llama3(parameters, factor), plain)))
    return _yarn(parameters, factor, plain, base, max_positions)


def _llama3(parameters: Mapping[str, Any], factor: float) -> Callable[[float], float]:
    low = float(_needed(parameters, "low_freq_factor"))
    high = float(_needed(parameters, "high_freq_factor"))
    original = float(_needed(parameters, "original_max_position_embeddings"))

    def scaled(frequency: float) -> float:
        turns = original * frequency / (2 * math.pi)
        if turns > high:
            return frequency
        if turns < low:
            return frequency / factor
        kept = (turns - low) / (high - low)
        return (1 - kept) * frequency / factor + kept * frequency

    return scaled


def _yarn(
    parameters: Mapping[str, Any],
    factor: float,
    plain: tuple[float, ...],
    base: float,
    max_positions: int,
) -> Rotary:
    original = parameters.get("original_max_position_embeddings") or max_positions
    features = 2 * len(plain)

    def pair_with(turns: float) -> float:
        return features * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    first = pair_with(float(parameters.get("beta_fast") or 32))
    last = pair_with(float(parameters.get("beta_slow") or 1))
    if parameters.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, features - 1)
    if first == last:
        last += 0.001  # a step instead of a ramp
    scale = parameters.get("attention_factor")
    if scale is None:
        scale = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    frequencies = []
    for pair, frequency in enumerate(plain):
        divided = min(max((pair - first) / (last - first), 0.0), 1.0)
        frequencies.append(divided * frequency / factor + (1 - divided) * frequency)
    return Rotary(tuple(frequencies), float(scale))


def _needed(parameters: Mapping[str, Any], name: str) -> Any:
    if parameters.get(name) is None:
        raise ValueError(f"rope_parameters: expected '{name}', got {dict(parameters)}")
    return parameters[name]
