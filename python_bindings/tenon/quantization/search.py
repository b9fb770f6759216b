# SPDX-License-Identifier: Apache-2.0
"""Which layers to leave as they are, so that a network loses no more than is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tenon import nn

from .program_layers import as_module
from .report import Report, report


class Found(NamedTuple):
    """What `search` chose: the module, the names of layers that stayed as they are, and the report."""

    module: nn.Module
    keep: list[str]
    report: Report | None  # None if all layers stayed


def search(
    module: Any,
    batches: Iterable[Any],
    quantize: Callable[[Any, list[str]], nn.Module],
    *,
    sqnr: float,
    budget: float = 0.5,
) -> Found:
    """Quantise as many layers as the results allow: their signal is `sqnr` decibels above the error.

    `quantize(module, keep)` makes a quantised copy in which the layers named in `keep` stay, such as
    `lambda module, keep: q.quantize_weights(module, "q4_0", keep=keep)`. Each layer is first quantised alone;
    then those that cost most for each byte that they save stay, one after another, until the results are near enough.
    `batches` is run twice for each layer and each try. Weights of at most the part `budget` of all bytes stay; a ValueError
    says what was reached with them.
    """
    if isinstance(batches, Iterator):
        raise TypeError(
            f"search: expected a list of batches, which is run many times, got {type(batches).__name__}"
        )
    if not 0 <= budget <= 1:
        raise ValueError(f"search: expected a budget from 0 to 1, got {budget}")
    module = as_module("search", module)
    made = quantize(module, [])
    whole = report(module, made, batches)
    if whole.sqnr >= sqnr:
        return Found(made, [], whole)
    sizes = {each.name: each.float_bytes for each in whole.layers}
    costs = {name: _cost(module, batches, quantize, name, sizes) for name in sizes}
    order = sorted(sizes, key=lambda name: costs[name] / max(sizes[name], 1), reverse=True)
    keep: list[str] = []
    best = whole.sqnr
    for name in order:
        if sum(sizes[each] for each in [*keep, name]) > budget * sum(sizes.values()):
            continue
        keep.append(name)
        if len(keep) == len(sizes):
            return Found(module, keep, None)
        made = quantize(module, keep)
        whole = report(module, made, batches)
        best = max(best, whole.sqnr)
        if whole.sqnr >= sqnr:
            return Found(made, keep, whole)
    raise ValueError(
        f"search: expected results {sqnr} dB above their error, got {best:.1f} dB with {len(keep)} of {len(sizes)} layers "
        f"as they were, which are the part {budget} of all bytes; allow a larger budget or more bits"
    )


def _cost(
    module: nn.Module,
    batches: Iterable[Any],
    quantize: Callable[[Any, list[str]], nn.Module],
    name: str,
    sizes: dict[str, int],
) -> float:
    """The error of the results, as a part of the signal, with this layer alone quantised."""
    others = [each for each in sizes if each != name]
    found = report(module, quantize(module, others), batches).sqnr
    return 0.0 if found == math.inf else 10 ** (-found / 10)
