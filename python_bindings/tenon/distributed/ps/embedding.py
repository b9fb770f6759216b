# SPDX-License-Identifier: Apache-2.0
"""The module through which a model reads a table."""

from __future__ import annotations

import functools

import tenon
from tenon import Tensor, _core, nn

from .table import TALKS, Table


class DistributedEmbedding(nn.Module):
    """`nn.Embedding` over a table of the job's servers: `[*ids.shape, dim]` for ids of any shape, on their device.

    The rows of a batch are pulled, each once; they are leaves of the graph, and at the end of a backward pass their
    gradients are pushed, one push for each pass. In evaluation mode, and where gradients are not recorded, nothing is
    pushed. `prefetch(ids)` before the backward pass begins to pull the next batch.
    """

    def __init__(self, dim: int, table: Table) -> None:
        if dim != table.dim:
            raise ValueError(
                f"DistributedEmbedding: expected a table of dim {dim}, got {table.dim}"
            )
        self.dim, self.table = dim, table

    def forward(self, ids: Tensor, clicks: Tensor | None = None) -> Tensor:
        """`clicks`, which broadcasts to ids, says which of them were clicked."""
        _core.record_effect("DistributedEmbedding()", TALKS)
        flat, inverse, counts = _unique(ids)
        rows = self.table.pull(flat).to(ids.device)
        if self.training and tenon.is_grad_enabled():
            rows = rows.requires_grad_()
            uses = self._uses(ids, inverse, counts, clicks)
            rows.register_post_accumulate_grad_hook(
                lambda leaf: self.table.gradients.collect(leaf, flat, *uses)
            )
        out = nn.functional.embedding(inverse.reshape(ids.shape).to(ids.device), rows)
        if out.requires_grad:
            # A leaf that is gone gets no gradient: the graph keeps this one.
            out.register_hook(functools.partial(_keep, rows))
        return out

    def prefetch(self, ids: Tensor) -> None:
        """Begin to pull what forward(ids) will read in the next step."""
        self.table.prefetch(_unique(ids)[0])

    def _uses(
        self, ids: Tensor, inverse: Tensor, counts: Tensor, clicks: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None]:
        if not self.table.settings.counts_uses and clicks is None:
            return None, None
        if clicks is None:
            return counts.to(tenon.float32), None
        with tenon.no_grad():
            each = tenon.broadcast_to(
                clicks.detach().to("cpu").to(tenon.float32), list(ids.shape)
            ).reshape([-1])
            zeros = tenon.zeros([counts.numel()])
            return counts.to(tenon.float32), tenon.index_add(zeros, inverse.reshape([-1]), each, 0)

    def extra_repr(self) -> str:
        return f"{self.dim}, table={self.table.name!r}"


def _keep(_leaf: Tensor, _grad: Tensor) -> None:
    """As a hook: does nothing."""


def _unique(ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    flat = ids.detach().to("cpu").reshape([-1]).to(tenon.int64)
    found, inverse, counts = tenon.unique(flat, return_inverse=True, return_counts=True)
    return found, inverse, counts
