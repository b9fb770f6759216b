# SPDX-License-Identifier: Apache-2.0
"""Which ways of dividing a step there are, and why others are none."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .recipe import Config, Recipe

NAMES = tuple(Config.__dataclass_fields__)
_MICROBATCHES = (1, 2, 4, 8, 16, 32)
_CHUNKS = (2, 4)


def configs_of(
    recipe: Recipe, ranks: int, space: Mapping[str, Sequence[Any]] | None = None
) -> Iterator[tuple[Config, str]]:
    """Each way, and why it is refused, or "". `space` says which values of a name are tried."""
    space = dict(space or {})
    unknown = sorted(set(space) - set(NAMES))
    if unknown:
        raise ValueError(
            f"tune: expected a space of {', '.join(NAMES)}, got {', '.join(map(repr, unknown))}"
        )

    def values(name: str, all_of_them: Sequence[Any]) -> list[Any]:
        return [each for each in all_of_them if name not in space or each in space[name]]

    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    axes = [values(name, divisors) for name in ("tp", "pp", "cp", "dp")]
    for tp, pp, cp, dp in itertools.product(*axes):
        if tp * pp * cp * dp != ranks:
            continue
        reason = _refused_axes(recipe, tp, pp, cp, dp)
        if reason:
            yield Config(dp=dp, tp=tp, pp=pp, cp=cp), reason
            continue
        for config in _ways(recipe, values, tp, pp, cp, dp):
            yield config, _refused(recipe, config)


def _refused_axes(recipe: Recipe, tp: int, pp: int, cp: int, dp: int) -> str:
    if tp > 1 and recipe.tensor_parallel is None and recipe.sequence_parallel is None:
        return "the recipe has no plan of tensor_parallel"
    if cp > 1 and "cp" not in recipe.divides:
        return "the recipe does not say what cp divides"
    for name, size in (("tp", tp), ("cp", cp)):
        whole = recipe.divides.get(name, size)
        if whole % size:
            return f"{name} {size} does not divide {whole}"
    if recipe.rows % dp:
        return f"dp {dp} does not divide {recipe.rows} rows"
    return ""


def _ways(recipe: Recipe, values: Any, tp: int, pp: int, cp: int, dp: int) -> Iterator[Config]:
    schedules: list[tuple[str, int]] = [("", 1)]
    if pp > 1:
        names = values("schedule", ("GPipe", "1F1B", "interleaved", "ZB-H1"))
        schedules = [(name, 1) for name in names if name != "interleaved"]
        if "interleaved" in names:
            schedules += [("interleaved", v) for v in values("chunks", _CHUNKS)]
    plans = [False] if recipe.tensor_parallel is not None or tp == 1 else []
    plans += [True] if tp > 1 and recipe.sequence_parallel is not None else []
    experts = [n for n in range(1, dp + 1) if dp % n == 0] if "ep" in recipe.divides else [1]
    for ep, zero, sp, (schedule, chunks), microbatches, recompute in itertools.product(
        values("ep", experts),
        values("zero", (0, 1, 2, 3) if dp * cp > 1 else (0,)),
        values("sp", plans),
        schedules,
        values("microbatches", _MICROBATCHES),
        values("recompute", (False, True) if recipe.units else (False,)),
    ):
        yield Config(dp, tp, pp, cp, ep, zero, sp, schedule, chunks, microbatches, recompute)


def _refused(recipe: Recipe, config: Config) -> str:
    rows = recipe.rows // config.dp
    if rows % config.microbatches:
        return f"{config.microbatches} micro-batches do not divide {rows} rows of a rank"
    if config.ep > 1:
        if recipe.divides["ep"] % config.ep:
            return f"ep {config.ep} does not divide {recipe.divides['ep']} experts"
        if config.cp > 1 or config.pp > 1:
            return "experts are divided beside dp and tp alone"
        if config.zero:
            return "experts are no parts of ZeRO"
    if config.zero == 3 and recipe.units is None:
        return "the recipe names no units to gather"
    if config.pp > 1:
        if config.zero > 1:
            return "stages of pipelines keep whole gradients"
        if config.schedule == "interleaved" and config.microbatches % config.pp:
            return f"interleaved needs micro-batches that {config.pp} stages divide"
        if config.microbatches < config.pp:
            return f"{config.microbatches} micro-batches leave some of {config.pp} stages idle"
    return ""
