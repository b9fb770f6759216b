# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate: segments, messages and samples of graphs, softmax with masks, LookAhead, and what programs use of its `nn` and
`autograd`. What is not here is an AttributeError."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat._signature import table
from tenon.compat._signed import bound
from tenon.compat.paddle import geometric
from tenon.nn.functional import softmax_upper_hidden, softmax_with_mask

_SUBMODULES = ("autograd", "layers", "nn")

_SIGNATURES = table("""
graph_khop_sampler(row, colptr, input_nodes, sample_sizes, sorted_eids=None, return_eids=False, name=None)
graph_reindex(x, neighbors, count, value_buffer=None, index_buffer=None, flag_buffer_hashtable=False, name=None)
graph_sample_neighbors(row, colptr, input_nodes, eids=None, perm_buffer=None, sample_size=-1, return_eids=False, flag_perm_buffer=False, name=None)
graph_send_recv(x, src_index, dst_index, pool_type='sum', out_size=None, name=None)
identity_loss(x, reduction='none')
segment_max segment_mean segment_min segment_sum(data, segment_ids, name=None)
softmax_mask_fuse(x, mask, name=None)
softmax_mask_fuse_upper_triangle(x)
""")


def softmax_mask_fuse(x: Tensor, mask: Tensor) -> Tensor:
    """The softmax of x + mask along the last axis."""
    return softmax_with_mask(x, mask)


def softmax_mask_fuse_upper_triangle(x: Tensor) -> Tensor:
    """The softmax along the last axis without what is above the diagonal."""
    return softmax_upper_hidden(x)


def graph_send_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, pool_type: str = "sum", out_size: Any = None
) -> Tensor:
    """Rows of x at `src_index`, reduced by `dst_index`. `out_size` rows, by default as many as x has; 0 and less is the
    default, too."""
    if pool_type not in ("sum", "mean", "max", "min"):
        raise ValueError(
            f"graph_send_recv(): expected pool_type 'sum', 'mean', 'max' or 'min', got {pool_type!r}"
        )
    size = int(out_size) if out_size is not None else 0
    rows = tenon.index_select(x, src_index, 0)
    segment = getattr(tenon, f"segment_{pool_type}")
    return segment(rows, dst_index, size if size > 0 else x.shape[0])


def graph_khop_sampler(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_sizes: Any,
    sorted_eids: Tensor | None = None,
    return_eids: bool = False,
) -> tuple[Tensor, ...]:
    """tenon.sample_subgraph(): edges by their new numbers, the nodes of these, the new numbers of `input_nodes`, and if they
    are requested the numbers of edges that `sorted_eids` has."""
    source, target, nodes, edges = tenon.sample_subgraph(
        row, colptr, input_nodes, [int(size) for size in sample_sizes]
    )
    numbers = tenon.arange(input_nodes.shape[0], dtype=nodes.dtype, device=nodes.device)
    if not return_eids:
        return source, target, nodes, numbers
    if sorted_eids is None:
        raise ValueError(
            "graph_khop_sampler(): expected sorted_eids, the numbers of edges, for return_eids=True"
        )
    return source, target, nodes, numbers, tenon.index_select(sorted_eids, edges, 0)


def graph_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    eids: Tensor | None = None,
    sample_size: int = -1,
    return_eids: bool = False,
) -> tuple[Tensor, ...]:
    """geometric.sample_neighbors()."""
    return geometric.sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)


def graph_reindex(x: Tensor, neighbors: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """tenon.reindex_graph()."""
    return tenon.reindex_graph(x, neighbors, count)


def identity_loss(x: Tensor, reduction: Any = "none") -> Tensor:
    """`x`, its sum or its mean: "none" or 2, "sum" or 0, "mean" or 1."""
    kind = {0: "sum", 1: "mean", 2: "none"}.get(reduction, reduction)
    if kind not in ("sum", "mean", "none"):
        raise ValueError(
            f"identity_loss(): expected reduction 'sum', 'mean' or 'none', got {reduction!r}"
        )
    return x if kind == "none" else x.sum() if kind == "sum" else x.mean()


class LookAhead(tenon.optim.LookAhead):
    """Weights that follow those of `inner_optimizer`, by `alpha` of the way each `k` steps."""

    def __init__(
        self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None
    ) -> None:
        super().__init__(inner_optimizer, alpha=alpha, k=k)


_FREE: dict[str, Callable[..., Any]] = {
    **{f"segment_{reduce}": geometric.segments(reduce) for reduce in ("max", "mean", "min", "sum")},
    "graph_khop_sampler": graph_khop_sampler,
    "graph_reindex": graph_reindex,
    "graph_sample_neighbors": graph_sample_neighbors,
    "graph_send_recv": graph_send_recv,
    "identity_loss": identity_loss,
    "softmax_mask_fuse": softmax_mask_fuse,
    "softmax_mask_fuse_upper_triangle": softmax_mask_fuse_upper_triangle,
}
for _name, _signature in _SIGNATURES.items():
    globals()[_name] = bound(
        f"tenon.compat.paddle.incubate.{_name}",
        _signature,
        _FREE[_name],
        ignored=geometric.BUFFERS | {"flag_buffer_hashtable", "flag_perm_buffer"},
    )

__all__ = sorted([*_SIGNATURES, "LookAhead", *_SUBMODULES])


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.incubate.{name}; docs/from_paddle.md says what is covered"
    )


def __dir__() -> list[str]:
    return __all__
