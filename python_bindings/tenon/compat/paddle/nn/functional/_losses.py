# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.paddle._functions import floating

__all__ = """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss
dice_loss gaussian_nll_loss hinge_embedding_loss hsigmoid_loss kl_div l1_loss label_smooth log_loss margin_ranking_loss
mse_loss multi_label_margin_loss multi_label_soft_margin_loss multi_margin_loss nll_loss npair_loss poisson_nll_loss
sigmoid_focal_loss smooth_l1_loss soft_margin_loss softmax_with_cross_entropy square_error_cost
triplet_margin_loss triplet_margin_with_distance_loss""".split()

_F = tenon.nn.functional


def _check(name: str, reduction: str, more: Sequence[str] = ()) -> None:
    allowed = ["mean", "sum", "none", *more]
    if reduction not in allowed:
        raise ValueError(
            f"{name}(): expected reduction {', '.join(map(repr, allowed))}, got {reduction!r}"
        )


def _reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    _check(name, reduction)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


# -- of classes ------------------------------------------------------------------------------------


def cross_entropy(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the logarithm of the probability of the label, which is a class, with or without an axis of
    length 1, or with `soft_label` has a probability for each class. Scores are probabilities already where
    `use_softmax` is false."""
    _check("cross_entropy", reduction)
    axis %= input.ndim
    if soft_label and ignore_index != -100:
        raise ValueError(
            f"cross_entropy(): expected ignore_index to be left out beside soft labels, got {ignore_index}"
        )
    if use_softmax:
        logarithms = _operator("log_softmax")(input, axis)
    else:
        logarithms = _operator("log")(input)
    is_class = not soft_label
    if is_class and (label.dtype.is_floating_point or label.dtype == tenon.bool):
        raise TypeError(f"cross_entropy(): expected labels of whole numbers, got {label.dtype}")
    has_axis = label.ndim == input.ndim
    if (
        is_class
        and has_axis
        and label.shape[axis] != 1
        or label.ndim
        not in (
            input.ndim,
            input.ndim - 1,
        )
    ):
        raise ValueError(
            f"cross_entropy(): expected labels of the shape of input without axis {axis}, or with 1 there, "
            f"got {tuple(label.shape)} for {tuple(input.shape)}"
        )
    if soft_label and tuple(label.shape) != tuple(input.shape):
        raise ValueError(
            f"cross_entropy(): expected soft labels of shape {tuple(input.shape)}, got {tuple(label.shape)}"
        )
    classes = label if not is_class or has_axis else label.unsqueeze(axis)
    factor = None
    if is_class:
        ignored = classes == ignore_index
        chosen = _operator("where")(ignored, 0, classes).to(dtype=_core.int64)
        if bool(((chosen < 0) | (chosen >= input.shape[axis])).any()):
            raise ValueError(
                f"cross_entropy(): expected labels from 0 to {input.shape[axis] - 1}, or {ignore_index}"
            )
    if is_class and label_smoothing == 0:
        loss = -_operator("gather")(logarithms, chosen, axis)
        if weight is not None:
            factor = weight[chosen.reshape(-1)].reshape(tuple(chosen.shape))
    else:
        soft = label
        if is_class:
            lengths = [1] * input.ndim
            lengths[axis] = -1
            numbers = _operator("arange")(0, input.shape[axis], 1, dtype=_core.int64)
            soft = (chosen == numbers.reshape(lengths)).to(dtype=logarithms.dtype)
        if label_smoothing:
            soft = soft * (1 - label_smoothing) + label_smoothing / input.shape[axis]
        loss = -(soft * logarithms).sum(axis, keepdim=True)
        if weight is not None:
            lengths = [1] * input.ndim
            lengths[axis] = -1
            factor = (soft * weight.reshape(lengths)).sum(axis, keepdim=True)
    if is_class:
        loss = _operator("where")(ignored, 0.0, loss)
        if factor is not None:
            factor = _operator("where")(ignored, 0.0, factor)
    loss = loss if factor is None else loss * factor
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss.squeeze(axis) if is_class and not has_axis else loss
    if factor is not None:
        total = factor.sum()
    elif is_class:
        total = (~ignored).to(dtype=loss.dtype).sum()
    else:
        return loss.mean()
    # Where nothing counts, the loss is 0.
    return loss.sum() / (total + (total == 0).to(dtype=total.dtype))


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """cross_entropy() of each, whose classes have an axis of length 1; with `return_softmax` the
    probabilities, too. Sums are always stable."""
    if not soft_label and label.ndim == logits.ndim - 1:
        label = label.unsqueeze(axis)
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    return (loss, _operator("softmax")(logits, axis)) if return_softmax else loss


def nll_loss(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the logarithm [N, C, ...] at the label [N, ...]."""
    _check("nll_loss", reduction)
    return _operator("nll_loss")(input, label, weight, ignore_index, reduction)


def _of_probabilities(x: Tensor) -> Tensor:
    """Logarithms, at least -100."""
    return _operator("maximum")(_operator("log")(x), -100.0)


def binary_cross_entropy(
    input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Of probabilities and labels from 0 to 1."""
    loss = -(label * _of_probabilities(input) + (1 - label) * _of_probabilities(1 - input))
    return _reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    logit: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Of scores and labels from 0 to 1."""
    name = "binary_cross_entropy_with_logits"
    loss = _operator(name)(logit, label, None, None, "none")
    if pos_weight is not None:
        factor = label * (pos_weight - 1) + 1
        loss = logit * (1 - label) + factor * _operator("softplus")(-logit)
    return _reduced(name, loss if weight is None else loss * weight, reduction)


def multi_margin_loss(
    input: Tensor,
    label: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the scores of other classes are from `margin` below that of the label."""
    _check("multi_margin_loss", reduction)
    rows, classes = input.shape
    index = label.reshape([-1, 1]).to(dtype=_core.int64)
    right = _operator("gather")(input, index, 1)
    term = _operator("relu")(margin - right + input)
    if weight is not None:
        term = term * weight[index.reshape(-1)].reshape([-1, 1])
    term = term if p == 1 else term**p
    # The label's own term is left out.
    own = margin if weight is None else margin * weight[index.reshape(-1)]
    loss = (term.sum(1) - own**p) / classes
    return _reduced("multi_margin_loss", loss, reduction)


def multi_label_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """Of several labels for each sample; the first -1 ends them."""
    _check("multi_label_margin_loss", reduction)
    return _F.multilabel_margin_loss(input, label, reduction)


def multi_label_soft_margin_loss(
    input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of binary cross entropies of scores."""
    _check("multi_label_soft_margin_loss", reduction)
    if tuple(input.shape) != tuple(label.shape):
        raise ValueError(
            f"multi_label_soft_margin_loss(): expected labels of shape {tuple(input.shape)}, got "
            f"{tuple(label.shape)}"
        )
    return _F.multilabel_soft_margin_loss(input, label, weight, reduction)


def sigmoid_focal_loss(
    logit: Tensor,
    label: Tensor,
    normalizer: Tensor | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
) -> Tensor:
    """Binary cross entropy, in which what is right already counts less."""
    _check("sigmoid_focal_loss", reduction)
    return _F.sigmoid_focal_loss(logit, label, normalizer, alpha, gamma, reduction)


def ctc_loss(
    log_probs: Tensor,
    labels: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification of scores [T, N, C], which pass through log_softmax here; the
    mean is that of losses over the lengths of their labels."""
    _check("ctc_loss", reduction)
    if norm_by_times:
        raise NotImplementedError("ctc_loss(): expected norm_by_times=False, got True")
    logarithms = _operator("log_softmax")(log_probs, -1)
    loss = _F.ctc_loss(
        logarithms,
        labels.to(dtype=_core.int64),
        input_lengths.to(dtype=_core.int64),
        label_lengths.to(dtype=_core.int64),
        blank,
        "none",
        zero_infinity,
    )
    if reduction == "mean":
        return (loss / label_lengths.to(dtype=loss.dtype)).mean()
    return loss.sum() if reduction == "sum" else loss


def dice_loss(input: Tensor, label: Tensor, epsilon: float = 1e-5) -> Tensor:
    """1 minus twice the overlap of probabilities [N, ..., classes] and labels [N, ..., 1]."""
    return _F.dice_loss(input, label, epsilon)


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    """Probabilities mixed with those of `prior_dist`, alike for all by default."""
    if not 0 <= epsilon <= 1:
        raise ValueError(f"label_smooth(): expected epsilon from 0 to 1, got {epsilon}")
    prior = None if prior_dist is None else prior_dist.reshape(-1)
    return _F.label_smooth(label, prior, epsilon)


def log_loss(input: Tensor, label: Tensor, epsilon: float = 1e-4) -> Tensor:
    """Minus the logarithm of the probability of a label 0 or 1."""
    return _F.log_loss(input, label, epsilon)


# -- of numbers ------------------------------------------------------------------------------------


def _distance(name: str, distance: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
        return _reduced(name, distance(floating(name, input) - label), reduction)

    function.__doc__ = "The distance of values from labels."
    return function


l1_loss = _distance("l1_loss", lambda off: off.abs())
mse_loss = _distance("mse_loss", lambda off: off * off)


def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """The squares of differences."""
    return _operator("square")(input - label)


def smooth_l1_loss(
    input: Tensor,
    label: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    is_huber: bool = True,
) -> Tensor:
    """Squares of differences below `delta`, and their sizes beyond; with `is_huber` Huber's loss, else
    that over `delta`."""
    off = (input - label).abs()
    loss = _operator("where")(off < delta, 0.5 * off * off, delta * (off - 0.5 * delta))
    return _reduced("smooth_l1_loss", loss if is_huber else loss / delta, reduction)


def kl_div(
    input: Tensor, label: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Kullback and Leibler's divergence of logarithms of probabilities from probabilities, or with
    `log_target` from logarithms."""
    _check("kl_div", reduction, ["batchmean"])
    if reduction == "batchmean":
        total = _F.kl_div(input, label, "sum", log_target)
        return total / input.shape[0] if input.ndim else total
    return _F.kl_div(input, label, reduction, log_target)


def poisson_nll_loss(
    input: Tensor,
    label: Tensor,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Of counts and their rates, or logarithms of these."""
    _check("poisson_nll_loss", reduction)
    if epsilon <= 0:
        raise ValueError(f"poisson_nll_loss(): expected epsilon above 0, got {epsilon}")
    return _F.poisson_nll_loss(input, label, log_input, full, epsilon, reduction)


def gaussian_nll_loss(
    input: Tensor,
    label: Tensor,
    variance: Any,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Of normal numbers of given mean and variance."""
    _check("gaussian_nll_loss", reduction)
    return _F.gaussian_nll_loss(input, label, variance, full, epsilon, reduction)


def soft_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-label * input)), of labels 1 and -1."""
    label = label.to(dtype=input.dtype)
    return _reduced("soft_margin_loss", _operator("softplus")(-label * input), reduction)


def hinge_embedding_loss(
    input: Tensor, label: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Values where the label is 1, and what they lack to `margin` where it is -1."""
    zero = _operator("zeros_like")(input)
    loss = _operator("where")(label == 1, input, zero)
    less = _operator("where")(label == -1, _operator("relu")(margin - input), zero)
    return _reduced("hinge_embedding_loss", loss + less, reduction)


def margin_ranking_loss(
    input: Tensor, other: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """What the difference of two lacks to `margin`, in the direction of the label."""
    loss = _operator("relu")(label * (other - input) + margin)
    return _reduced("margin_ranking_loss", loss, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    label: Tensor,
    margin: float = 0,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the label is 1, and what the cosine is above `margin` where it is -1."""
    _check("cosine_embedding_loss", reduction)
    if not -1 <= margin <= 1:
        raise ValueError(f"cosine_embedding_loss(): expected a margin from -1 to 1, got {margin}")
    if label.ndim > 1 or input1.ndim > 2 or tuple(input1.shape) != tuple(input2.shape):
        raise ValueError(
            f"cosine_embedding_loss(): expected two inputs of one shape [n, d] or [d] and labels [n], got "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(label.shape)}"
        )
    return _F.cosine_embedding_loss(input1, input2, label, float(margin), reduction)


def triplet_margin_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """How much farther the positive is than the negative, less `margin`, by p-norms."""
    _check("triplet_margin_loss", reduction)
    if margin < 0:
        raise ValueError(f"triplet_margin_loss(): expected a margin of at least 0, got {margin}")
    return _F.triplet_margin_loss(
        input, positive, negative, float(margin), float(p), epsilon, swap, reduction
    )


def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss() by a distance of its own, by default the Euclidean."""
    _check("triplet_margin_with_distance_loss", reduction)
    if margin < 0:
        raise ValueError(
            f"triplet_margin_with_distance_loss(): expected a margin of at least 0, got {margin}"
        )
    return _F.triplet_margin_with_distance_loss(
        input,
        positive,
        negative,
        distance_function=distance_function,
        margin=float(margin),
        swap=swap,
        reduction=reduction,
    )


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: float = 0.002) -> Tensor:
    """tenon.npair_loss()."""
    return tenon.npair_loss(anchor, positive, labels, l2_reg)


def hsigmoid_loss(
    input: Tensor,
    label: Tensor,
    num_classes: int,
    weight: Tensor,
    bias: Tensor | None = None,
    path_table: Tensor | None = None,
    path_code: Tensor | None = None,
    is_sparse: bool = False,
) -> Tensor:
    """The loss of paths through a tree of classes, [N, 1]; `bias` is [nodes, 1]. Paddle adds log(2) for each node that a path has less than the
    longest one of the tree, which changes no gradient and is not added here."""
    if is_sparse:
        raise NotImplementedError("hsigmoid_loss(): expected is_sparse=False, got True")
    return _F.hsigmoid_loss(
        input,
        label,
        num_classes,
        weight,
        None if bias is None else bias.reshape(-1),
        path_table,
        path_code,
    )
