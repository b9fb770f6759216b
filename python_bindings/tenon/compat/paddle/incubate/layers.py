# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate.layers: features of recommenders. What makes parameters in a program is an AttributeError that names the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat._signature import table
from tenon.compat._signed import bound
from tenon.compat.paddle.static import nn as sequences

_SIGNATURES = table("""
fused_seqpool_cvm(input, pool_type, cvm, pad_value=0.0, use_cvm=True, cvm_offset=2)
partial_concat partial_sum(input, start_index=0, length=-1)
shuffle_batch(x, seed=None)
""")

_WITH_PARAMETERS = {
    "batch_fc": "tenon.batch_fc",
    "rank_attention": "tenon.rank_attention",
    "search_pyramid_hash": "tenon.text.pyramid_hash",
    "tdm_child": "tenon.tdm_child",
    "tdm_sampler": "tenon.tdm_sampler",
}


def shuffle_batch(x: Tensor, seed: Any = None) -> Tensor:
    """The vectors along the last axis in random order, by a generator of `seed` if there is one."""
    if seed is None:
        return tenon.shuffle_batch(x)[0]
    number = int(seed.item()) if isinstance(seed, Tensor) else int(seed)
    with tenon.random.Generator(x.device, seed=number):
        return tenon.shuffle_batch(x)[0]


def partial_concat(input: Sequence[Tensor], start_index: int = 0, length: int = -1) -> Tensor:
    """tenon.partial_concat()."""
    return tenon.partial_concat(list(input), start_index, length)


def partial_sum(input: Sequence[Tensor], start_index: int = 0, length: int = -1) -> Tensor:
    """tenon.partial_sum()."""
    return tenon.partial_sum(list(input), start_index, length)


def fused_seqpool_cvm(
    input: Sequence[Tensor],
    pool_type: str,
    cvm: Tensor,
    pad_value: float = 0.0,
    use_cvm: bool = True,
    cvm_offset: int = 2,
) -> list[Tensor]:
    """For each tensor of layout ragged its sequences' sums, and tenon.cvm() of these. `cvm` [N, 2], a row for each sequence, says by its
    shape alone how many there are; the shows and clicks are those of the sums."""
    if pool_type.lower() != "sum":
        raise ValueError(f"fused_seqpool_cvm(): expected pool_type 'sum', got {pool_type!r}")
    if cvm_offset != 2:
        raise NotImplementedError(
            f"fused_seqpool_cvm(): expected cvm_offset=2, shows and clicks, got {cvm_offset}"
        )
    results = []
    for number, x in enumerate(input):
        pooled = sequences.sequence_pool(x, "sum", pad_value=pad_value)
        if tuple(cvm.shape) != (pooled.shape[0], 2):
            raise ValueError(
                f"fused_seqpool_cvm(): expected cvm of shape ({pooled.shape[0]}, 2) for the sequences of input[{number}], got "
                f"{tuple(cvm.shape)}"
            )
        results.append(tenon.cvm(pooled, use_cvm))
    return results


_FREE: dict[str, Callable[..., Any]] = {
    "fused_seqpool_cvm": fused_seqpool_cvm,
    "partial_concat": partial_concat,
    "partial_sum": partial_sum,
    "shuffle_batch": shuffle_batch,
}
for _name, _signature in _SIGNATURES.items():
    globals()[_name] = bound(
        f"tenon.compat.paddle.incubate.layers.{_name}", _signature, _FREE[_name]
    )

__all__ = sorted(_SIGNATURES)


def __getattr__(name: str) -> Any:
    instead = _WITH_PARAMETERS.get(name)
    if instead is not None:
        raise AttributeError(
            f"tenon.compat.paddle does not cover paddle.incubate.layers.{name}, which makes parameters in a program; use {instead}, which takes them"
        )
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.incubate.layers.{name}; docs/from_paddle.md says what is covered"
    )


def __dir__() -> list[str]:
    return __all__
