# SPDX-License-Identifier: Apache-2.0
"""The one loss with a margin that is no operator, as it takes a function."""

from __future__ import annotations

from collections.abc import Callable

import tenon
from tenon import Tensor

from ._common import reduced
from .distance import pairwise_distance


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with any distance; by default the Euclidean one."""
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = tenon.minimum(far, distance(positive, negative))
    return reduced(tenon.relu(near - far + margin), reduction, "triplet_margin_loss")
