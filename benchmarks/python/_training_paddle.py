# SPDX-License-Identifier: Apache-2.0
"""Training steps of Paddle, with what _training_models.py uses of torch.nn under its names there."""

from __future__ import annotations

import sys

import paddle
from paddle import nn, optimizer

Module, Sequential, ReLU, GELU = nn.Layer, nn.Sequential, nn.ReLU, nn.GELU
Flatten, LayerNorm, BatchNorm2d = nn.Flatten, nn.LayerNorm, nn.BatchNorm2D
MaxPool2d, AdaptiveAvgPool2d = nn.MaxPool2D, nn.AdaptiveAvgPool2D
CrossEntropyLoss, MSELoss = nn.CrossEntropyLoss, nn.MSELoss


def Linear(inputs, outputs):
    return nn.Linear(inputs, outputs)


def Conv2d(inputs, outputs, size, stride=1, padding=0, bias=True):
    return nn.Conv2D(inputs, outputs, size, stride, padding, bias_attr=None if bias else False)


def LSTM(inputs, features):
    return nn.LSTM(inputs, features, time_major=True)


class functional:
    @staticmethod
    def scaled_dot_product_attention(query, key, value, causal):
        """Paddle's has heads after length: the transposes of the model's are taken back."""
        parts = (paddle.transpose(each, (0, 2, 1, 3)) for each in (query, key, value))
        y = nn.functional.scaled_dot_product_attention(*parts, is_causal=causal)
        return paddle.transpose(y, (0, 2, 1, 3))


def parts(work, values):
    """The model, which starts from those values."""
    model = work.model(sys.modules[__name__])
    # Paddle keeps a Linear's weight [inputs, outputs].
    turned = {id(layer.weight) for layer in model.sublayers() if isinstance(layer, nn.Linear)}
    # Running means are parameters too.
    learnt = [each for each in model.parameters() if not each.stop_gradient]
    for parameter, value in zip(learnt, values.values(), strict=True):
        parameter.set_value(value.T.copy() if id(parameter) in turned else value)
    return model


def training_step(_library, work, values, x, target):
    model = parts(work, values)
    options = dict(work.options)
    momentum = options.pop("momentum", None)
    kind = getattr(optimizer, work.optimizer)
    if momentum:
        kind, options["momentum"] = optimizer.Momentum, momentum
    rate = options.pop("lr")
    algorithm = kind(learning_rate=rate, parameters=model.parameters(), **options)
    loss_of = nn.CrossEntropyLoss() if isinstance(work.target, int) else nn.MSELoss()
    x, target = paddle.to_tensor(x), paddle.to_tensor(target)

    def step():
        loss = loss_of(model(x), target)
        algorithm.clear_grad()
        loss.backward()
        algorithm.step()
        return loss.detach()

    return step


def forward_step(_library, work, values, x, _threads):
    model, x = parts(work, values), paddle.to_tensor(x)
    model.eval()

    def step():
        with paddle.no_grad():
            return model(x)

    return step
