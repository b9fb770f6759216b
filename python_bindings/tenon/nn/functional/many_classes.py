# SPDX-License-Identifier: Apache-2.0
"""Losses for so many classes that not all of them are computed, or that need a margin between them."""

from __future__ import annotations

import tenon
from tenon import Tensor

from ._common import reduced


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
    if num_classes < 2:
        raise ValueError(f"hsigmoid_loss: expected num_classes >= 2, got {num_classes}")
    if (path_table is None) != (path_code is None):
        raise ValueError("hsigmoid_loss: expected path_table and path_code together, or neither")
    label = label.reshape([-1])
    if x.ndim != 2 or label.shape[0] != x.shape[0]:
        raise ValueError(
            f"hsigmoid_loss: expected x [N, D] and N labels, got {tuple(x.shape)} and {label.shape[0]}"
        )
    if path_table is None or path_code is None:
        _check_labels("hsigmoid_loss", label, num_classes)
        depth = (2 * num_classes - 1).bit_length() - 1
        bits = tenon.arange(depth, device=x.device, dtype=tenon.int64)
        codes = (label.to(tenon.int64) + num_classes).unsqueeze(1)
        nodes = (codes >> (bits + 1)) - 1
        right = ((codes >> bits) & 1).to(x.dtype)
    else:
        nodes, right = path_table.to(tenon.int64), path_code.to(x.dtype)
    on_path = nodes >= 0
    nodes = tenon.where(on_path, nodes, 0)
    scores = (weight[nodes] * x.unsqueeze(1)).sum(-1)
    if bias is not None:
        scores = scores + bias.reshape([-1])[nodes]
    loss = tenon.softplus(scores) - right * scores
    return tenon.where(on_path, loss, 0.0).sum(1, keepdim=True)


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
    label = label.reshape([-1])
    if logits.ndim != 2 or label.shape[0] != logits.shape[0]:
        raise ValueError(
            f"margin_cross_entropy: expected logits [N, classes] and N labels, got "
            f"{tuple(logits.shape)} and {label.shape[0]}"
        )
    _check_labels("margin_cross_entropy", label, logits.shape[1])
    harder = logits
    if margin1 != 1.0 or margin2 != 0.0:
        bound = 1.0 - float(tenon.finfo(logits.dtype).eps)
        angle = tenon.acos(tenon.clip(logits, -bound, bound))
        harder = tenon.cos(margin1 * angle + margin2)
    classes = tenon.arange(logits.shape[1], device=logits.device, dtype=label.dtype)
    is_right = classes == label.unsqueeze(1)
    logits = tenon.where(is_right, harder - margin3, logits) * scale
    loss = tenon.cross_entropy(logits, label, reduction="none")
    loss = reduced(loss, "none" if reduction is None else reduction, "margin_cross_entropy")
    return (loss, tenon.softmax(logits, -1)) if return_softmax else loss


def class_center_sample(label: Tensor, num_classes: int, num_samples: int) -> tuple[Tensor, Tensor]:
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
    order = tenon.randperm(num_classes, device=label.device) - num_classes * present
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
