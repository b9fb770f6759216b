# SPDX-License-Identifier: Apache-2.0
"""Samples of neighbours, so that a step of training sees a small part of a large graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.generators import Generator, stream_of

from .message_passing import check_edges, is_csr


@dataclass(frozen=True)
class SampledNeighbors:
    """A part of a graph around some nodes.

    `nodes` [m] are the nodes of the part in the whole graph; the first ones are those that were
    given. `edge_index` [2, count] are its edges, numbered within the part, and `edges` [count] says
    which of the whole graph they are.
    """

    nodes: Tensor
    edge_index: Tensor
    batch_size: int
    edges: Tensor


@dataclass(frozen=True)
class SampledLayer:
    """What one layer of a network on a graph reads: `nodes` [m] of the whole graph, and edges [2, count] from indices among them to indices among
    the nodes of the layer before (at first those that were given). `edges` says which of the whole graph they are; `weight`
    [count] makes a sum along them an estimate of the mean over all edges, and adds up to 1 for each target that has edges."""

    nodes: Tensor
    edge_index: Tensor
    edges: Tensor
    weight: Tensor


class NeighborSampler:
    """For nodes up to `sizes[0]` of those that send to them, for these up to `sizes[1]`, and so on,
    without repetition; -1 takes all. Draws from the device's stream, or from the `generator` of a call.

    The graph is edges [2, count] and `num_nodes`, or a matrix of layout 'csr', [targets, sources]:
    `NeighborSampler(graph, sizes)`. With `edge_weight`, one of at least 0 for each edge, draws follow
    the weights, and what weighs 0 is never drawn.
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int | Sequence[int],
        sizes: Sequence[int] | None = None,
        edge_weight: Tensor | None = None,
    ) -> None:
        check_edges(edge_index, "NeighborSampler")
        if is_csr(edge_index) and sizes is None:
            num_nodes, sizes = edge_index.shape[0], num_nodes  # type: ignore[assignment]
        if sizes is None or not isinstance(num_nodes, int):
            raise TypeError(
                "NeighborSampler: expected edges, a number of nodes and sizes, or a graph of layout 'csr' and sizes"
            )
        if any(size < -1 for size in sizes):
            raise ValueError(
                f"NeighborSampler: expected sizes of at least 0, or -1 for all, got {list(sizes)}"
            )
        self.num_nodes, self.sizes = num_nodes, list(sizes)
        self._order: Tensor | None = None  # of the edges; none where they are by target already
        if is_csr(edge_index):
            if edge_index.shape[0] != edge_index.shape[1]:
                raise ValueError(
                    f"NeighborSampler: expected a square graph, got shape {tuple(edge_index.shape)}"
                )
            self._starts = edge_index.indptr().to(tenon.int64)
            self._sources = edge_index.indices().to(tenon.int64)
        else:
            targets, self._order = tenon.sort_with_indices(edge_index[1], 0)
            self._sources = tenon.index_select(edge_index[0], self._order, 0).to(tenon.int64)
            numbers = tenon.arange(num_nodes + 1, device=edge_index.device)
            self._starts = tenon.searchsorted(targets, numbers)
            if edge_weight is not None:
                edge_weight = tenon.index_select(edge_weight, self._order, 0)
        self._weights = None if edge_weight is None else edge_weight.detach().to(tenon.float32)

    @property
    def device(self) -> tenon.device:
        """Where the graph is, and what is drawn."""
        return self._sources.device

    def sample(self, nodes: Any, generator: Generator | None = None) -> SampledNeighbors:
        """The part around `nodes` [n], which are different: a tensor, an array or a list."""
        nodes = tenon.asarray(nodes, device=self.device)
        with stream_of(generator, self.device, "NeighborSampler"):
            source, target, old_nodes, edges = tenon.sample_subgraph(
                self._sources, self._starts, nodes, self.sizes, self._weights
            )
        if self._order is not None:
            edges = tenon.index_select(self._order, edges, 0)
        return SampledNeighbors(old_nodes, tenon.stack([source, target]), nodes.shape[0], edges)

    def batches(
        self,
        nodes: Any,
        batch_size: int,
        shuffle: bool = False,
        generator: Generator | None = None,
    ) -> Iterator[SampledNeighbors]:
        """Parts around `batch_size` of the nodes at a time, in random order if `shuffle`."""
        nodes = tenon.asarray(nodes, device=self.device)
        if shuffle:
            with stream_of(generator, self.device, "NeighborSampler"):
                order = tenon.randperm(nodes.shape[0], device=self.device)
            nodes = tenon.index_select(nodes, order, 0)
        for start in range(0, nodes.shape[0], batch_size):
            yield self.sample(nodes[start : start + batch_size], generator)


