# SPDX-License-Identifier: Apache-2.0
"""Weights in few bits, activations as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import tenon
from tenon import Tensor, nn
from tenon.jit import Program

from .layers import BlockEmbedding, BlockLinear
from .program_layers import as_module
from .replacement import copy_of, find_layers, replace_layers

M = TypeVar("M", bound=nn.Module)

BLOCK = 32  # elements of a block; of "iq4_xs" and a format whose name ends in _K, 256


def blocks_of(weight: Tensor, format: str) -> Tensor:
    """`weight` [rows, elements] in blocks, rows filled up with zeros."""
    missing = -weight.shape[1] % (256 if format.endswith(("_K", "_xs")) else BLOCK)
    weight = weight.detach()
    if missing:
        weight = nn.functional.pad(weight, [0, missing])
    return tenon.quantize_blocks(weight, format)


def quantize_weights(
    module: M,
    format: str = "q4_0",
    *,
    activations: str = "float",
    embeddings: bool = False,
    keep: Sequence[str] = (),
) -> M:
    """A copy of `module` whose Linear layers, and with `embeddings` its Embeddings, hold their weights in
    blocks.

    `format` is one of those that `quantize_blocks` writes: 'q8_0' has 8.5 bits a weight, 'q5_1' 6, 'q5_0'
    5.5, 'q4_1' 5, 'q4_0' and 'iq4_nl' 4.5, 'mxfp4' 4.25; in blocks of 256 numbers 'q6_K' 6.56, 'q5_K' 5.5,
    'q4_K' 4.5, 'iq4_xs' 4.25, 'q3_K' 3.44, 'q2_K' 2.63. `activations='int8'` also rounds what a Linear is called on
    to 8 bits, 32 numbers at a time, and multiplies integers. `keep` has patterns of names, such as
    '*.head', of layers that stay as they are. Nothing is calibrated, and nothing is trained afterwards.
    Programs have no Embeddings: `embeddings` of one is a NotImplementedError.
    """
    if embeddings and isinstance(module, Program):
        raise NotImplementedError(
            "quantize_weights: expected embeddings=False of a Program, whose look-ups of tables are no layers, got True; "
            "quantise the module and export it then"
        )
    result = copy_of(as_module("quantize_weights", module))
    kinds = (nn.Linear, nn.Embedding) if embeddings else (nn.Linear,)
    made: dict[str, nn.Module] = {}
    for name, layer in find_layers(result, kinds, keep):
        blocks = blocks_of(layer.weight, format)
        if isinstance(layer, nn.Linear):
            made[name] = BlockLinear(blocks, format, layer.in_features, layer.bias, activations)
        else:
            made[name] = BlockEmbedding(blocks, format, layer.weight.shape[1])
    if not made:
        raise ValueError(
            f"quantize_weights: {type(module).__name__} has no layer to quantise; expected "
            f"{' or '.join(kind.__name__ for kind in kinds)}"
        )
    return replace_layers(result, made)
