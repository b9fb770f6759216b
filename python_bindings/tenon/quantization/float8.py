# SPDX-License-Identifier: Apache-2.0
"""Weights of float8, and activations that are rounded to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import tenon
from tenon import Tensor, nn

from .layers import ACTIVATIONS, Float8Linear, scales_of_elements
from .observers import MinMax
from .program_layers import as_module
from .replacement import copy_of, find_layers, replace_layers, with_inputs

M = TypeVar("M", bound=nn.Module)

LARGEST = {"float8_e4m3": 448.0, "float8_e5m2": 57344.0}
SCALES = ("tensor", "row", "block")
BLOCK = (128, 128)


def float8_of(weight: Tensor, dtype: str, scales: str) -> tuple[Tensor, Tensor]:
    """A weight [out, in] in float8, and scales with which the largest magnitude of each part fits."""
    weight = weight.detach().to(tenon.float32)
    size = tenon.abs(weight)
    block = None
    if scales == "tensor":
        largest = size.max()
    elif scales == "row":
        largest = tenon.max(size, [1], keepdim=True)
    else:
        block = BLOCK
        rows, columns = weight.shape
        down, across = -(-rows // BLOCK[0]), -(-columns // BLOCK[1])
        size = nn.functional.pad(size, [0, across * BLOCK[1] - columns, 0, down * BLOCK[0] - rows])
        largest = tenon.max(size.reshape([down, BLOCK[0], across, BLOCK[1]]), [1, 3])
    scale = tenon.where(largest == 0, 1.0, largest / LARGEST[dtype])
    limit = LARGEST[dtype]
    ratio = weight / scales_of_elements(scale, block, weight.shape)
    return tenon.clip(ratio, -limit, limit).to(dtype), scale


def quantize_float8(
    module: M,
    dtype: str = "float8_e4m3",
    *,
    scales: str = "row",
    activations: str = "float",
    batches: Iterable[Any] | None = None,
    keep: Sequence[str] = (),
) -> M:
    """A copy of `module` whose Linear layers hold their weights in float8.

    `dtype` is 'float8_e4m3' or 'float8_e5m2'. A scale belongs to a whole weight ("tensor"), each of its
    rows ("row"), or each 128 by 128 numbers ("block"). `activations` are those of `Float8Linear`; for
    "static", and for it alone, `batches` show what layers are called on. `keep` has patterns of names of
    layers that stay as they are.
    """
    for name, value, known in (
        ("dtype", dtype, LARGEST),
        ("scales", scales, SCALES),
        ("activations", activations, ACTIVATIONS),
    ):
        if value not in known:
            raise ValueError(
                f"quantize_float8: {name}: expected {', '.join(map(repr, known))}, got {value!r}"
            )
    if (batches is not None) != (activations == "static"):
        raise ValueError(
            "quantize_float8: expected batches with activations 'static', and with these alone"
        )
    result = copy_of(as_module("quantize_float8", module))
    layers = find_layers(result, (nn.Linear,), keep)
    if not layers:
        raise ValueError(
            f"quantize_float8: {type(module).__name__} has no layer to quantise; expected Linear"
        )
    steps = _static_scales(result, layers, batches)
    made: dict[str, nn.Module] = {}
    for name, layer in layers:
        weight, scale = float8_of(layer.weight, dtype, scales)
        made[name] = Float8Linear(
            weight,
            scale,
            layer.bias,
            block=BLOCK if scales == "block" else None,
            activations=activations,
            x_scale=steps.get(name),
        )
    return replace_layers(result, made)


def _static_scales(
    module: nn.Module, layers: Sequence[tuple[str, Any]], batches: Iterable[Any] | None
) -> dict[str, Tensor]:
    """For each layer, the scale with which the largest magnitude of what it is called on fits."""
    if batches is None:
        return {}
    observers: dict[int, MinMax] = {}
    for name, layer in layers:
        observer = observers.setdefault(id(layer), MinMax())
        observer.where = name

    def see(layer: nn.Module, x: Tensor) -> None:
        observers[id(layer)].see(x.detach())

    with_inputs(module, [layer for _, layer in layers], batches, "quantize_float8", see)
    scales = {}
    for name, layer in layers:
        largest = max(map(abs, observers[id(layer)].range()))
        # Activations are rounded to float8_e4m3, whatever the weight is stored in.
        scales[name] = tenon.tensor(
            largest / LARGEST["float8_e4m3"] or 1.0, dtype=tenon.float32, device=layer.weight.device
        )
    return scales
