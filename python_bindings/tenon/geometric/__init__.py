# SPDX-License-Identifier: Apache-2.0
"""Networks on graphs. Names and settings are those of PyTorch Geometric.

A graph of n nodes has features [n, features] and edges `edge_index` [2, count], int64: row 0 holds
the sources and row 1 the targets.
"""

from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors

from .conv import GATConv, GCNConv, GINConv, SAGEConv
from .draws import negative_sampling, random_walk
from .message_passing import MessagePassing
from .pool import global_add_pool, global_max_pool, global_mean_pool
from .sampling import LayerSampler, NeighborSampler, SampledLayer, SampledNeighbors
from .segment import aggregate, segment_max, segment_mean, segment_min, segment_softmax, segment_sum
from .utils import add_self_loops, batch_graphs, coalesce, degree, remove_self_loops, to_undirected

__all__ = [
    "GATConv",
    "GCNConv",
    "GINConv",
    "LayerSampler",
    "MessagePassing",
    "NeighborSampler",
    "SAGEConv",
    "SampledLayer",
    "SampledNeighbors",
    "add_self_loops",
    "aggregate",
    "batch_graphs",
    "coalesce",
    "degree",
    "global_add_pool",
    "global_max_pool",
    "global_mean_pool",
    "negative_sampling",
    "random_walk",
    "remove_self_loops",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_softmax",
    "segment_sum",
    "to_undirected",
]


_expect_tensors(globals())
