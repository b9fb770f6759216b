# SPDX-License-Identifier: Apache-2.0
"""Losses with a margin: examples that are right by more than it cost nothing."""

from __future__ import annotations

from collections.abc import Callable

import tenon
from tenon import Tensor

from ._common import reduced
from .distance import cosine_similarity, pairwise_distance


def margin_ranking_loss(
    x1: Tensor, x2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """`max(0, -target * (x1 - x2) + margin)`: target 1 ranks x1 higher, -1 ranks x2 higher."""
    return reduced(tenon.relu(margin - target * (x1 - x2)), reduction, "margin_ranking_loss")


def hinge_embedding_loss(
    x: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """`x` where target is 1, `max(0, margin - x)` where it is -1."""
    positive = tenon.where(target == 1, x, 0.0)
    negative = tenon.where(target == -1, tenon.relu(margin - x), 0.0)
    return reduced(positive + negative, reduction, "hinge_embedding_loss")


def cosine_embedding_loss(
    x1: Tensor, x2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """`1 - cos(x1, x2)` where target is 1, `max(0, cos - margin)` where it is -1."""
    cosine = cosine_similarity(x1, x2, -1)
    loss = tenon.where(target == 1, 1.0 - cosine, tenon.relu(cosine - margin))
    return reduced(loss, reduction, "cosine_embedding_loss")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` of vectors [N, M].

    With `swap` the negative is compared with the nearer one of anchor and positive.
    """
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


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


def soft_margin_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """`log(1 + exp(-target * x))` for targets 1 and -1."""
    return reduced(tenon.softplus(-target * x), reduction, "soft_margin_loss")


def multilabel_soft_margin_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean of the binary cross-entropies of the classes, [..., C], for targets 0 and 1."""
    loss = -(target * tenon.log_sigmoid(x) + (1.0 - target) * tenon.log_sigmoid(-x))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.mean(axis=-1), reduction, "multilabel_soft_margin_loss")


def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`sum over i != target of max(0, margin - x[target] + x[i])^p / C` for `x` [N, C]."""
    alone = x.ndim < 2
    if alone:
        x, target = x.reshape([1, -1]), target.reshape([1])
    right = tenon.gather(x, target.unsqueeze(1), 1)
    loss = tenon.pow(tenon.relu(margin - right + x), float(p))
    if weight is not None:
        loss = loss * tenon.index_select(weight, target, 0).unsqueeze(1)
    others = 1.0 - tenon.one_hot(target, x.shape[1]).cast(x.dtype)
    loss = (loss * others).sum(axis=1) / x.shape[1]
    return reduced(loss.squeeze(0) if alone else loss, reduction, "multi_margin_loss")


def multilabel_margin_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """`sum of max(0, 1 - x[right] + x[wrong]) / C` for `x` [N, C].

    `target` [N, C] lists the right classes of each row, followed by -1.
    """
    alone = x.ndim < 2
    if alone:
        x, target = x.reshape([1, -1]), target.reshape([1, -1])
    classes = x.shape[1]
    # Entries after the first -1 do not count.
    counts = tenon.cumprod((target >= 0).cast(tenon.int64), 1)
    index = target * counts
    right = tenon.scatter_add(
        tenon.zeros_like(x), index, counts.cast(x.dtype), 1
    )  # how often each class is listed
    wrong = (right == 0).cast(x.dtype)
    listed = tenon.gather(x, index, 1)  # [N, C], valid where counts is 1
    margins = tenon.relu(1.0 - listed.unsqueeze(2) + x.unsqueeze(1))
    masked = margins * counts.cast(x.dtype).unsqueeze(2) * wrong.unsqueeze(1)
    loss = masked.sum(axis=(1, 2)) / classes
    return reduced(loss.squeeze(0) if alone else loss, reduction, "multilabel_margin_loss")
