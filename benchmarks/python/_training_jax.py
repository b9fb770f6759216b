# SPDX-License-Identifier: Apache-2.0
"""The models of _training_models.py as JAX has them: pure functions, and a step compiled whole (`jit`).

Parameters keep the names and shapes of the other libraries' modules, so that all start alike.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax

IMAGES = ("NCHW", "OIHW", "NCHW")


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def convolve(p, name, x, stride=1, padding=0):
    y = lax.conv_general_dilated(
        x, p[f"{name}.weight"], (stride, stride), [(padding, padding)] * 2, dimension_numbers=IMAGES
    )
    bias = p.get(f"{name}.bias")
    return y if bias is None else y + bias[:, None, None]


def max_pool(x, size, stride, padding=0):
    window, strides = (1, 1, size, size), (1, 1, stride, stride)
    return lax.reduce_window(
        x, -jnp.inf, lax.max, window, strides, [(0, 0)] * 2 + [(padding, padding)] * 2
    )


def mlp(p, x, statistics):
    return linear(p, "2", jax.nn.relu(linear(p, "0", x))), statistics


def lenet(p, x, statistics):
    x = max_pool(jax.nn.relu(convolve(p, "0", x, padding=2)), 2, 2)
    x = max_pool(jax.nn.relu(convolve(p, "3", x)), 2, 2)
    x = x.reshape(len(x), -1)
    for name in ("7", "9"):
        x = jax.nn.relu(linear(p, name, x))
    return linear(p, "11", x), statistics


def batch_norm(p, name, x, statistics):
    if f"{name}.mean" in p:  # a forward pass of a trained network
        mean, variance = p[f"{name}.mean"], p[f"{name}.var"]
    else:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        count = x.size / x.shape[1]
        for key, value in (("mean", mean), ("var", variance * count / (count - 1))):
            kept = statistics.get(f"{name}.{key}", 0.0 if key == "mean" else 1.0)
            statistics[f"{name}.{key}"] = 0.9 * kept + 0.1 * value
    scale = p[f"{name}.weight"] * lax.rsqrt(variance + 1e-5)
    shift = p[f"{name}.bias"] - mean * scale
    return x * scale[:, None, None] + shift[:, None, None]


def resnet18(p, x, statistics):
    statistics = dict(statistics)
    x = jax.nn.relu(batch_norm(p, "1", convolve(p, "0", x, 2, 3), statistics))
    x = max_pool(x, 3, 2, 1)
    for index in range(8):
        name = str(4 + index)
        stride = 2 if index in (2, 4, 6) else 1
        y = convolve(p, f"{name}.conv1", x, stride, 1)
        y = jax.nn.relu(batch_norm(p, f"{name}.norm1", y, statistics))
        y = batch_norm(p, f"{name}.norm2", convolve(p, f"{name}.conv2", y, 1, 1), statistics)
        if stride == 2:
            x = convolve(p, f"{name}.shortcut.0", x, 2)
            x = batch_norm(p, f"{name}.shortcut.1", x, statistics)
        x = jax.nn.relu(y + x)
    return linear(p, "14", x.mean((2, 3))), statistics


def layer_norm(p, name, x):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def gpt2_block(p, x, statistics):
    batch, length, size = x.shape
    parts = linear(p, "qkv", layer_norm(p, "norm1", x)).reshape(batch, length, 3, 12, size // 12)
    y = jax.nn.dot_product_attention(*(parts[:, :, i] for i in range(3)), is_causal=True)
    x = x + linear(p, "out", y.reshape(x.shape))
    y = jax.nn.gelu(linear(p, "up", layer_norm(p, "norm2", x)), approximate=True)
    return x + linear(p, "down", y), statistics


def lstm(p, x, statistics):
    weights = [p[f"lstm.{each}_l0"] for each in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    input_weight, hidden_weight, input_bias, hidden_bias = weights
    projected = x @ input_weight.T + (input_bias + hidden_bias)

    def advance(state, row):
        hidden, cell = state
        enter, forget, new, leave = jnp.split(row + hidden @ hidden_weight.T, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        return (jax.nn.sigmoid(leave) * jnp.tanh(cell), cell), None

    start = jnp.zeros((x.shape[1], hidden_weight.shape[1]))
    (hidden, _), _ = lax.scan(advance, (start, start), projected)
    return linear(p, "head", hidden), statistics


MODELS = {model.__name__: model for model in (mlp, lenet, resnet18, gpt2_block, lstm)}


def sgd(lr, momentum=0.0):
    def update(p, gradient, state, _):
        if not momentum:
            return p - lr * gradient, state
        velocity = momentum * state[0] + gradient
        return p - lr * velocity, (velocity,)

    return update, 1 if momentum else 0


def adam(lr, weight_decay=0.0):
    """Kingma and Ba, 2015; with decay, Loshchilov and Hutter, 2019."""

    def update(p, gradient, state, count):
        first = 0.9 * state[0] + 0.1 * gradient
        second = 0.999 * state[1] + 0.001 * gradient * gradient
        root = jnp.sqrt(second / (1 - 0.999**count)) + 1e-8
        p = p * (1 - lr * weight_decay)
        return p - lr * (first / (1 - 0.9**count)) / root, (first, second)

    return update, 2


OPTIMIZERS = {"SGD": sgd, "Adam": adam, "AdamW": functools.partial(adam, weight_decay=0.01)}


def loss_of(out, target):
    if jnp.issubdtype(target.dtype, jnp.integer):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(out), target[:, None], 1)
        return -chosen.mean()
    return ((out - target) ** 2).mean()


def training_step(_library, work, parameters, x, target):
    """A callable that takes a step and returns the loss. The state is given up and made anew (`donate`)."""
    model = MODELS[work.model.__name__]
    update, moments = OPTIMIZERS[work.optimizer](**work.options)

    @functools.partial(jax.jit, donate_argnums=0)
    def advance(state, x, target):
        p, moving, statistics, count = state

        def objective(p):
            out, new = model(p, x, statistics)
            return loss_of(out, target), new

        (loss, statistics), gradients = jax.value_and_grad(objective, has_aux=True)(p)
        updated = {name: update(p[name], gradients[name], moving[name], count) for name in p}
        p = {name: pair[0] for name, pair in updated.items()}
        return (p, {name: pair[1] for name, pair in updated.items()}, statistics, count + 1), loss

    p = {name: jnp.asarray(value) for name, value in parameters.items()}
    moving = {
        name: tuple(jnp.zeros_like(value) for _ in range(moments)) for name, value in p.items()
    }
    statistics = {
        name: jnp.full(each.shape, 0.0 if name.endswith("mean") else 1.0)
        for name, each in jax.eval_shape(model, p, x, {})[1].items()
    }
    state = (p, moving, statistics, jnp.ones(()))
    x, target = jnp.asarray(x), jnp.asarray(target)

    def step():
        nonlocal state
        state, loss = jax.block_until_ready(advance(state, x, target))
        return loss

    return step


def forward_step(_library, work, parameters, x, _threads):
    model = MODELS[work.model.__name__]
    p = {name: jnp.asarray(value) for name, value in parameters.items()}
    if model is resnet18:
        for name in [
            n.removesuffix(".weight")
            for n, value in p.items()
            if value.ndim == 1 and n.endswith(".weight")
        ]:
            p |= {
                f"{name}.mean": jnp.zeros_like(p[f"{name}.weight"]),
                f"{name}.var": jnp.ones_like(p[f"{name}.weight"]),
            }
    forward, x = jax.jit(lambda p, x: model(p, x, {})[0]), jnp.asarray(x)
    return lambda: forward(p, x).block_until_ready()
