# SPDX-License-Identifier: Apache-2.0
"""Random walks along edges, and pairs of nodes without an edge."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.generators import Generator, stream_of

from .message_passing import check_edges, edges_of, is_csr
from .utils import num_nodes_of


def _edges(edge_index: Any, caller: str) -> Tensor:
    edge_index = tenon.asarray(edge_index)
    check_edges(edge_index, caller)
    return edges_of(edge_index) if is_csr(edge_index) else edge_index.to(tenon.int64)


def random_walk(
    edge_index: Any,
    start: Any,
    walk_length: int,
    num_nodes: int | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Walks [n, walk_length + 1] from the nodes `start` [n]: each step takes one of the edges that leave a node, all of
    them alike, and stays where none does. Edges are [2, count], or a matrix of layout 'csr'."""
    if walk_length < 0:
        raise ValueError(f"random_walk: expected a walk_length of at least 0, got {walk_length}")
    edges = _edges(edge_index, "random_walk")
    node = tenon.asarray(start, device=edges.device).to(tenon.int64).reshape([-1])
    n = num_nodes_of(edges, num_nodes)
    if node.shape[0] and not 0 <= int(node.min().item()) <= int(node.max().item()) < n:
        raise IndexError(
            f"random_walk: expected nodes from 0 to {n - 1} to start at, got {node.tolist()}"
        )
    sources, order = tenon.sort_with_indices(edges[0], 0)
    targets = tenon.index_select(edges[1], order, 0)
    begins = tenon.searchsorted(sources, tenon.arange(n + 1, device=edges.device))
    walk = [node]
    for _ in range(walk_length if targets.shape[0] else 0):
        begin = tenon.index_select(begins, node, 0)
        count = tenon.index_select(begins, node + 1, 0) - begin
        with stream_of(generator, edges.device, "random_walk"):
            # Of 53 bits, as numbers of float32 would leave out edges of a node with very many.
            drawn = tenon.uniform(node.shape, dtype=tenon.float64, device=edges.device)
        place = tenon.minimum((drawn * count.to(tenon.float64)).to(tenon.int64), count - 1)
        edge = tenon.clip(begin + place, 0, targets.shape[0] - 1)
        node = tenon.where(count > 0, tenon.index_select(targets, edge, 0), node)
        walk.append(node)
    walk += [node] * (walk_length + 1 - len(walk))
    return tenon.stack(walk, 1)


def negative_sampling(
    edge_index: Any,
    num_nodes: int | None = None,
    num_neg_samples: int | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Edges [2, count] that are not there, between different nodes, each at most once: `num_neg_samples` of them, as many
    as there are edges if it is not given, and all where there are fewer."""
    edges = _edges(edge_index, "negative_sampling")
    n = num_nodes_of(edges, num_nodes)
    wanted = edges.shape[1] if num_neg_samples is None else num_neg_samples
    if wanted < 0:
        raise ValueError(f"negative_sampling: expected num_neg_samples of at least 0, got {wanted}")
    loops = tenon.arange(n, device=edges.device) * (n + 1)
    taken = tenon.unique_values(tenon.concat([edges[0] * n + edges[1], loops]))
    free = n * n - taken.shape[0]
    wanted = min(wanted, free)
    with stream_of(generator, edges.device, "negative_sampling"):
        number = _different(wanted, free, edges.device)
    # Before the taken pair i lie taken[i] - i free ones.
    before = taken - tenon.arange(taken.shape[0], device=edges.device)
    pair = number + tenon.searchsorted(before, number, True)
    return tenon.stack([pair // max(n, 1), pair % max(n, 1)])


def _different(count: int, below: int, device: tenon.device) -> Tensor:
    """Different numbers of those from 0 on, in random order."""
    if 4 * count >= below:
        return tenon.randperm(below, device=device)[:count].to(tenon.int64)
    found = tenon.zeros([0], dtype=tenon.int64, device=device)
    while found.shape[0] < count:  # at most a quarter of them is known, so that few rounds do
        more = tenon.randint(0, below, [2 * (count - found.shape[0])], device=device)
        found = tenon.unique_values(tenon.concat([found, more.to(tenon.int64)]))
    order = tenon.randperm(found.shape[0], device=device)[:count]
    return tenon.index_select(found, order, 0)
