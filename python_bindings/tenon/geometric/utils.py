# SPDX-License-Identifier: Apache-2.0
"""Functions of edges [2, count]."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

from .segment import segment_sum


def num_nodes_of(edge_index: Tensor, num_nodes: int | None) -> int:
    """The number that is given, or one more than the largest index."""
    if num_nodes is not None:
        return num_nodes
    return int(edge_index.max().item()) + 1 if edge_index.numel() else 0


def degree(index: Tensor, num_nodes: int, dtype: tenon.dtype = tenon.float32) -> Tensor:
    """How often each node is in `index`, [num_nodes]."""
    return segment_sum(tenon.ones_like(index, dtype=dtype), index, num_nodes)


def add_self_loops(
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    fill_value: float = 1.0,
    num_nodes: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """An edge from every node to itself, of weight `fill_value`, behind the others."""
    n = num_nodes_of(edge_index, num_nodes)
    loop = tenon.arange(n, dtype=edge_index.dtype, device=edge_index.device)
    if edge_weight is not None:
        weights = tenon.full([n, *edge_weight.shape[1:]], fill_value, dtype=edge_weight.dtype)
        edge_weight = tenon.concat([edge_weight, weights.to(edge_weight.device)])
    return tenon.concat([edge_index, tenon.stack([loop, loop])], 1), edge_weight


def remove_self_loops(
    edge_index: Tensor, edge_weight: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """The edges between different nodes."""
    keep = tenon.nonzero(edge_index[0] != edge_index[1]).reshape([-1])
    if edge_weight is not None:
        edge_weight = tenon.index_select(edge_weight, keep, 0)
    return tenon.index_select(edge_index, keep, 1), edge_weight


def with_self_loops(indptr: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """`indptr` and int64 `indices` of a square CSR matrix with one element of its diagonal in each row, the last one."""
    n = indptr.shape[0] - 1
    rows = tenon.csr_rows(indptr, indices.shape[0])
    keep = tenon.nonzero(indices != rows).reshape([-1])
    rows, indices = tenon.index_select(rows, keep, 0), tenon.index_select(indices, keep, 0)
    loop = tenon.arange(n + 1, dtype=tenon.int64, device=indices.device)
    begin = tenon.searchsorted(rows, loop) + loop
    found = tenon.empty([indices.shape[0] + n], dtype=tenon.int64, device=indices.device)
    # Before an element lie the elements of the diagonal of the rows before its own.
    found[tenon.arange(indices.shape[0], dtype=tenon.int64, device=indices.device) + rows] = indices
    found[begin[1:] - 1] = loop[:n]
    return begin, found


def coalesce(edge_index: Tensor, num_nodes: int | None = None) -> Tensor:
    """Every edge once, by source and then by target."""
    n = num_nodes_of(edge_index, num_nodes)
    keys = tenon.unique_values(edge_index[0] * n + edge_index[1])
    return tenon.stack([keys // n, keys % n]) if n else edge_index


def to_undirected(edge_index: Tensor, num_nodes: int | None = None) -> Tensor:
    """Every edge in both directions, each once."""
    return coalesce(tenon.concat([edge_index, tenon.flip(edge_index, [0])], 1), num_nodes)


def batch_graphs(graphs: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Graphs (x, edge_index) as one graph of separate parts: features, edges, and the number of the
    graph that each node is of."""
    features, edges, batch = [], [], []
    start = 0
    for number, (x, edge_index) in enumerate(graphs):
        features.append(x)
        edges.append(edge_index + start)
        batch.append(tenon.full([x.shape[0]], number, dtype=tenon.int64, device=x.device))
        start += x.shape[0]
    return tenon.concat(features), tenon.concat(edges, 1), tenon.concat(batch)
