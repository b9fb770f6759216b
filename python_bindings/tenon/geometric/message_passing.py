# SPDX-License-Identifier: Apache-2.0
"""MessagePassing: what layers on graphs have in common (Gilmer et al., 2017)."""

from __future__ import annotations

import inspect
from typing import Any

import tenon
from tenon import Tensor, nn

from .segment import aggregate


class MessagePassing(nn.Module):
    """Every edge carries a message from its source to its target, which reduces what it gets by
    `aggr`: 'sum', 'mean' or 'max'. `flow='target_to_source'` exchanges both ends.

    Subclasses define message(), whose parameters are arguments of propagate(): those that end in
    `_j` are rows at the sources of edges, those in `_i` rows at their targets, others are passed as
    they are.
    """

    def __init__(self, aggr: str = "sum", flow: str = "source_to_target") -> None:
        if flow not in ("source_to_target", "target_to_source"):
            raise ValueError(
                "MessagePassing: expected flow 'source_to_target' or 'target_to_source', got "
                f"{flow!r}"
            )
        self.aggr, self.flow = aggr, flow

    def propagate(
        self, edge_index: Tensor, size: tuple[int, int] | None = None, **arguments: Any
    ) -> Tensor:
        """Messages, their reduction at the targets, and update(): [targets, ...].

        A pair of tensors as argument holds rows of sources and of targets; `size` counts both where
        no argument does. Edges may be a matrix of layout 'csr', [targets, sources]; sums and means of
        plain messages then are its product with the features.
        """
        check_edges(edge_index, type(self).__name__)
        if is_csr(edge_index):
            rows = arguments.get("x")
            if self._is_product(rows):
                return self.update(self._product(edge_index, rows))
            edge_index = edges_of(edge_index)
        source, target = edge_index[0], edge_index[1]
        if self.flow == "target_to_source":
            source, target = target, source
        wanted = [name for name in inspect.signature(self.message).parameters]
        collected: dict[str, Any] = {}
        for name in wanted:
            if name.endswith(("_i", "_j")):
                value = arguments[name[:-2]]
                rows = value[name.endswith("_i")] if isinstance(value, tuple) else value
                at = target if name.endswith("_i") else source
                collected[name] = None if rows is None else tenon.index_select(rows, at, 0)
            elif name == "index":
                collected[name] = target
            elif name == "num_nodes":
                collected[name] = self._targets(size, arguments)
            else:
                collected[name] = arguments[name]
        messages = self.message(**collected)
        return self.update(self.aggregate(messages, target, self._targets(size, arguments)))

    def _is_product(self, x: Any) -> bool:
        """Whether messages and their reduction are a matrix times features `x`."""
        kind = type(self)
        features = x[0] if isinstance(x, tuple) else x
        return (
            kind.message is MessagePassing.message
            and kind.aggregate is MessagePassing.aggregate
            and self.aggr in ("sum", "add", "mean")
            and self.flow == "source_to_target"
            and isinstance(features, Tensor)
            and features.ndim == 2
            and features.dtype.is_floating_point
        )

    def _product(self, graph: Tensor, x: Any) -> Tensor:
        features = x[0] if isinstance(x, tuple) else x
        indptr, indices = graph.indptr(), graph.indices()
        ones = tenon.ones([indices.shape[0]], dtype=features.dtype, device=features.device)
        total = tenon.csr_matmul(indptr, indices, ones, features)
        if self.aggr != "mean":
            return total
        count = (indptr[1:] - indptr[:-1]).to(features.dtype)
        return total / tenon.clip(count, 1.0, None).unsqueeze(1)

    @staticmethod
    def _targets(size: tuple[int, int] | None, arguments: dict[str, Any]) -> int:
        if size is not None:
            return size[1]
        for value in arguments.values():
            rows = value[1] if isinstance(value, tuple) else value
            if isinstance(rows, Tensor):
                return rows.shape[0]
        raise ValueError("propagate: expected an argument with rows for nodes, or size=(n, n)")

    def message(self, x_j: Tensor) -> Tensor:
        """The messages of all edges, [edges, ...]."""
        return x_j

    def aggregate(self, messages: Tensor, index: Tensor, num_nodes: int) -> Tensor:
        """The messages reduced at their targets `index`."""
        return aggregate(messages, index, num_nodes, self.aggr)

    def update(self, aggregated: Tensor) -> Tensor:
        """What a target makes of its reduced messages."""
        return aggregated


def is_csr(edges: Tensor) -> bool:
    """Whether edges are a matrix of layout 'csr', with a row for each target."""
    return edges.layout == "csr"


def edges_of(graph: Tensor) -> Tensor:
    """The edges [2, count] of a matrix of layout 'csr', in its order."""
    indices = graph.indices().to(tenon.int64)
    return tenon.stack([indices, tenon.csr_rows(graph.indptr(), indices.shape[0])])


def check_edges(edge_index: Tensor, caller: str) -> None:
    """Raise ValueError unless `edge_index` is [2, count] and whole, or of layout 'csr'."""
    if is_csr(edge_index):
        return
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or not edge_index.dtype.is_integer:
        raise ValueError(
            f"{caller}: expected edges [2, count] of a whole dtype, got {edge_index.dtype} of shape "
            f"{tuple(edge_index.shape)}"
        )
