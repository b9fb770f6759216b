# SPDX-License-Identifier: Apache-2.0
"""Tables, and scores, of a vocabulary that is cut over ranks: each rank looks up, and compares, what lies in its part, and
neither the table nor the scores come together anywhere."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, autograd, nn

from .dtensor import DTensor, from_local, to_local
from .group import ProcessGroup
from .mesh import DeviceMesh
from .placements import Partial, Shard


class RowsOfVocabulary(nn.Module):
    """What RowwiseParallel makes of an Embedding's class."""

    weight: Tensor
    padding_idx: int | None

    def forward(self, index: Tensor) -> Tensor:
        return rows_of_vocabulary(index, self.weight, self.padding_idx)


def rows_of_vocabulary(index: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows `index`, the same on all ranks, of a table in [Shard(0)]. Every rank has those that lie in its part, and zeros
    for the others: the result is Partial("sum")."""
    mesh, begin = _own_part(weight, 0, "rows_of_vocabulary")
    ids = to_local(index) if isinstance(index, DTensor) else index
    table = to_local(weight)
    count = table.shape[0]
    if ids.numel():
        least, most = int(ids.min().item()), int(ids.max().item())
        if least < 0 or most >= weight.shape[0]:
            raise IndexError(
                f"embedding: expected indices from 0 to {weight.shape[0] - 1}, got {least if least < 0 else most}"
            )
    if count == 0:  # of a vocabulary smaller than the mesh
        table = tenon.concat([table, tenon.zeros([1, weight.shape[1]], dtype=weight.dtype)])
    place = ids - begin
    is_here = (place >= 0) & (place < count)
    padding = None
    if padding_idx is not None and 0 <= padding_idx - begin < count:
        padding = padding_idx - begin
    rows = nn.functional.embedding(
        tenon.where(is_here, place, tenon.zeros_like(place)), table, padding_idx=padding
    )
    rows = tenon.where(is_here.unsqueeze(-1), rows, tenon.zeros_like(rows))
    return from_local(rows, mesh, [Partial()], shape=(*ids.shape, weight.shape[1]))


def vocab_parallel_cross_entropy(
    logits: Tensor, target: Tensor, *, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """nn.functional.cross_entropy of scores [..., classes] whose last axis is cut over a mesh of one axis, and of targets
    [...] that are the same on all ranks. A plain tensor of the scores' dtype, the same on all of them, whose sums are made in
    float32 at least; of each score three numbers a row travel.
    The gradient of the scores is cut as they are."""
    if not isinstance(logits, DTensor):
        raise TypeError(
            f"vocab_parallel_cross_entropy: expected logits of layout sharded, got {logits.layout}"
        )
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction: expected 'mean', 'sum' or 'none', got {reduction!r}")
    mesh, begin = _own_part(logits, logits.ndim - 1, "vocab_parallel_cross_entropy")
    if tuple(target.shape) != tuple(logits.shape[:-1]):
        raise ValueError(
            f"vocab_parallel_cross_entropy: expected targets of shape {tuple(logits.shape[:-1])}, got {tuple(target.shape)}"
        )
    counts = target != ignore_index
    with tenon.no_grad():
        inside = (target >= 0) & (target < logits.shape[-1])
        if not (inside | ~counts).all().item():
            raise IndexError(
                f"vocab_parallel_cross_entropy: expected targets from 0 to {logits.shape[-1] - 1}, or ignore_index "
                f"{ignore_index}, got others"
            )
    losses = _CrossEntropy.apply(to_local(logits), target, counts, mesh.get_group(0), begin)
    # Rounded at last: a sum, or a count, of 16 bits ends early.
    if reduction != "none":
        total = losses.sum()
        losses = total / counts.to(losses.dtype).sum() if reduction == "mean" else total
    return losses.to(logits.dtype)


class _CrossEntropy(autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, counts: Tensor, group: ProcessGroup, begin: int
    ) -> Tensor:
        wide = scores.detach().to(tenon.float32) if scores.dtype.itemsize < 4 else scores.detach()
        count = wide.shape[-1]
        place = (target - begin).unsqueeze(-1)
        is_here = (place >= 0) & (place < count) & counts.unsqueeze(-1)
        place = tenon.where(is_here, place, tenon.zeros_like(place))
        lowest = tenon.full([*wide.shape[:-1], 1], float("-inf"), dtype=wide.dtype)
        most = tenon.concat([wide, lowest], -1).amax(-1, keepdim=True)
        most = group.all_reduce(most.contiguous(), "max")
        exponentials = tenon.exp(wide - most)
        if count:
            picked = tenon.take_along_axis(wide, place, -1)
            picked = tenon.where(is_here, picked, tenon.zeros_like(picked))
        else:
            picked = tenon.zeros_like(most)
        sums = tenon.concat([exponentials.sum(-1, keepdim=True), picked], -1)
        sums = group.all_reduce(sums.contiguous())
        ctx.kept = exponentials, sums[..., :1], place, is_here, counts, scores.dtype
        losses = tenon.log(sums[..., 0]) + most[..., 0] - sums[..., 1]
        return tenon.where(counts, losses, tenon.zeros_like(losses))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        exponentials, total, place, is_here, counts, dtype = ctx.kept
        own = exponentials / total
        if own.shape[-1]:
            columns = tenon.arange(own.shape[-1])
            own = own - ((columns == place) & is_here).to(own.dtype)
        # A weight of 0 does not remove what is not finite.
        scaled = own * grad.to(own.dtype).unsqueeze(-1)
        own = tenon.where(counts.unsqueeze(-1), scaled, tenon.zeros_like(scaled))
        return own.to(dtype), None, None, None, None


def _own_part(tensor: Tensor, dim: int, what: str) -> tuple[DeviceMesh, int]:
    """The mesh, and where this rank's part begins."""
    mesh = tensor.device_mesh
    if tensor.placements != (Shard(dim),):
        raise NotImplementedError(
            f"{what}: expected a tensor of shape {tuple(tensor.shape)} in [Shard({dim})] on a mesh of one axis, got one in "
            f"{list(tensor.placements)}; use redistribute()"
        )
    return mesh, tensor.shape[dim] * mesh.get_coordinate()[0] // mesh.shape[0]
