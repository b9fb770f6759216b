# SPDX-License-Identifier: Apache-2.0
"""Models in low precision, with what must not lose digits left in float32."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tenon
from tenon import nn
from tenon.nn import normalization
from tenon.optim import Optimizer

# Layers whose parameters are few, and whose statistics need digits.
_NORMALIZATIONS = tuple(
    layer
    for layer in vars(normalization).values()
    if isinstance(layer, type) and issubclass(layer, nn.Module) and layer is not nn.Module
)


def decorate(
    models: Any,
    optimizers: Any = None,
    level: str = "O2",
    dtype: Any = "bfloat16",
    master_weight: bool = True,
    excluded_layers: Iterable[Any] | None = None,
) -> Any:
    """Prepare a model, or a list of models, and their optimizers for mixed precision.

        model, optimizer = tenon.amp.decorate(model, optimizer)
        with tenon.amp.autocast(level="O2"):
            ...

    At level "O2" the parameters and buffers of `models` are converted to `dtype` (bfloat16 or float16) in
    place, except those of normalisation layers and of `excluded_layers` (modules, or classes of them),
    which stay float32. With `master_weight` every optimizer keeps float32 copies of the parameters that
    are in low precision, and updates those (`multi_precision`). At level "O1" nothing changes.

    Returns `models`, or (`models`, `optimizers`), as they were given.
    """
    if level not in ("O1", "O2"):
        raise ValueError(f"decorate: expected level 'O1' or 'O2', got {level!r}")
    dtype = tenon.dtype(dtype)
    if dtype not in (tenon.float16, tenon.bfloat16):
        raise ValueError(f"decorate: expected dtype bfloat16 or float16, got {dtype.name}")
    for model in _listed(models):
        if not isinstance(model, nn.Module):
            raise TypeError(f"decorate: expected modules, got {type(model).__name__}")
    for optimizer in _listed(optimizers):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"decorate: expected optimizers, got {type(optimizer).__name__}")
    if level == "O2":
        excluded = list(excluded_layers or [])
        classes = _NORMALIZATIONS + tuple(each for each in excluded if isinstance(each, type))
        modules = {id(each) for each in excluded if not isinstance(each, type)}
        for model in _listed(models):
            _convert(model, dtype, classes, modules)
        if master_weight:
            for optimizer in _listed(optimizers):
                optimizer.multi_precision = True
    return models if optimizers is None else (models, optimizers)


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _convert(
    module: nn.Module, dtype: tenon.dtype, classes: tuple[type, ...], modules: set[int]
) -> None:
    """The module's own tensors, and those of its children. What is excluded is so with all it holds."""
    if isinstance(module, classes) or id(module) in modules:
        return
    with tenon.no_grad():
        for value in vars(module).values():
            if isinstance(value, nn.Parameter | nn.Buffer) and value.dtype == tenon.float32:
                value.data = value.detach().to(dtype)
                if value.grad is not None:
                    value.grad = value.grad.to(dtype)
    for child in module.children():
        _convert(child, dtype, classes, modules)
