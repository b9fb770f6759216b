# SPDX-License-Identifier: Apache-2.0
"""Samples of neighbours, so that a step of training sees a small part of a large graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tenon
from tenon import Tensor

from .message_passing import check_edges


@dataclass(frozen=True)
class SampledNeighbors:
    """A part of a graph around some nodes.

    `nodes` [m] are the nodes of the part in the whole graph; the first ones are those that were
    given. `edge_index` [2, count] are its edges, numbered within the part.
    """

    nodes: Tensor
    edge_index: Tensor
    batch_size: int


class NeighborSampler:
    """For nodes up to `sizes[0]` of those that send to them, for these up to `sizes[1]`, and so on,
    without repetition; -1 takes all. Draws from Tenon's generator."""

    def __init__(self, edge_index: Tensor, num_nodes: int, sizes: Sequence[int]) -> None:
        check_edges(edge_index, "NeighborSampler")
        if any(size < -1 for size in sizes):
            raise ValueError(
                f"NeighborSampler: expected sizes of at least 0, or -1 for all, got {list(sizes)}"
            )
        self.num_nodes, self.sizes = num_nodes, list(sizes)
        targets, order = tenon.sort_with_indices(edge_index[1], 0)
        self._sources = tenon.index_select(edge_index[0], order, 0)
        numbers = tenon.arange(num_nodes + 1, device=edge_index.device)
        self._starts = tenon.searchsorted(targets, numbers)

    def sample(self, nodes: Tensor) -> SampledNeighbors:
        """The part around `nodes` [n], which are different."""
        known = nodes.to(tenon.int64)
        frontier = known
        sources, targets = [], []
        for size in self.sizes:
            source, target = self._neighbors(frontier, size)
            sources.append(source)
            targets.append(target)
            found = tenon.unique_values(source)
            frontier = (
                tenon.masked_select(found, ~tenon.isin(found, known)) if found.numel() else found
            )
            known = tenon.concat([known, frontier])
        edges = tenon.stack([tenon.concat(sources), tenon.concat(targets)])
        # Where each node of the whole graph is in the part.
        index = tenon.zeros([self.num_nodes], dtype=tenon.int64, device=known.device)
        index = tenon.scatter(index, known, tenon.arange(known.shape[0], device=known.device), 0)
        return SampledNeighbors(known, tenon.index_select(index, edges, 0), nodes.shape[0])

    def _neighbors(self, nodes: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Sources and targets of up to `size` edges that end in each of the nodes."""
        start = tenon.index_select(self._starts, nodes, 0)
        count = tenon.index_select(self._starts, nodes + 1, 0) - start
        ends = tenon.cumsum(count, 0)
        total = int(ends[-1].item()) if nodes.shape[0] else 0
        number = tenon.arange(total, device=nodes.device)
        row = tenon.searchsorted(ends, number, right=True)  # which of the nodes an edge is of
        before = tenon.index_select(ends - count, row, 0)
        if size >= 0 and total:
            # Random order within each node: whole parts are rows, fractions are random.
            keys = row.to(tenon.float64) + tenon.uniform(
                [total], dtype=tenon.float64, device=nodes.device
            )
            order = tenon.argsort(keys, 0)
            keep = tenon.nonzero(number - before < size).reshape([-1])
            number = tenon.index_select(order, keep, 0)
            row, before = (tenon.index_select(each, number, 0) for each in (row, before))
        edge = tenon.index_select(start, row, 0) + number - before
        return tenon.index_select(self._sources, edge, 0), tenon.index_select(nodes, row, 0)

    def batches(self, nodes: Tensor, batch_size: int, shuffle: bool = False) -> Iterator:
        """Parts around `batch_size` of the nodes at a time, in random order if `shuffle`."""
        if shuffle:
            order = tenon.randperm(nodes.shape[0]).to(nodes.device)
            nodes = tenon.index_select(nodes, order, 0)
        for start in range(0, nodes.shape[0], batch_size):
            yield self.sample(nodes[start : start + batch_size])