class LayerSampler:
    """For all nodes of a layer together `sizes[0]` of the nodes that send to them, for these `sizes[1]`, and so on: layers grow by no
    more than that, however many layers there are (LADIES; Zou et al., 2019). A node is drawn with the probability of the sum of
    the squares of `1 / degree` over the edges to the layer. Draws from the device's stream, or from the `generator` of a call.

    The graph is edges [2, count] and `num_nodes`, or a matrix of layout 'csr', as for NeighborSampler.
    """

    def __init__(
        self, edge_index: Tensor, num_nodes: int | Sequence[int], sizes: Sequence[int] | None = None
    ) -> None:
        self._all = (
            NeighborSampler(edge_index, num_nodes, [-1])
            if sizes is not None
            else NeighborSampler(edge_index, [-1])
        )
        given = num_nodes if sizes is None else sizes
        if isinstance(given, int):
            raise TypeError(
                f"LayerSampler: expected a list of sizes, one for each layer, got {given}"
            )
        self.sizes = list(given)
        if any(size < 1 for size in self.sizes):
            raise ValueError(f"LayerSampler: expected sizes of at least 1, got {self.sizes}")

    def sample(self, nodes: Any, generator: Generator | None = None) -> list[SampledLayer]:
        """The layers around `nodes` [n], which are different, from them outwards: a tensor, an array or a list."""
        nodes = tenon.asarray(nodes, device=self._all.device)
        with stream_of(generator, nodes.device, "LayerSampler"):
            return self._layers(nodes)

    def _layers(self, nodes: Tensor) -> list[SampledLayer]:
        layers = []
        for size in self.sizes:
            around = self._all.sample(nodes)
            source, target = around.edge_index[0], around.edge_index[1]
            count, degree = around.nodes.shape[0], tenon.expert_counts(target, nodes.shape[0])
            share = 1.0 / tenon.clip(degree, 1, None).to(tenon.float32)
            share = tenon.index_select(share, target, 0)
            likely = tenon.segment_sum(share * share, source, count)
            reachable = int(tenon.count_nonzero(likely).item())
            if reachable == 0:
                chosen = tenon.zeros([0], dtype=tenon.int64, device=nodes.device)
            else:
                chosen = tenon.sort(tenon.multinomial(likely, min(size, reachable)))
            place = tenon.full([count], -1, dtype=tenon.int64, device=nodes.device)
            place = tenon.index_copy(
                place, 0, chosen, tenon.arange(chosen.shape[0], device=nodes.device)
            )
            kept = tenon.nonzero(tenon.index_select(place, source, 0) >= 0).reshape([-1])
            source, target = (
                tenon.index_select(source, kept, 0),
                tenon.index_select(target, kept, 0),
            )
            weight = tenon.index_select(share, kept, 0) / tenon.index_select(likely, source, 0)
            total = tenon.segment_sum(weight, target, nodes.shape[0])
            weight = weight / tenon.index_select(total, target, 0)
            nodes = tenon.index_select(around.nodes, chosen, 0)
            edges = tenon.stack([tenon.index_select(place, source, 0), target])
            layers.append(
                SampledLayer(nodes, edges, tenon.index_select(around.edges, kept, 0), weight)
            )
        return layers
