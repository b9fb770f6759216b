# SPDX-License-Identifier: Apache-2.0
"""Means over ranks of gradients that consist of rows: ranks have different rows, and different numbers of them."""

from __future__ import annotations

import tenon
from tenon import Tensor, _core

from .group import ProcessGroup

_DENSE = -1


def gathered_rows(
    params: list[tuple[int, Tensor]], group: ProcessGroup
) -> list[tuple[int, Tensor]]:
    """The mean gradient of each of these parameters: rows, unless a rank has a dense one, which makes it dense. Equal rows
    are added up by each rank first and then in the order of ranks, and divided once, as dense gradients are."""
    if not params:
        return []
    own = [_own_rows(param) for _, param in params]
    counts = tenon.tensor(
        [_DENSE if grad is None else grad.nnz for grad in own], dtype=tenon.int64, device="cpu"
    )
    told = group.all_gather(counts).reshape([group.size, len(params)]).tolist()
    result = []
    for place, (index, param) in enumerate(params):
        numbers = [row[place] for row in told]
        if _DENSE in numbers:
            result.append((index, _dense_mean(param, group)))
        else:
            result.append((index, _mean_of_rows(own[place], numbers, param, group)))
    return result


def _own_rows(param: Tensor) -> Tensor | None:
    """This rank's rows, each once; None of a dense gradient."""
    grad = param.grad
    if grad is None:
        index = tenon.zeros([1, 0], dtype=tenon.int64, device=param.device)
        values = tenon.zeros([0, *param.shape[1:]], dtype=param.dtype, device=param.device)
        return _core.compose("coo", list(param.shape), [index, values])
    if grad.layout != "coo" or grad.indices().shape[0] != 1:
        return None
    return grad.detach().coalesce()


def _dense_mean(param: Tensor, group: ProcessGroup) -> Tensor:
    grad = tenon.zeros_like(param) if param.grad is None else param.grad.to_dense()
    whole = grad.detach().clone()
    return group.all_reduce(whole, "mean", whole)


def _mean_of_rows(
    own: Tensor | None, numbers: list[int], param: Tensor, group: ProcessGroup
) -> Tensor:
    assert own is not None
    longest = max(numbers)
    if longest == 0:
        return own
    index = group.all_gather(_filled(own.indices()[0].to(tenon.int64), longest))
    values = group.all_gather(_filled(own.values(), longest))
    kept = [slice(rank * longest, rank * longest + n) for rank, n in enumerate(numbers)]
    rows = tenon.concat([index[part] for part in kept]).unsqueeze(0)
    stored = tenon.concat([values[part] for part in kept])
    total = _core.compose("coo", list(param.shape), [rows, stored]).coalesce()
    return _core.with_values(total, total.values() / group.size)


def _filled(x: Tensor, longest: int) -> Tensor:
    """With rows of zeros up to the longest of all ranks, as all send the same number."""
    rest = tenon.zeros([longest - x.shape[0], *x.shape[1:]], dtype=x.dtype, device=x.device)
    return tenon.concat([x, rest])
