# SPDX-License-Identifier: Apache-2.0
"""Boxes as differences from other boxes, and back."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

from ._boxes import expect


def box_coder(
    prior_box: Tensor,
    prior_box_var: Tensor | Sequence[float] | None,
    target_box: Tensor,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
) -> Tensor:
    """What a detector predicts for the boxes `target_box` [N, 4] from each of `prior_box` [M, 4], as [N, M, 4]:
    differences of centres in sizes of the prior box, and logarithms of quotients of sizes, all divided by
    `prior_box_var` ([M, 4], four numbers, or None).

    With `code_type` 'decode_center_size' the boxes [N, M, 4] of such predictions `target_box`, from prior boxes
    of the second axis, or of the first one with `axis` 1. Without `box_normalized` corners are first and last
    pixels.
    """
    name = "box_coder"
    encodes = code_type == "encode_center_size"
    expect(
        name,
        encodes or code_type == "decode_center_size",
        "a code_type 'encode_center_size' or 'decode_center_size'",
        repr(code_type),
    )
    expect(name, axis in (0, 1), "axis 0 or 1", axis)
    expect(
        name,
        prior_box.ndim == 2 and prior_box.shape[1] == 4,
        "prior_box of shape [M, 4]",
        tuple(prior_box.shape),
    )
    pixel = 0.0 if box_normalized else 1.0
    if isinstance(prior_box_var, Tensor):
        variance = prior_box_var
    else:
        given = [1.0] * 4 if prior_box_var is None else list(prior_box_var)
        variance = tenon.tensor(given, dtype=prior_box.dtype, device=prior_box.device)
    expect(
        name,
        tuple(variance.shape) in ((4,), tuple(prior_box.shape)),
        f"prior_box_var of four numbers or of shape {tuple(prior_box.shape)}",
        tuple(variance.shape),
    )
    place = 1 if not encodes and axis == 1 else 0
    if variance.ndim == 2:
        variance = variance.unsqueeze(place)
    size = (prior_box[:, 2:] - prior_box[:, :2] + pixel).unsqueeze(place)
    centre = prior_box[:, :2].unsqueeze(place) + size * 0.5
    if encodes:
        expect(
            name,
            target_box.ndim == 2 and target_box.shape[1] == 4,
            "target_box of shape [N, 4]",
            tuple(target_box.shape),
        )
        target = target_box.unsqueeze(1)
        moved = ((target[..., :2] + target[..., 2:]) * 0.5 - centre) / size
        grown = tenon.log(abs((target[..., 2:] - target[..., :2] + pixel) / size))
        return tenon.concat([moved, grown], axis=-1) / variance
    expect(
        name,
        target_box.ndim == 3
        and target_box.shape[2] == 4
        and target_box.shape[1 - axis] == prior_box.shape[0],
        f"target_box of shape [N, M, 4] with {prior_box.shape[0]} in axis {1 - axis}",
        tuple(target_box.shape),
    )
    deltas = target_box * variance
    middle = deltas[..., :2] * size + centre
    half = tenon.exp(deltas[..., 2:]) * size * 0.5
    return tenon.concat([middle - half, middle + half - pixel], axis=-1)
