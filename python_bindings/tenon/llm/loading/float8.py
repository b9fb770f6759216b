# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of float8: what `quantization_config` says of them, and their matrices with scales.

Two kinds are read: quant_method "fp8" (scales of 128 by 128 numbers as `weight_scale_inv`, or one number
as `weight_scale`), and "compressed-tensors" of the format "float-quantized" (`weight_scale` of a tensor, of
rows or of blocks). What else such a field can say is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tenon
from tenon import Tensor
from tenon.llm.models.float8 import FLOAT8, Float8Weight

_FIELD = "config.json: 'quantization_config'"
_SCALES = ("weight_scale_inv", "weight_scale")


class Float8Scheme(NamedTuple):
    """How a checkpoint stores its matrices."""

    block: tuple[int, int] | None = None  # rows and columns that share a scale
    rounds_activations: bool = False  # what meets them has 8 bits, too


def scheme_of(fields: Mapping[str, Any]) -> Float8Scheme | None:
    """The scheme that a config.json describes; None if its weights are plain."""
    given = fields.get("quantization_config")
    if given is None:
        return None
    method = given.get("quant_method") if isinstance(given, dict) else None
    if isinstance(given, dict) and method == "fp8":
        return _of_fp8(given)
    if isinstance(given, dict) and method == "compressed-tensors":
        return _of_compressed_tensors(given)
    raise ValueError(
        f"{_FIELD}: expected quant_method 'fp8' or 'compressed-tensors', got {method!r:.60}; other "
        "packed weights are not read: convert the plain checkpoint, as `tenon quantize` does"
    )


def _block(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or any(type(n) is not int for n in value):
        raise ValueError(f"{_FIELD}: expected a block of two whole numbers, got {value!r:.60}")
    if min(value) < 1:
        raise ValueError(f"{_FIELD}: expected a block of numbers above 0, got {value}")
    return value[0], value[1]


def _of_fp8(given: Mapping[str, Any]) -> Float8Scheme:
    if given.get("fmt", "e4m3") != "e4m3":
        raise ValueError(f"{_FIELD}: fmt: expected 'e4m3', got {given['fmt']!r:.60}")
    scheme = given.get("activation_scheme", "dynamic")
    if scheme not in ("dynamic", "static"):
        raise ValueError(
            f"{_FIELD}: activation_scheme: expected 'dynamic' or 'static', got {scheme!r:.60}"
        )
    return Float8Scheme(_block(given.get("weight_block_size")), True)


def _of_compressed_tensors(given: Mapping[str, Any]) -> Float8Scheme:
    if given.get("format") != "float-quantized":
        raise ValueError(
            f"{_FIELD}: format: expected 'float-quantized', got {given.get('format')!r:.60}"
        )
    if given.get("kv_cache_scheme") is not None:
        raise ValueError(f"{_FIELD}: kv_cache_scheme: expected none, got one, which is not read")
    groups = given.get("config_groups")
    if not isinstance(groups, dict) or len(groups) != 1:
        raise ValueError(f"{_FIELD}: config_groups: expected one group, got {groups!r:.60}")
    (group,) = groups.values()
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        raise ValueError(f"{_FIELD}: config_groups: expected 'weights', got {group!r:.60}")
    _check_numbers("weights", weights)
    strategy = weights.get("strategy")
    if strategy not in ("tensor", "channel", "block"):
        raise ValueError(
            f"{_FIELD}: weights: expected strategy 'tensor', 'channel' or 'block', got {strategy!r:.60}"
        )
    activations = group.get("input_activations")
    if activations is not None:
        _check_numbers("input_activations", activations)
    block = _block(weights.get("block_structure")) if strategy == "block" else None
    if activations is not None:
        _check_activations(activations, block)
    return Float8Scheme(block, activations is not None)


def _check_numbers(name: str, given: Any) -> None:
    for field, expected in (("num_bits", 8), ("type", "float"), ("symmetric", True)):
        value = given.get(field, expected) if isinstance(given, dict) else given
        if value != expected:
            raise ValueError(f"{_FIELD}: {name}: {field}: expected {expected!r}, got {value!r:.60}")


def _check_activations(given: Mapping[str, Any], block: tuple[int, int] | None) -> None:
    """What meets the matrices is rounded with the checkpoint's scale, or for each row, in groups where weights are in blocks."""
    dynamic = given.get("dynamic", False)
    if dynamic not in (True, False):
        raise ValueError(
            f"{_FIELD}: input_activations: dynamic: expected true or false, got {dynamic!r:.60}"
        )
    size = given.get("group_size")
    strategy = given.get("strategy") or ("tensor" if size is None else "group")
    wanted = "tensor" if not dynamic else "token" if block is None else "group"
    if strategy != wanted:
        raise ValueError(
            f"{_FIELD}: input_activations: strategy: expected {wanted!r} with dynamic {dynamic!r} and weights "
            f"{'without' if block is None else 'in'} blocks, got {strategy!r:.60}"
        )
    if strategy == "group" and block is not None and size != block[1]:
        raise ValueError(
            f"{_FIELD}: input_activations: group_size: expected {block[1]}, as many columns as a block of the weights "
            f"has, got {size!r:.60}"
        )


def with_scales(
    tensors: Mapping[str, Tensor], scheme: Float8Scheme
) -> dict[str, Tensor | Float8Weight]:
    """Tensors of a checkpoint, those of float8 with their scales, which have no names of their own then."""
    found: dict[str, Tensor | Float8Weight] = {}
    taken: set[str] = set()
    for name in tensors:
        module, _, kind = name.rpartition(".")
        tensor = tensors[name]
        if kind != "weight" or tensor.dtype not in FLOAT8:
            found[name] = tensor
            continue
        scale = next(
            (f"{module}.{each}" for each in _SCALES if f"{module}.{each}" in tensors), None
        )
        if scale is None or tensor.ndim != 2:
            raise ValueError(
                f"'{name}': expected a matrix of float8 beside '{module}.weight_scale', got shape "
                f"{tuple(tensor.shape)} and {'no scale' if scale is None else 'one'}"
            )
        taken.update((scale, f"{module}.input_scale"))
        given = tensors.get(f"{module}.input_scale")
        found[name] = Float8Weight(
            tensor,
            _scale(name, tensor, tensors[scale].to(tenon.float32), scheme.block),
            scheme.block,
            None if given is None else _number(f"{module}.input_scale", given),
        )
    return {name: tensor for name, tensor in found.items() if name not in taken}


def _number(name: str, given: Tensor) -> Tensor:
    if given.numel() != 1:
        raise ValueError(f"'{name}': expected one number, got shape {tuple(given.shape)}")
    return given.to(tenon.float32).reshape([])


def _scale(name: str, tensor: Tensor, scale: Tensor, block: tuple[int, int] | None) -> Tensor:
    rows, columns = tensor.shape
    if block is not None:
        wanted = (-(-rows // block[0]), -(-columns // block[1]))
        if tuple(scale.shape) == wanted:
            return scale.contiguous()
    elif scale.numel() == 1:
        return scale.reshape([])
    else:
        wanted = (rows, 1)
        if scale.numel() == rows and scale.ndim in (1, 2) and scale.shape[0] == rows:
            return scale.reshape([rows, 1])
    raise ValueError(f"'{name}': expected scales of shape {wanted}, got {tuple(scale.shape)}")
