# SPDX-License-Identifier: Apache-2.0
"""Moving scales from activations into weights: SmoothQuant (Xiao et al., arXiv:2211.10438) and AWQ (Lin et al.,
arXiv:2306.00978). Neither changes what the float network computes, but for rounding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import tenon
from tenon import Tensor, nn

from .program_layers import as_module
from .replacement import copy_of, with_inputs
from .weight_only import blocks_of

M = TypeVar("M", bound=nn.Module)

# What multiplies each feature of its result by a number of its own.
_PRODUCERS = (nn.LayerNorm, nn.RMSNorm, nn.Linear)
_ROWS_KEPT = 512  # of each layer, for the errors that awq compares


class _Pair(NamedTuple):
    """A producer, and the Linear layers that alone read its result."""

    name: str
    producer: Any
    readers: list[nn.Linear]


def smooth(
    module: M, pairs: Mapping[str, Sequence[str]], batches: Iterable[Any], alpha: float = 0.5
) -> M:
    """A copy of `module` whose activations are easier to round: SmoothQuant.

    `pairs` names, for each LayerNorm, RMSNorm or Linear, the Linear layers that read its result, and
    nothing else may read it. Feature j of the result is divided by `max|x_j| ** alpha / max|w_j| ** (1 -
    alpha)` and the weights that meet it are multiplied by that.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"smooth: expected alpha from 0 to 1, got {alpha}")
    result, found = _pairs_of("smooth", module, pairs)
    largest: dict[int, Tensor] = {}

    def see(layer: nn.Module, x: Tensor) -> None:
        seen = tenon.abs(x.detach()).reshape([-1, x.shape[-1]]).max([0])
        before = largest.get(id(layer))
        largest[id(layer)] = seen if before is None else tenon.maximum(before, seen)

    with_inputs(result, [pair.readers[0] for pair in found], batches, "smooth", see)
    for pair in found:
        weights = tenon.concat([tenon.abs(each.weight.detach()) for each in pair.readers]).max([0])
        numbers = largest[id(pair.readers[0])] ** alpha / weights ** (1 - alpha)
        _move(pair, _usable(numbers))
    return result


def awq(
    module: M,
    pairs: Mapping[str, Sequence[str]],
    batches: Iterable[Any],
    format: str = "q4_0",
    tries: int = 20,
) -> M:
    """A copy of `module` whose weights suffer less from rounding to blocks of `format`: AWQ.

    `pairs` is that of `smooth`. For each pair, features are multiplied by `mean|x_j| ** a` with the `a`
    among `tries` from 0 to 1 whose rounded weights give the smallest squared error of results. Follow it
    by `quantize_weights` with the same format.
    """
    if tries < 1:
        raise ValueError(f"awq: expected at least 1 try, got {tries}")
    result, found = _pairs_of("awq", module, pairs)
    kept: dict[int, list[Tensor]] = {id(pair.readers[0]): [] for pair in found}

    def see(layer: nn.Module, x: Tensor) -> None:
        rows = x.detach().reshape([-1, x.shape[-1]])
        room = _ROWS_KEPT - sum(each.shape[0] for each in kept[id(layer)])
        if room > 0:
            kept[id(layer)].append(rows[:room])

    with_inputs(result, [pair.readers[0] for pair in found], batches, "awq", see)
    for pair in found:
        rows = tenon.concat(kept[id(pair.readers[0])])
        mean = tenon.abs(rows).mean([0])
        best: tuple[float, Tensor | None] = (float("inf"), None)
        for step in range(tries):
            numbers = _usable(mean ** (step / tries))
            # A common factor changes nothing but the range of float16.
            numbers = numbers / tenon.sqrt(numbers.max() * numbers.min())
            error = sum(
                _error_of(each.weight.detach(), numbers, rows, format) for each in pair.readers
            )
            if error < best[0]:
                best = (error, numbers)
        if best[1] is not None:
            # Weights are multiplied by the numbers, and what they meet is divided.
            _move(pair, best[1])
    return result


def _error_of(weight: Tensor, numbers: Tensor, rows: Tensor, format: str) -> float:
    blocks = blocks_of(weight * numbers, format)
    rounded = tenon.dequantize_blocks(blocks, format)[:, : weight.shape[1]] / numbers
    error = nn.functional.linear(rows, rounded.to(rows.dtype) - weight)
    return float((error * error).mean())


def _usable(numbers: Tensor) -> Tensor:
    """1 in place of what a feature that is always 0 gives."""
    fine = tenon.logical_and(tenon.isfinite(numbers), numbers > 0)
    return tenon.where(fine, numbers, 1.0)


def _move(pair: _Pair, numbers: Tensor) -> None:
    with tenon.no_grad():
        producer = pair.producer
        rows = numbers.unsqueeze(-1) if isinstance(producer, nn.Linear) else numbers
        producer.weight.copy_(producer.weight / rows)
        if getattr(producer, "bias", None) is not None:
            producer.bias.copy_(producer.bias / numbers)
        for reader in pair.readers:
            reader.weight.copy_(reader.weight * numbers)


def _pairs_of(
    function: str, module: M, pairs: Mapping[str, Sequence[str]]
) -> tuple[M, list[_Pair]]:
    if not pairs:
        raise ValueError(f"{function}: expected at least one pair, got none")
    result = copy_of(as_module(function, module))
    found = []
    for name, names in pairs.items():
        producer = result.get_submodule(name)
        if not isinstance(producer, _PRODUCERS) or getattr(producer, "weight", None) is None:
            raise TypeError(
                f"{function}: expected {name!r} to be a LayerNorm, RMSNorm or Linear with a weight, "
                f"got {type(producer).__name__}"
            )
        if isinstance(names, str) or not names:
            raise TypeError(f"{function}: expected a list of names for {name!r}, got {names!r}")
        readers: list[nn.Linear] = []
        features = producer.weight.shape[0]  # type: ignore[union-attr]  # not None, as seen above
        for each in names:
            reader = result.get_submodule(each)
            if not isinstance(reader, nn.Linear) or reader.in_features != features:
                raise TypeError(
                    f"{function}: expected {each!r} to be a Linear of the {features} features of "
                    f"{name!r}, got {type(reader).__name__}({reader.extra_repr()})"
                )
            readers.append(reader)
        found.append(_Pair(name, producer, readers))
    return result, found
