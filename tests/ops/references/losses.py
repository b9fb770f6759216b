# SPDX-License-Identifier: Apache-2.0
"""Losses."""

import numpy as np


def softplus(x):
    return np.log1p(np.exp(x))


def log_softmax(x, axis):
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def reduce_loss(loss, reduction):
    return np.asarray({"none": lambda v: v, "sum": np.sum, "mean": np.mean}[reduction](loss))


def nll_loss(x, target, weight=None, ignore_index=-100, reduction="mean"):
    axis = 1 if x.ndim > 1 else 0
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    picked = np.take_along_axis(x, np.expand_dims(safe, axis), axis).squeeze(axis)
    w = counts * (np.ones(1) if weight is None else weight[safe])
    loss = -picked * w
    return np.asarray(loss.sum() / w.sum()) if reduction == "mean" else reduce_loss(loss, reduction)


def cross_entropy(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    axis = 1 if x.ndim > 1 else 0
    logs = log_softmax(x, axis)
    classes = x.shape[axis]
    w = np.ones(classes) if weight is None else weight
    if target.shape == x.shape:
        soft = target * (1 - label_smoothing) + label_smoothing / classes
        along = w.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return reduce_loss(-(logs * soft * along).sum(axis), reduction)
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    soft = (
        np.moveaxis(np.eye(classes)[safe], -1, axis) * (1 - label_smoothing)
        + label_smoothing / classes
    )
    along = w.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    loss = -(logs * soft * along).sum(axis) * counts
    return (
        np.asarray(loss.sum() / (w[safe] * counts).sum())
        if reduction == "mean"
        else reduce_loss(loss, reduction)
    )


def mse_loss(x, target, reduction="mean"):
    return reduce_loss((x - target) ** 2, reduction)


def l1_loss(x, target, reduction="mean"):
    return reduce_loss(np.abs(x - target), reduction)


def smooth_l1_loss(x, target, reduction="mean", beta=1.0):
    d = np.abs(x - target)
    return reduce_loss(np.where(d < beta, d * d / (2 * beta), d - beta / 2), reduction)


def huber_loss(x, target, reduction="mean", delta=1.0):
    d = np.abs(x - target)
    return reduce_loss(np.where(d < delta, d * d / 2, delta * (d - delta / 2)), reduction)


def binary_cross_entropy(x, target):
    return reduce_loss(-(target * np.log(x) + (1 - target) * np.log(1 - x)), "mean")


def binary_cross_entropy_with_logits(x, target, weight=1.0, pos_weight=1.0, reduction="mean"):
    loss = pos_weight * target * softplus(-x) + (1 - target) * softplus(x)
    return reduce_loss(weight * loss, reduction)


def kl_div(x, target, reduction="mean", log_target=False):
    logs = target if log_target else np.log(target)
    return reduce_loss(np.exp(logs) * (logs - x), reduction)
