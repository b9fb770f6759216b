# SPDX-License-Identifier: Apache-2.0
"""Convolutions on graphs."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import Buffer, Parameter, init
from tenon.nn import functional as F

from .message_passing import MessagePassing, edges_of, is_csr
from .segment import segment_softmax, segment_sum
from .utils import add_self_loops, remove_self_loops, with_self_loops


class GCNConv(MessagePassing):
    """Sums over neighbours, divided by the roots of both degrees (Kipf and Welling, 2017).

    Every node is its own neighbour if `add_self_loops`. `cached` keeps the normalised edges of the
    first call for all others, where the graph never changes. A graph of layout 'csr' is multiplied
    with the features; its values are the weights of edges.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        cached: bool = False,
        add_self_loops: bool = True,
        normalize: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__("sum")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.cached, self.add_self_loops, self.normalize = cached, add_self_loops, normalize
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = Parameter(tenon.zeros([out_channels])) if bias else None
        self._edges: tuple[Tensor, Tensor | None] | None = None
        init.xavier_uniform_(self.lin.weight)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Features [n, out_channels] of `x` [n, in_channels]."""
        if is_csr(edge_index):
            out = self._product(edge_index, edge_weight, self.lin(x))
            return out if self.bias is None else out + self.bias
        edges = self._edges
        if edges is None:
            edges = self._normalized(edge_index, edge_weight, x)
            if self.cached:
                self._edges = edges
        out = self.propagate(edges[0], x=self.lin(x), edge_weight=edges[1])
        return out if self.bias is None else out + self.bias

    def _product(self, graph: Tensor, weight: Tensor | None, x: Tensor) -> Tensor:  # type: ignore[override]
        if weight is not None:
            raise ValueError(
                "GCNConv: expected no edge_weight beside a graph of layout 'csr', whose values are the weights"
            )
        indptr, indices, values = graph.indptr(), graph.indices(), graph.values().to(x.dtype)
        if not self.normalize:
            return tenon.csr_matmul(indptr, indices, values, x)
        if self.add_self_loops:
            rows = tenon.csr_rows(indptr, indices.shape[0])
            values = tenon.where(rows == indices, 0.0, values)
        ones = tenon.ones([graph.shape[1], 1], dtype=x.dtype, device=x.device)
        total = tenon.csr_matmul(indptr, indices, values, ones)
        if self.add_self_loops:
            total = total + 1.0
        root = tenon.where(total > 0, tenon.rsqrt(tenon.clip(total, 1e-30, None)), 0.0)
        own = x * root
        sums = tenon.csr_matmul(indptr, indices, values, own)
        return root * (sums + own if self.add_self_loops else sums)

    def _normalized(
        self, edge_index: Tensor, weight: Tensor | None, x: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        if not self.normalize:
            return edge_index, weight
        n = x.shape[0]
        if weight is None:
            weight = tenon.ones([edge_index.shape[1]], dtype=x.dtype, device=x.device)
        if self.add_self_loops:
            edge_index, weight = remove_self_loops(edge_index, weight)
            edge_index, weight = add_self_loops(edge_index, weight, 1.0, n)
        assert weight is not None
        total = segment_sum(weight, edge_index[1], n)
        root = tenon.where(total > 0, tenon.rsqrt(tenon.clip(total, 1e-30, None)), 0.0)
        source = tenon.index_select(root, edge_index[0], 0)
        return edge_index, source * weight * tenon.index_select(root, edge_index[1], 0)

    def message(self, x_j: Tensor, edge_weight: Tensor | None) -> Tensor:  # type: ignore[override]
        return x_j if edge_weight is None else x_j * edge_weight.unsqueeze(-1)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class SAGEConv(MessagePassing):
    """A linear map of what neighbours send, reduced by `aggr`, and one of the node itself unless
    `root_weight` is false (Hamilton et al., 2017). `normalize` gives results length 1."""

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        aggr: str = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(aggr)
        sources, targets = (
            (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        )
        self.normalize = normalize
        self.lin_l = nn.Linear(sources, out_channels, bias=bias)
        self.lin_r = nn.Linear(targets, out_channels, bias=False) if root_weight else None

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edge_index: Tensor) -> Tensor:
        """Features [n, out_channels] of `x` [n, in_channels], or of a pair: of sources and of
        targets."""
        pair = x if isinstance(x, tuple) else (x, x)
        out = self.lin_l(self.propagate(edge_index, x=pair))
        if self.lin_r is not None:
            out = out + self.lin_r(pair[1])
        return F.normalize(out, 2.0, -1) if self.normalize else out


class GATConv(MessagePassing):
    """Sums over neighbours with weights from attention in `heads` slices (Veličković et al., 2018).

    Results of heads are one behind the other, or averaged unless `concat`. `dropout` leaves out
    weights in training. Every node is its own neighbour if `add_self_loops`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__("sum")
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.negative_slope, self.dropout = negative_slope, dropout
        self.add_self_loops = add_self_loops
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = Parameter(tenon.empty([1, heads, out_channels]))
        self.att_dst = Parameter(tenon.empty([1, heads, out_channels]))
        width = heads * out_channels if concat else out_channels
        self.bias = Parameter(tenon.zeros([width])) if bias else None
        init.xavier_uniform_(self.lin.weight)
        for attention in (self.att_src, self.att_dst):
            bound = (6.0 / (heads + out_channels)) ** 0.5
            init.uniform_(attention, -bound, bound)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Features [n, heads * out_channels], or [n, out_channels] without `concat`."""
        n = x.shape[0]
        features = self.lin(x).reshape([n, self.heads, self.out_channels])
        scores = (
            (features * self.att_src).sum(axis=-1),
            (features * self.att_dst).sum(axis=-1),
        )
        kind = type(self)
        if (
            is_csr(edge_index)
            and kind.message is GATConv.message
            and kind.aggregate is MessagePassing.aggregate
        ):
            out = self.update(self._product(edge_index, features, scores))
        else:
            if is_csr(edge_index):
                edge_index = edges_of(edge_index)
            if self.add_self_loops:
                edge_index, _ = remove_self_loops(edge_index)
                edge_index, _ = add_self_loops(edge_index, num_nodes=n)
            out = self.propagate(edge_index, (n, n), x=features, alpha=scores)
        out = out.reshape([n, -1]) if self.concat else tenon.mean(out, 1)
        return out if self.bias is None else out + self.bias

    def _product(self, graph: Tensor, x: Tensor, alpha: tuple[Tensor, Tensor]) -> Tensor:  # type: ignore[override]
        """The weights of each head are a matrix, whose product with the features makes no messages."""
        n = x.shape[0]
        if tuple(graph.shape) != (n, n):
            raise ValueError(
                f"GATConv: expected a graph of shape {(n, n)} for features of {n} nodes, got shape "
                f"{tuple(graph.shape)}"
            )
        indptr, indices = graph.indptr(), graph.indices().to(tenon.int64)
        if self.add_self_loops:
            indptr, indices = with_self_loops(indptr, indices)
        rows = tenon.csr_rows(indptr, indices.shape[0])
        score = tenon.index_select(alpha[0], indices, 0) + tenon.index_select(alpha[1], rows, 0)
        weight = tenon.csr_softmax(indptr, F.leaky_relu(score, self.negative_slope))
        weight = F.dropout(weight, self.dropout, self.training)
        heads = [
            tenon.csr_matmul(indptr, indices, weight[:, head], x[:, head])
            for head in range(self.heads)
        ]
        return tenon.stack(heads, 1)

    def message(  # type: ignore[override]
        self, x_j: Tensor, alpha_j: Tensor, alpha_i: Tensor, index: Tensor, num_nodes: int
    ) -> Tensor:
        score = F.leaky_relu(alpha_j + alpha_i, self.negative_slope)
        weight = segment_softmax(score, index, num_nodes)
        weight = F.dropout(weight, self.dropout, self.training)
        return x_j * weight.unsqueeze(-1)


class GINConv(MessagePassing):
    """`nn((1 + eps) x + sum of neighbours)` (Xu et al., 2019); `eps` is trained with
    `train_eps`."""

    def __init__(self, nn: Any, eps: float = 0.0, train_eps: bool = False) -> None:
        super().__init__("sum")
        self.nn = nn
        value = tenon.full([1], eps)
        self.eps: Tensor = Parameter(value) if train_eps else Buffer(value)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Features of `x` [n, channels], whatever `nn` makes of such rows."""
        return self.nn((1 + self.eps) * x + self.propagate(edge_index, x=x))
