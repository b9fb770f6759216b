# SPDX-License-Identifier: Apache-2.0
"""paddle.nn: decoding in steps."""

from __future__ import annotations

from typing import Any

from tenon import nn
from tenon.nn import BeamSearchDecoder

__all__ = ["BeamSearchDecoder", "dynamic_decode"]


def dynamic_decode(
    decoder: Any,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
) -> Any:
    """`tenon.nn.dynamic_decode` with Paddle's parameters. `is_test`, by which Paddle saves memory, has to be False."""
    if is_test:
        raise NotImplementedError(
            "paddle.nn.dynamic_decode: expected is_test=False, got True; decode under no_grad to save memory"
        )
    # Paddle leaves off after the step that has this number, and counts from 0.
    steps = None if max_step_num is None else max_step_num + 1
    return nn.dynamic_decode(
        decoder, inits, steps, output_time_major, impute_finished, return_length
    )
