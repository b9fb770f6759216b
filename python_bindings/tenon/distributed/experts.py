# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts whose experts are divided over ranks (Lepikhin et al., 2021, "GShard").

Rows travel to the ranks of their experts and back, as many as there are: no room is reserved, and nothing is padded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import Module, ModuleList

from . import functional
from .group import ProcessGroup
from .world import world


@dataclass(frozen=True)
class ExpertPlace:
    """Where the tensors of an expert are: on this rank of `group`, over which experts are divided, and on the ranks of
    `replicas`, which have the same experts; None: on this one alone."""

    group: ProcessGroup
    replicas: ProcessGroup | None

    @property
    def holders(self) -> int:
        return 1 if self.replicas is None else self.replicas.size

    @property
    def ranks(self) -> int:
        """All that have a part of the experts."""
        return self.group.size * self.holders


def place_of(tensor: Tensor) -> ExpertPlace | None:
    """Of a tensor of an expert; None for those that all ranks have."""
    return getattr(tensor, "expert_place", None)


class ExpertParallel(Module):
    """Experts that are divided over the ranks of a group: rank r keeps those from `count * r // size` on.

        experts = dist.ExpertParallel([nn.Linear(8, 8) for _ in range(16)])
        y = experts(x, weights, chosen)               # of this rank's tokens

    `experts` are all of them, the same on all ranks, each a module of rows [rows, features]; only the items of this rank
    are read, so that a sequence may make them when it is indexed. They keep their numbers as names: the parameters of
    all ranks together have the names of a ModuleList. One without tokens is called with no row, and has a gradient of
    zeros. With `capacity_factor` an expert takes `ceil(capacity_factor * choices / experts)` rows of each rank's tokens
    at most, the first in their order; what is left out adds nothing to its token (`dropped` says how many).

    If more ranks than those of `process_group` have a part of the batch, others have the same experts: `replicas` is the
    group of these. DistributedDataParallel sums gradients of experts over replicas, and divides them by the number of all
    ranks, as those of all other parameters. Values are those of the first replica.
    """

    def __init__(
        self,
        experts: Sequence[Module] | ModuleList,
        process_group: ProcessGroup | None = None,
        replicas: ProcessGroup | None = None,
        capacity_factor: float | None = None,
    ) -> None:
        group = process_group or world()
        count = len(experts)
        if count < group.size:
            raise ValueError(
                f"ExpertParallel: expected an expert for each of the {group.size} ranks at least, got {count}; give "
                "process_group a smaller group, and replicas for the ranks with the same experts"
            )
        if replicas is not None and set(replicas.ranks) & set(group.ranks) != {
            group.ranks[group.rank]
        }:
            raise ValueError(
                "ExpertParallel: expected replicas that have this rank alone in common with process_group, got ranks "
                f"{list(replicas.ranks)} and {list(group.ranks)}"
            )
        if capacity_factor is not None and not capacity_factor > 0:
            raise ValueError(
                f"ExpertParallel: expected a capacity_factor above 0, got {capacity_factor}"
            )
        if isinstance(experts, (list, tuple, ModuleList)):
            _expect_untied(experts)
        self.place = ExpertPlace(group, replicas)
        self.count, self.capacity_factor = count, capacity_factor
        self.dropped = 0  # choices without room in the last call, of this rank's tokens
        self._owned = [
            range(count * rank // group.size, count * (rank + 1) // group.size)
            for rank in range(group.size)
        ]
        for index in self._owned[group.rank]:
            self.add_module(str(index), experts[index])
        self.mark()

    def mark(self) -> None:
        """Tell the tensors of this rank's experts where they are: also those that took the place of others since."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.expert_place = self.place  # type: ignore[attr-defined]

    @property
    def own(self) -> range:
        """Numbers of this rank's experts."""
        return self._owned[self.place.group.rank]

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """`x` [tokens, features] by the experts `chosen` [tokens, k], the sum of what they make of each token times
        `weights` [tokens, k], as moe_gate returns both. Every rank calls this, also one without tokens."""
        rows, counts, order = tenon.moe_dispatch(x, chosen, self.count)
        kept = None
        if self.capacity_factor is not None:
            rows, counts, kept = self._limit(rows, counts, order, chosen)
        made = self._by_experts(rows, counts)
        if kept is not None:
            room = tenon.zeros([chosen.numel(), made.shape[1]], dtype=made.dtype, device=x.device)
            made = tenon.index_add(room, kept, made, 0)
        return tenon.moe_combine(made, weights, order)

    def _limit(
        self, rows: Tensor, counts: Tensor, order: Tensor, chosen: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows with room in their expert, how many each gets, and which of all rows they are."""
        assert self.capacity_factor is not None
        choices = chosen.numel()
        capacity = math.ceil(self.capacity_factor * choices / self.count)
        experts = chosen.reshape([-1])[order].to(tenon.int64)
        starts = tenon.cumsum(counts, 0) - counts
        in_expert = tenon.arange(choices, device=rows.device) - starts[experts]
        kept = tenon.nonzero(in_expert < capacity).reshape([-1])
        self.dropped = choices - kept.shape[0]
        return rows[kept], tenon.minimum(counts, capacity), kept

    def _by_experts(self, rows: Tensor, counts: Tensor) -> Tensor:
        """What the experts of all ranks make of `rows`, of which each gets the next `counts`."""
        group = self.place.group
        with tenon.no_grad():
            told_by = group.all_gather(counts.to(tenon.int64).reshape([1, self.count]))
        if (
            rows.device.kind == "meta"
        ):  # without data (dist.trace_step) all experts get equally many
            share, rest = divmod(rows.shape[0], self.count)
            told = [[share + (i < rest) for i in range(self.count)]] * group.size
        else:
            told = told_by.tolist()
        own = self.own
        sent = [sum(told[group.rank][i] for i in numbers) for numbers in self._owned]
        mine = [[of_rank[i] for i in own] for of_rank in told]  # by rank and expert
        received = [sum(of_rank) for of_rank in mine]
        arrived = functional.all_to_all(rows, group, received, sent)
        pieces = tenon.split(arrived, [size for of_rank in mine for size in of_rank], 0)
        made = []  # by expert and rank
        for place, index in enumerate(own):
            of_ranks = pieces[place :: len(own)]
            together = of_ranks[0] if group.size == 1 else tenon.concat(list(of_ranks), 0)
            out = getattr(self, str(index))(together)
            if out.ndim != 2 or out.shape[0] != together.shape[0]:
                raise ValueError(
                    f"ExpertParallel: expected {together.shape[0]} rows of expert {index}, got shape {tuple(out.shape)}"
                )
            made.append(tenon.split(out, [of_rank[place] for of_rank in mine], 0))
        back = tenon.concat([each[rank] for rank in range(group.size) for each in made], 0)
        return functional.all_to_all(back, group, sent, received)


def _expect_untied(experts: Any) -> None:
    owners: dict[int, int] = {}
    for index, expert in enumerate(experts):
        for tensor in expert.parameters():
            if owners.setdefault(id(tensor), index) != index:
                raise ValueError(
                    f"ExpertParallel: expected experts without common parameters, which ranks would change apart, got "
                    f"one of shape {tuple(tensor.shape)} in experts {owners[id(tensor)]} and {index}"
                )


class MoELayer(Module):
    """A mixture of experts: each token of x [..., features] by the `k` experts that `gate` prefers, and the sum of what
    they make of it, times their probabilities.

        layer = dist.MoELayer(nn.Linear(64, 8, bias=False), [MLP(64) for _ in range(8)], k=2)
        loss = F.cross_entropy(head(layer(x)), y) + 0.01 * layer.balance_loss()

    `gate` makes logits [tokens, experts]; every rank has it whole. Experts, groups and capacity are those of
    ExpertParallel.
    """

    def __init__(
        self,
        gate: Module,
        experts: Sequence[Module] | ModuleList,
        k: int = 2,
        normalize: bool = True,
        process_group: ProcessGroup | None = None,
        replicas: ProcessGroup | None = None,
        capacity_factor: float | None = None,
    ) -> None:
        if not 1 <= k <= len(experts):
            raise ValueError(f"MoELayer: expected k from 1 to {len(experts)}, got {k}")
        self.gate, self.k, self.normalize = gate, k, normalize
        self.experts = ExpertParallel(experts, process_group, replicas, capacity_factor)
        self._last: tuple[Tensor, Tensor] | None = None  # logits and choices of a call in training

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape([-1, x.shape[-1]])
        logits = self.gate(tokens)
        if tuple(logits.shape) != (tokens.shape[0], self.experts.count):
            raise ValueError(
                f"MoELayer: expected logits of shape {(tokens.shape[0], self.experts.count)} from the gate, got "
                f"{tuple(logits.shape)}"
            )
        weights, chosen = tenon.moe_gate(logits, self.k, self.normalize)
        self._last = (logits, chosen) if self.training and tenon.is_grad_enabled() else None
        out = self.experts(tokens, weights, chosen)
        return out.reshape([*x.shape[:-1], out.shape[-1]])

    def balance_loss(self) -> Tensor:
        """The loss of the last call in training that grows when experts get differently many tokens: 1 if all get equally
        many (Fedus et al., 2022, "Switch Transformers"). It is that of the tokens of all ranks which `process_group` and
        `replicas` join, and the same on all of them. Every rank calls it, once behind a call."""
        if self._last is None:
            raise RuntimeError(
                "balance_loss: expected a call of the layer in training before, with gradients, and one balance_loss() "
                "for each call"
            )
        (logits, chosen), self._last = self._last, None
        place = self.experts.place
        count = self.experts.count
        with tenon.no_grad():
            numbers = tenon.arange(count, device=logits.device)
            taken = (chosen.reshape([-1, 1]) == numbers).to(tenon.float32).sum(0)
            taken = _over_all(place, tenon.concat([taken, tenon.full_like(taken[:1], len(logits))]))
            tokens = taken[count]
            share = taken[:count] / (tokens * self.k)
        probabilities = tenon.softmax(logits.to(tenon.float32), -1).sum(0) / tokens
        return (_over_all(place, probabilities) * share).sum() * count


def _over_all(place: ExpertPlace, x: Tensor) -> Tensor:
    """The sum over all ranks that have a part of the experts."""
    x = functional.all_reduce(x, "sum", place.group)
    return x if place.replicas is None else functional.all_reduce(x, "sum", place.replicas)
