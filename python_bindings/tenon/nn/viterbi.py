# SPDX-License-Identifier: Apache-2.0
"""Decoding of tags."""

from __future__ import annotations

import tenon
from tenon import Tensor

from .module import Module
from .parameter import Buffer, Parameter


class ViterbiDecoder(Module):
    """The likeliest sequences of tags by `tenon.viterbi_decode`, with `transitions` [tags, tags] between tags.

    decoder(potentials [N, T, tags], lengths [N]) gives scores [N] and tags [N, longest length]. With
    `include_bos_eos_tag` the last row of `transitions` begins sequences, and the last column but one ends them.
    """

    def __init__(self, transitions: Tensor, include_bos_eos_tag: bool = True) -> None:
        if transitions.ndim != 2 or transitions.shape[0] != transitions.shape[1]:
            raise ValueError(
                f"ViterbiDecoder: expected transitions [tags, tags], got shape {tuple(transitions.shape)}"
            )
        self.transitions = (
            transitions if isinstance(transitions, Parameter) else Buffer(transitions)
        )
        self.include_bos_eos_tag = include_bos_eos_tag

    def forward(self, potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        scores, paths = tenon.viterbi_decode(
            potentials, self.transitions, lengths, self.include_bos_eos_tag
        )
        return scores, paths
