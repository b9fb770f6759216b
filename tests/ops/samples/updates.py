# SPDX-License-Identifier: Apache-2.0
"""Optimiser steps."""

import numpy as np
from case import Case, normal


def sgd(p, g, lr, weight_decay=0.0):
    return p - lr * (g + weight_decay * p)


def momentum(p, g, v, lr, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False):
    g = g + weight_decay * p
    v = momentum * v + (1 - dampening) * g
    return p - lr * (g + momentum * v if nesterov else v), v


def adam(
    p, g, m, v, step, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False
):
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


def adamw(*args, weight_decay=0.01, **kwargs):
    return adam(*args, weight_decay=weight_decay, decoupled=True, **kwargs)


def rmsprop(p, g, v, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    v = alpha * v + (1 - alpha) * g * g
    return p - lr * g / (np.sqrt(v) + eps), v


def adagrad(p, g, v, lr=0.01, eps=1e-10, weight_decay=0.0):
    g = g + weight_decay * p
    v = v + g * g
    return p - lr * g / (np.sqrt(v) + eps), v


_p, _g, _m, _v = normal(3, 4), normal(3, 4), normal(3, 4), normal(3, 4, low=0.1, high=1)

STEP = "a step of an optimizer is no part of what it optimizes"

CASES = [
    Case("sgd_update", (_p, _g), {"lr": 0.1}, sgd, grad=(), why=STEP),
    Case(
        "sgd_update",
        (_p, _g),
        {"lr": 0.1, "weight_decay": 0.2},
        sgd,
        grad=(),
        why=STEP,
        label="decay",
    ),
    Case(
        "momentum_update",
        (_p, _g, _m),
        {"lr": 0.1, "weight_decay": 0.2},
        momentum,
        grad=(),
        why=STEP,
    ),
    Case(
        "momentum_update",
        (_p, _g, _m),
        {"lr": 0.1, "dampening": 0.3, "nesterov": True},
        momentum,
        grad=(),
        why=STEP,
        label="nesterov",
    ),
    Case(
        "adam_update",
        (_p, _g, _m, _v),
        {"step": 3, "lr": 0.1, "weight_decay": 0.2},
        adam,
        grad=(),
        why=STEP,
    ),
    Case("adamw_update", (_p, _g, _m, _v), {"step": 3, "lr": 0.1}, adamw, grad=(), why=STEP),
    Case("rmsprop_update", (_p, _g, _v), {"weight_decay": 0.2}, rmsprop, grad=(), why=STEP),
    Case("adagrad_update", (_p, _g, _v), {"weight_decay": 0.2}, adagrad, grad=(), why=STEP),
]
