# SPDX-License-Identifier: Apache-2.0
"""Parameters whose gradients travel together."""

from __future__ import annotations

from collections.abc import Sequence

from tenon import Tensor

MEGABYTE = 1 << 20


def buckets_of(params: Sequence[Tensor], limit_bytes: int) -> list[list[int]]:
    """Indices of parameters, in their order, in buckets of one dtype and device and about `limit_bytes` each."""
    buckets: list[list[int]] = []
    open_ones: dict[tuple[str, str], tuple[list[int], int]] = {}
    for index, param in enumerate(params):
        key = (param.dtype.name, str(param.device))
        members, held = open_ones.get(key, ([], 0))
        if not members:
            buckets.append(members)
        members.append(index)
        held += param.nbytes
        open_ones[key] = ([], 0) if held >= limit_bytes else (members, held)
    return buckets
