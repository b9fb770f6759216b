# SPDX-License-Identifier: Apache-2.0
"""paddle.geometric: messages along edges, segments, samples of neighbours and nodes numbered anew, and what
`paddle.incubate` has of them under older names. Buffers that Paddle takes for its hash tables change no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat._signature import table
from tenon.compat._signed import bound

_SIGNATURES = table("""
send_u_recv(x, src_index, dst_index, reduce_op='sum', out_size=None, name=None)
send_ue_recv(x, y, src_index, dst_index, message_op='add', reduce_op='sum', out_size=None, name=None)
send_uv(x, y, src_index, dst_index, message_op='add', name=None)
segment_max segment_mean segment_min segment_sum(data, segment_ids, name=None)
reindex_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None)
reindex_heter_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None)
sample_neighbors(row, colptr, input_nodes, sample_size=-1, eids=None, return_eids=False, perm_buffer=None, name=None)
weighted_sample_neighbors(row, colptr, edge_weight, input_nodes, sample_size=-1, eids=None, return_eids=False, name=None)
""")


def _rows(out_size: Any) -> int | None:
    """Of the result; 0 and less is the default, as many as `x` has."""
    size = 0 if out_size is None else int(out_size)
    return size if size > 0 else None


def send_u_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, reduce_op: str = "sum", out_size: Any = None
) -> Tensor:
    """tenon.send_u_recv()."""
    return tenon.send_u_recv(x, src_index, dst_index, reduce_op, _rows(out_size))


def send_ue_recv(
    x: Tensor,
    y: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    message_op: str = "add",
    reduce_op: str = "sum",
    out_size: Any = None,
) -> Tensor:
    """tenon.send_ue_recv()."""
    return tenon.send_ue_recv(x, y, src_index, dst_index, message_op, reduce_op, _rows(out_size))


def send_uv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add"
) -> Tensor:
    """tenon.send_uv()."""
    return tenon.send_uv(x, y, src_index, dst_index, message_op)


def segments(reduce: str) -> Callable[[Tensor, Tensor], Tensor]:
    """tenon.segment_sum() and its kin."""

    def segment(data: Tensor, segment_ids: Tensor) -> Tensor:
        return getattr(tenon, f"segment_{reduce}")(data, segment_ids)

    segment.__doc__ = f"tenon.segment_{reduce}() of rows, as many as the largest number says."
    return segment


def reindex_graph(x: Tensor, neighbors: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """tenon.reindex_graph()."""
    return tenon.reindex_graph(x, neighbors, count)


def reindex_heter_graph(
    x: Tensor, neighbors: Sequence[Tensor], count: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """reindex_graph() of edges of several types, one after another: nodes have one number in all of them."""
    if len(neighbors) != len(count) or not neighbors:
        raise ValueError(
            f"reindex_heter_graph(): expected neighbors and count of each type of edges, got "
            f"{len(neighbors)} and {len(count)}"
        )
    nodes = tenon.arange(x.shape[0], dtype=x.dtype, device=x.device)
    targets = tenon.concat([tenon.array_api.repeat(nodes, each) for each in count])
    together = tenon.concat(list(neighbors))
    # All neighbours are those of one node here, as their numbers do not depend on it.
    counts = tenon.zeros_like(x)
    if x.shape[0]:
        counts[0] = together.shape[0]
    source, _, old_nodes = tenon.reindex_graph(x, together, counts)
    return source, targets, old_nodes


def _sampled(
    name: str, found: tuple[Tensor, Tensor, Tensor], eids: Tensor | None, return_eids: bool
) -> tuple[Tensor, ...]:
    neighbors, counts, edges = found
    if not return_eids:
        return neighbors, counts
    if eids is None:
        raise ValueError(f"{name}(): expected eids, the numbers of edges, for return_eids=True")
    return neighbors, counts, tenon.index_select(eids, edges, 0)


def sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
) -> tuple[Tensor, ...]:
    """tenon.sample_neighbors(), with the numbers `eids` of the edges that were drawn if they are requested."""
    found = tenon.sample_neighbors(row, colptr, input_nodes, sample_size)
    return _sampled("sample_neighbors", found, eids, return_eids)


def weighted_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    edge_weight: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
) -> tuple[Tensor, ...]:
    """sample_neighbors() whose draws follow `edge_weight`."""
    found = tenon.sample_neighbors(row, colptr, input_nodes, sample_size, edge_weight)
    return _sampled("weighted_sample_neighbors", found, eids, return_eids)


_FREE: dict[str, Callable[..., Any]] = {
    **{f"segment_{reduce}": segments(reduce) for reduce in ("max", "mean", "min", "sum")},
    "send_u_recv": send_u_recv,
    "send_ue_recv": send_ue_recv,
    "send_uv": send_uv,
    "reindex_graph": reindex_graph,
    "reindex_heter_graph": reindex_heter_graph,
    "sample_neighbors": sample_neighbors,
    "weighted_sample_neighbors": weighted_sample_neighbors,
}
# Buffers are memory that Paddle's GPUs are given.
BUFFERS = frozenset({"name", "value_buffer", "index_buffer", "perm_buffer"})
for _name, _signature in _SIGNATURES.items():
    globals()[_name] = bound(
        f"tenon.compat.paddle.geometric.{_name}", _signature, _FREE[_name], ignored=BUFFERS
    )

__all__ = sorted(_SIGNATURES)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.geometric.{name}; docs/from_paddle.md says what is covered"
    )
