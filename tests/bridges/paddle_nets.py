# SPDX-License-Identifier: Apache-2.0
"""Nets of Paddle that are saved and read again: of its own collection of vision models, and small ones of the kinds that are
deployed. Needs Paddle; `NETS` has a function for each, which returns the layer and its inputs (an axis that is open when the net
is saved is the first one)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

NETS: dict[str, Callable[[], tuple[Any, list[Any]]]] = {}
_numbers = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return _numbers.normal(size=shape).astype("float32")


def whole(high: int, *shape: int) -> Any:
    return _numbers.integers(0, high, shape).astype("int64")


def net(*inputs: Any) -> Callable[[type], type]:
    """The decorated layer is a net of these inputs."""

    def add(layer: type) -> type:
        NETS[layer.__name__.lower()] = lambda: (layer(), list(inputs))
        return layer

    return add


def _vision(name: str, size: int) -> tuple[Any, list[Any]]:
    model = getattr(paddle.vision.models, name)(num_classes=10)
    return model, [normal(2, 3, size, size)]


for _name, _size in (
    ("alexnet", 224),
    ("vgg11", 32),
    ("resnet18", 48),
    ("resnext50_32x4d", 48),
    ("wide_resnet50_2", 32),
    ("mobilenet_v1", 48),
    ("mobilenet_v2", 48),
    ("mobilenet_v3_small", 48),
    ("squeezenet1_0", 64),
    ("densenet121", 32),
    ("googlenet", 224),
    ("inception_v3", 96),
    ("shufflenet_v2_x0_25", 48),
):
    NETS[_name] = functools.partial(_vision, _name, _size)


@net(normal(2, 1, 28, 28))
class LeNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.net = paddle.vision.models.LeNet()

    def forward(self, x: Any) -> Any:
        return functional.softmax(self.net(x))


@net(whole(50, 2, 12), normal(2, 12) > -1.0)
class Bert(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32, padding_idx=0)
        self.index = nn.Embedding(16, 32)
        self.norm = nn.LayerNorm(32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.pooler = nn.Linear(32, 32)

    def forward(self, ids: Any, mask: Any) -> Any:
        index = paddle.arange(ids.shape[1], dtype="int64").unsqueeze(0)
        x = self.norm(self.words(ids) + self.index(index))
        hidden = (1.0 - mask.astype("float32")).unsqueeze([1, 2]) * -1e4
        x = self.encoder(x, hidden)
        return x, paddle.tanh(self.pooler(x[:, 0]))


@net(whole(50, 2, 10))
class Gpt(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape([0, 0, 3, 4, 8]).transpose([2, 0, 3, 1, 4])
        query, key, value = qkv[0], qkv[1], qkv[2]
        scores = paddle.matmul(query, key, transpose_y=True) / math.sqrt(8)
        seen = paddle.tril(paddle.ones([length, length], dtype="bool"))
        scores = paddle.where(seen, scores, paddle.full([], -1e9, "float32"))
        mixed = paddle.matmul(functional.softmax(scores), value).transpose([0, 2, 1, 3])
        x = x + self.out(mixed.reshape([batch, length, width]))
        x = x + self.down(functional.gelu(self.up(self.norm2(x)), approximate=True))
        return paddle.matmul(x, self.words.weight, transpose_y=True)


@net(normal(2, 9, 6))
class Lstm(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, direction="bidirect")
        self.head = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        out, (hidden, cell) = self.lstm(x)
        return self.head(out), hidden, cell


@net(normal(2, 9, 6))
class Gru(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(6, 8, num_layers=2)

    def forward(self, x: Any) -> Any:
        return self.gru(x)[0]


@net(normal(3, 7, 6), np.asarray([7, 2, 4], "int64"))
class Lengths(nn.Layer):
    """Sequences that end by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, direction="bidirect")
        self.gru = nn.GRU(6, 5, direction="bidirect")

    def forward(self, x: Any, lengths: Any) -> Any:
        out, (hidden, cell) = self.lstm(x, sequence_length=lengths)
        return out, hidden, cell, *self.gru(x, sequence_length=lengths)


@net(normal(2, 3, 6, 12, 12))
class Video(nn.Layer):
    """Convolutions and pools along three axes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3D(3, 8, 3, padding=1),
            nn.BatchNorm3D(8),
            nn.ReLU(),
            nn.MaxPool3D((1, 2, 2)),
            nn.Conv3D(8, 8, (3, 1, 2), stride=(1, 1, 2), padding=(1, 0, 0), groups=2),
            nn.AvgPool3D(2, padding=1),
        )
        self.pool, self.head = nn.AdaptiveAvgPool3D(1), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        x = self.body(x)
        return x, self.head(self.pool(x).flatten(1))


@net(normal(2, 9, 6))
class Rnn(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.SimpleRNN(6, 8, direction="bidirect")

    def forward(self, x: Any) -> Any:
        return self.rnn(x)[0].mean(axis=1)


@net(normal(2, 3, 32, 64))
class Crnn(nn.Layer):
    """Text of a line, as recognisers of OCR."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2D(3, 16, 3, stride=2, padding=1, bias_attr=False),
            nn.BatchNorm2D(16),
            nn.Hardswish(),
            nn.Conv2D(16, 16, 3, padding=1, groups=16),
            nn.BatchNorm2D(16),
            nn.Hardswish(),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(16, 32, 3, stride=(2, 1), padding=1),
            nn.ReLU6(),
            nn.AvgPool2D((4, 1)),
        )
        self.lstm = nn.LSTM(32, 24, direction="bidirect")
        self.head = nn.Linear(48, 40)

    def forward(self, x: Any) -> Any:
        x = self.stem(x).squeeze(2).transpose([0, 2, 1])
        return functional.softmax(self.head(self.lstm(x)[0]), axis=2)


