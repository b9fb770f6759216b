# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers."""

import numpy as np


def sgd_update(p, g, lr, weight_decay=0.0):
    return p - lr * (g + weight_decay * p)


def momentum_update(p, g, v, lr, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False):
    g = g + weight_decay * p
    v = momentum * v + (1 - dampening) * g
    return p - lr * (g + momentum * v if nesterov else v), v


def adam_update(
    p, g, m, v, step, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False
):
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


def adamw_update(*args, weight_decay=0.01, **kwargs):
    return adam_update(*args, weight_decay=weight_decay, decoupled=True, **kwargs)


def adam_update_counted(p, g, m, v, step, decoupled=False, **kwargs):
    return adam_update(p, g, m, v, step=float(np.asarray(step)), decoupled=decoupled, **kwargs)


def rmsprop_update(p, g, v, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    v = alpha * v + (1 - alpha) * g * g
    return p - lr * g / (np.sqrt(v) + eps), v


def adagrad_update(p, g, v, lr=0.01, eps=1e-10, weight_decay=0.0):
    g = g + weight_decay * p
    v = v + g * g
    return p - lr * g / (np.sqrt(v) + eps), v
