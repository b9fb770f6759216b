# SPDX-License-Identifier: Apache-2.0
"""Dynamic programming over the modules of a chain; inside a module with several parts of weights, all choices or a beam."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import Module

from ...pipelines.stages import parts_of
from ...placements import Placement
from .choices import Leaf, Placements, Style, leaves_of, states_of
from .costs import Cost, Like, Ranks, replaced

_ALL = 81  # choices of a module that are all tried
_STATES = 8  # placements of a boundary that are followed


@dataclasses.dataclass(frozen=True)
class Link:
    """A module of the chain, and what it is given."""

    name: str
    module: Module
    given: Like
    result: Like
    is_first: bool  # its input needs no gradient


@dataclasses.dataclass(frozen=True)
class Step:
    """What was decided for a module: where its input is, its style, and where its result goes."""

    name: str
    given: Placements
    cost: Cost
    target: Placements
    move: tuple[float, int]  # seconds and bytes of bringing it there


@dataclasses.dataclass(frozen=True)
class Solution:
    steps: tuple[Step, ...]
    loss: Cost | None
    seconds: float
    kept: int
    saved: int

    @property
    def memory(self) -> int:
        return self.kept + self.saved


def chain_of(model: Module, example: Like) -> list[Link]:
    """The modules that a model runs one behind the other, and the shapes between them."""
    links: list[Link] = []
    seen: dict[int, str] = {}
    x = tenon.empty(list(example.shape), dtype=example.dtype, device="meta")
    with tenon.no_grad():
        for name, module in parts_of(model):
            for parameter in module.parameters():
                if seen.setdefault(id(parameter), name) != name:
                    raise NotImplementedError(
                        f"auto: expected parameters of one module of the chain, got one that {seen[id(parameter)]!r} and "
                        f"{name!r} share; give the whole as one module, or placements by parallelize_module"
                    )
            empty = {
                key: tenon.empty(list(p.shape), dtype=p.dtype, device="meta")
                for key, p in module.named_parameters()
            }
            with replaced(module, empty):
                y = module(x)
            if not isinstance(y, Tensor):
                raise NotImplementedError(
                    f"auto: expected modules of a chain that return one tensor, got {type(y).__name__} of {name!r}"
                )
            links.append(Link(name, module, Like.of(x), Like.of(y), not links))
            x = y
    return links


class Search:
    def __init__(
        self,
        ranks: Ranks,
        links: list[Link],
        loss: Callable[..., Tensor] | None,
        target: Like | None,
        wanted: Mapping[str, Sequence[Placement]],
        inputs: Sequence[Placement] | None,
        beam: int,
        notify: Callable[[str, int], Any],
    ) -> None:
        self.ranks, self.links, self.loss, self.target = ranks, links, loss, target
        self.wanted, self.inputs, self.beam, self.notify = wanted, inputs, beam, notify
        self._solved: dict[Any, list[Cost]] = {}  # by module and placements of its input
        self._losses: dict[Placements, Cost] = {}

    def solve(self, price: float = 0.0) -> Solution:
        """The cheapest chain where a byte of memory costs `price` seconds."""
        mesh_shape = self.ranks.mesh.shape
        first = self.links[0].given
        starts = [tuple(self.inputs)] if self.inputs else states_of(first.shape, mesh_shape)
        found: dict[Placements, tuple[float, tuple[Step, ...]]] = {at: (0.0, ()) for at in starts}
        for link in self.links:
            following: dict[Placements, tuple[float, tuple[Step, ...]]] = {}
            targets = states_of(link.result.shape, mesh_shape)
            for at, (before, steps) in found.items():
                for cost in self.options(link, at):
                    here = before + cost.seconds + price * (cost.kept + cost.saved)
                    for target in targets:
                        move = self.ranks.move(link.result, cost.out, target)
                        total = here + move[0]
                        if target not in following or total < following[target][0]:
                            step = Step(link.name, at, cost, target, move)
                            following[target] = (total, (*steps, step))
            best = sorted(following.items(), key=lambda each: each[1][0])[:_STATES]
            found = dict(best)
        return min(
            (self._finished(at, steps) for at, (_, steps) in found.items()),
            key=lambda each: each.seconds + price * each.memory,
        )

    def _finished(self, at: Placements, steps: tuple[Step, ...]) -> Solution:
        loss = None
        if self.loss is not None:
            if at not in self._losses:
                self._losses[at] = self.ranks.loss(
                    self.loss, self.links[-1].result, at, self.target
                )
            loss = self._losses[at]
        costs = [step.cost for step in steps] + ([loss] if loss else [])
        seconds = sum(cost.seconds for cost in costs) + sum(step.move[0] for step in steps)
        kept, saved = sum(cost.kept for cost in costs), sum(cost.saved for cost in costs)
        return Solution(steps, loss, seconds, kept, saved)

    def options(self, link: Link, at: Placements) -> list[Cost]:
        """What the module may cost of an input in these placements. Equal modules are solved once."""
        leaves = leaves_of(link.module, link.name, self.ranks.mesh.shape, self.wanted)
        # A module of the user's own may print nothing of its sizes.
        sizes = tuple(leaf.shapes for leaf in leaves)
        options = tuple(leaf.options for leaf in leaves)
        module = (type(link.module), repr(link.module))
        key = (module, link.given, link.result, link.is_first, at, sizes, options)
        if key not in self._solved:
            self._solved[key] = self._solve_module(link, at, leaves)
            self.notify(link.name, self.ranks.runs)
        return self._solved[key]

    def _solve_module(self, link: Link, at: Placements, leaves: list[Leaf]) -> list[Cost]:
        tried: dict[Style, Cost] = {}

        def cost(choice: Sequence[Style]) -> Cost:
            style = tuple(itertools.chain.from_iterable(choice))
            if style not in tried:
                tried[style] = self.ranks.part(
                    link.module, link.given, at, style, not link.is_first
                )
            return tried[style]

        if math.prod(len(leaf.options) for leaf in leaves) <= _ALL:
            for choice in itertools.product(*(leaf.options for leaf in leaves)):
                cost(choice)
        else:
            self._beam(leaves, cost)
        return _undominated(list(tried.values()))

    def _beam(self, leaves: list[Leaf], cost: Callable[[Sequence[Style]], Cost]) -> None:
        """Leaf by leaf, where what is not decided is whole; then neighbours together, as columns before rows save a message."""
        beams = [tuple(leaf.options[0] for leaf in leaves)]
        for index, leaf in enumerate(leaves):
            wider = {
                (*choice[:index], option, *choice[index + 1 :])
                for choice in beams
                for option in leaf.options
            }
            beams = sorted(wider, key=lambda choice: cost(choice).seconds)[: self.beam]
        best = beams[0]
        opened = [index for index, leaf in enumerate(leaves) if len(leaf.options) > 1]
        for count in (
            1,
            2,
            3,
        ):  # in front of one more: queries, keys and values before what joins them
            for start in range(len(opened) - count):
                first, last = opened[start : start + count], opened[start + count]
                for ways in itertools.product(range(len(leaves[first[0]].options)), repeat=2):
                    choice = list(best)
                    for index in first:
                        choice[index] = leaves[index].options[ways[0] % len(leaves[index].options)]
                    choice[last] = leaves[last].options[ways[1] % len(leaves[last].options)]
                    if cost(choice).seconds < cost(best).seconds:
                        best = tuple(choice)


def _undominated(costs: list[Cost]) -> list[Cost]:
    """Those that no other one of the same result beats in time and in memory."""
    kept: list[Cost] = []
    for cost in sorted(costs, key=lambda each: (each.seconds, each.kept + each.saved)):
        if all(
            other.out != cost.out or other.kept + other.saved > cost.kept + cost.saved
            for other in kept
        ):
            kept.append(cost)
    return kept
