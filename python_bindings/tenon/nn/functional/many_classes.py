# SPDX-License-Identifier: Apache-2.0
"""Losses for so many classes that not all of them are computed, or that need a margin between them."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


def hsigmoid_loss(
    x: Tensor,
    label: Tensor,
    num_classes: int,
    weight: Tensor,
    bias: Tensor | None = None,
    path_table: Tensor | None = None,
    path_code: Tensor | None = None,
) -> Tensor:
    """Cross entropy [N, 1] of classes that are leaves of a binary tree (Morin and Bengio, 2005).

    `x` is [N, D], `label` [N]; every inner node has a row of `weight` [nodes, D] and of `bias`, and says
    by a sigmoid whether to go right. Without a path the tree is complete: `num_classes - 1` nodes, and
    the path to a class are the bits of `label + num_classes` below its highest one, as in word2vec. Otherwise
    row i of `path_table` [N, depth] has the nodes on the way to sample i's class, negative behind its end,
    and `path_code` 1 where it goes right. The cost grows with the depth, not with the classes.
    """
    return tenon.hsigmoid_loss(x, label, num_classes, weight, bias, path_table, path_code)


def margin_cross_entropy(
    logits: Tensor,
    label: Tensor,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> Tensor | tuple[Tensor, Tensor]:
    """Cross entropy of cosines [N, classes] whose right class is made harder to reach.

    The cosine of the right class becomes `cos(margin1 * angle + margin2) - margin3`, then all are
    multiplied by `scale`: SphereFace (margin1), ArcFace (margin2; Deng et al., 2019), CosFace (margin3). Where
    an angle is 0 or pi within the precision of the dtype, where its derivative is infinite, the right
    class has no gradient.
    """
    loss, softmax = tenon.margin_cross_entropy(
        logits, label, margin1, margin2, margin3, scale, reduction or "none"
    )
    return (loss, softmax) if return_softmax else loss


def class_center_sample(
    label: Tensor, num_classes: int, num_samples: int, *, generator: Any = None
) -> tuple[Tensor, Tensor]:
    """Draw classes to compute a loss with: all of `label`, and random others (Partial FC; An et al., 2020).

    Returns the labels as positions among the drawn classes, and those classes in ascending order:
    `num_samples` of them, or more if `label` has more.
    """
    if not 0 < num_samples <= num_classes:
        raise ValueError(
            f"class_center_sample: expected num_samples from 1 to {num_classes}, got {num_samples}"
        )
    _check_labels("class_center_sample", label, num_classes)
    present = tenon.zeros([num_classes], dtype=tenon.int64, device=label.device)
    present[label.reshape([-1]).to(tenon.int64)] = 1
    count = max(num_samples, int(present.sum().item()))
    order = tenon.randperm(num_classes, device=label.device, generator=generator)
    order = order - num_classes * present
    drawn = tenon.sort(tenon.argsort(order)[:count])
    place = tenon.zeros([num_classes], dtype=label.dtype, device=label.device)
    place[drawn] = tenon.arange(count, dtype=label.dtype, device=label.device)
    return place[label.to(tenon.int64)], drawn.to(label.dtype)


def _check_labels(function: str, label: Tensor, num_classes: int) -> None:
    if label.numel() and not (label.min().item() >= 0 and label.max().item() < num_classes):
        raise ValueError(
            f"{function}: expected labels from 0 to {num_classes - 1}, got some from "
            f"{label.min().item()} to {label.max().item()}"
        )