@net(normal(1, 3, 64, 64))
class TextDetector(nn.Layer):
    """Maps of text, as detectors of OCR: a pyramid that is put together by upsampling, and two transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.LayerList([nn.Conv2D(3, 8, 3, 2, 1)])
        for _ in range(3):
            self.steps.append(nn.Conv2D(8, 8, 3, 2, 1))
        self.sides = nn.LayerList([nn.Conv2D(8, 8, 1) for _ in range(4)])
        self.conv = nn.Conv2D(32, 8, 3, padding=1)
        self.norm = nn.BatchNorm2D(8)
        self.up = nn.Conv2DTranspose(8, 8, 2, stride=2)
        self.out = nn.Conv2DTranspose(8, 1, 2, stride=2)

    def forward(self, x: Any) -> Any:
        maps = []
        for step, side in zip(self.steps, self.sides):
            x = functional.relu(step(x))
            maps.append(side(x))
        for i in (2, 1, 0):
            maps[i] = maps[i] + functional.upsample(maps[i + 1], scale_factor=2, mode="nearest")
        parts = [maps[0]] + [
            functional.interpolate(maps[i], scale_factor=2**i, mode="nearest") for i in (1, 2, 3)
        ]
        x = functional.relu(self.norm(self.conv(paddle.concat(parts[::-1], axis=1))))
        return functional.sigmoid(self.out(functional.relu(self.up(x))))


@net(normal(2, 3, 32, 32))
class Ssd(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2D(3, 8, 3, 4, 1), nn.Conv2D(8, 8, 3, 2, 1)
        self.boxes = nn.LayerList([nn.Conv2D(8, 16, 3, padding=1) for _ in range(2)])
        self.scores = nn.LayerList([nn.Conv2D(8, 20, 3, padding=1) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        first = functional.relu(self.conv1(x))
        maps = [first, functional.relu(self.conv2(first))]
        boxes = [
            paddle.reshape(paddle.transpose(conv(m), [0, 2, 3, 1]), [0, -1, 4])
            for conv, m in zip(self.boxes, maps)
        ]
        scores = [
            paddle.reshape(paddle.transpose(conv(m), [0, 2, 3, 1]), [0, -1, 5])
            for conv, m in zip(self.scores, maps)
        ]
        scores = functional.softmax(paddle.concat(scores, axis=1))
        centers = paddle.concat(boxes, axis=1)
        low = centers[:, :, :2] - 0.5 * paddle.exp(paddle.clip(centers[:, :, 2:], -4.0, 4.0))
        high = centers[:, :, :2] + 0.5 * paddle.exp(paddle.clip(centers[:, :, 2:], max=4.0))
        return paddle.concat([low, high], axis=-1), scores.transpose([0, 2, 1])


@net(normal(1, 3, 32, 32), np.array([[64, 64]], "int32"))
class Yolo(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(3, 2 * 8, 3, stride=8, padding=1)

    def forward(self, x: Any, size: Any) -> Any:
        return paddle.vision.ops.yolo_box(
            self.conv(x), size, [10, 13, 16, 30], 3, 0.01, 8, clip_bbox=True, scale_x_y=1.05
        )


@net(normal(1, 3, 32, 32), np.array([[64.0, 48.0]], "float32"))
class PriorBoxes(nn.Layer):
    """Head of a detector without anchors: distances to sides, as distributions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(3, 32, 3, stride=8, padding=1)
        self.proj = paddle.arange(8, dtype="float32").reshape([8, 1])

    def forward(self, x: Any, scale: Any) -> Any:
        x = self.conv(x)
        height, width = x.shape[2], x.shape[3]
        rows, columns = paddle.meshgrid(paddle.arange(height), paddle.arange(width))
        points = paddle.stack([columns, rows], axis=-1).astype("float32").reshape([-1, 2]) + 0.5
        spread = x.flatten(2).transpose([0, 2, 1]).reshape([-1, height * width, 4, 8])
        sides = functional.softmax(spread).matmul(self.proj).squeeze(-1)
        low, high = paddle.split(sides, 2, axis=-1)
        boxes = paddle.concat([points - low, points + high], -1) * 8
        return boxes / paddle.concat([scale, scale], axis=-1).unsqueeze(1)


@net(normal(2, 3, 32, 32))
class Unet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 16, 3, padding=1)
        self.up = nn.Conv2DTranspose(16, 8, 3, stride=2, padding=1, output_padding=1)
        self.out = nn.Conv2D(16, 2, 1)

    def forward(self, x: Any) -> Any:
        first = functional.leaky_relu(self.down1(x), 0.1)
        second = functional.elu(self.down2(functional.max_pool2d(first, 2)))
        joined = paddle.concat([first, self.up(second)], axis=1)
        return paddle.argmax(self.out(joined), axis=1), functional.log_softmax(self.out(joined), 1)
