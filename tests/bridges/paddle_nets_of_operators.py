# SPDX-License-Identifier: Apache-2.0
"""Nets of Paddle that use many operators of a kind, parts of newer models, branches and loops; added to `NETS`."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from tests.bridges.paddle_nets import net, normal, whole


@net(normal(2, 4, 8, 8))
class Norms(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.group, self.instance = nn.GroupNorm(2, 4), nn.InstanceNorm2D(4)
        self.layer, self.batch = nn.LayerNorm([8, 8]), nn.BatchNorm2D(4)
        self.local = nn.LocalResponseNorm(3)

    def forward(self, x: Any) -> Any:
        x = self.layer(self.batch(self.instance(self.group(x))))
        return functional.normalize(x, axis=1), self.local(x)


@net(normal(2, 6, 5))
class Activations(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.prelu = nn.PReLU(6, init=0.2)

    def forward(self, x: Any) -> Any:
        x = self.prelu(x)
        f = functional
        parts = [f.relu(x), f.relu6(x), f.gelu(x), f.silu(x), f.swish(x), f.mish(x), f.elu(x, 0.5)]
        parts += [
            f.celu(x),
            f.selu(x),
            f.softplus(x),
            f.softsign(x),
            f.hardtanh(x),
            f.tanhshrink(x),
        ]
        parts += [
            f.hardsigmoid(x),
            f.hardswish(x),
            f.hardshrink(x),
            f.softshrink(x),
            f.log_sigmoid(x),
        ]
        parts += [f.leaky_relu(x), f.thresholded_relu(x), f.sigmoid(x), paddle.tanh(x), f.glu(x, 1)]
        return paddle.concat([part.flatten(1) for part in parts], axis=1)


@net(normal(2, 6, 5), np.abs(normal(2, 6, 5)) + 0.5)
class Arithmetic(nn.Layer):
    def forward(self, x: Any, y: Any) -> Any:
        parts = [
            x + y,
            x - y,
            x * y,
            x / y,
            x**2,
            paddle.pow(y, 1.5),
            y**x,
            x % y,
            x // y,
            -x,
            2 - x,
        ]
        parts += [
            paddle.maximum(x, y),
            paddle.minimum(x, y),
            paddle.abs(x),
            paddle.sqrt(y),
            paddle.rsqrt(y),
        ]
        parts += [
            paddle.exp(x),
            paddle.log(y),
            paddle.log1p(y),
            paddle.log2(y),
            paddle.sin(x),
            paddle.cos(x),
        ]
        parts += [
            paddle.floor(x),
            paddle.ceil(x),
            paddle.round(x),
            paddle.sign(x),
            paddle.erf(x),
            paddle.square(x),
        ]
        parts += [
            paddle.atan(x),
            paddle.reciprocal(y),
            paddle.expm1(x),
            paddle.fmax(x, y),
            3.0 / y,
            x * 2 + 1,
        ]
        parts += [
            paddle.atan2(x, y),
            paddle.scale(x, 2.0, 0.5, bias_after_scale=False),
            paddle.rsqrt(y),
        ]
        return paddle.stack(parts, axis=1)


@net(normal(2, 6, 5))
class Reductions(nn.Layer):
    def forward(self, x: Any) -> Any:
        parts = [x.sum(1), x.mean([1, 2], keepdim=True).flatten(1), x.max(-1), x.min(1), x.prod(2)]
        parts += [
            paddle.logsumexp(x, 1),
            x.std(1),
            x.var(-1),
            paddle.norm(x, 2, 1),
            paddle.norm(x, 1, 2),
        ]
        parts += [
            paddle.cumsum(x, 1).flatten(1),
            paddle.cumprod(x, 1).flatten(1),
            x.norm("fro", [1, 2]).unsqueeze(1),
        ]
        parts += [
            paddle.any(x > 1, axis=1).astype("float32"),
            paddle.all(x > -2, axis=2).astype("float32"),
        ]
        return paddle.concat(parts, axis=1), x.sum(), x.mean(), paddle.max(x)


@net(normal(2, 6, 5), normal(2, 6, 5))
class Comparisons(nn.Layer):
    def forward(self, x: Any, y: Any) -> Any:
        masks = [x > y, x < y, x >= y, x <= y, x == y, x != y, paddle.isnan(x), paddle.isfinite(x)]
        masks += [paddle.logical_and(x > 0, y > 0), paddle.logical_or(x > 0, y > 0)]
        masks += [paddle.logical_not(x > 0), paddle.logical_xor(x > 0, y > 0)]
        counted = sum(mask.astype("int32") for mask in masks)
        return counted, paddle.where(x > y, x, y), paddle.where(x > 0, x, paddle.zeros_like(x))


@net(normal(2, 6, 8))
class Shapes(nn.Layer):
    def forward(self, x: Any) -> Any:
        first, second = paddle.split(x, [2, -1], axis=1)
        a, b, c, d = paddle.chunk(x, 4, axis=2)
        rows = paddle.unbind(x, axis=1)
        parts = [
            paddle.flip(x, [1]),
            paddle.roll(x, 2, 1),
            paddle.tile(x, [1, 2, 1]),
            second,
            first,
        ]
        parts += [
            paddle.concat([d, c, b, a], 2),
            paddle.stack(rows[::-1], 1),
            x[:, ::2],
            x[:, 1:-1],
        ]
        parts += [paddle.expand(x[:, :1], [-1, 3, -1]), paddle.repeat_interleave(x, 2, 1)]
        parts += [
            paddle.strided_slice(x, [1], [5], [0], [-2]),
            x.transpose([0, 2, 1]).reshape([0, -1, 8]),
        ]
        parts += [
            functional.pad(x, [1, 2], data_format="NCL")[:, :, :8],
            x.squeeze().unsqueeze(1)[:, 0],
        ]
        return paddle.concat(parts, axis=1), x.T.shape[0] * x.mean()


@net(normal(2, 6, 8), whole(6, 3))
class Indices(nn.Layer):
    def forward(self, x: Any, index: Any) -> Any:
        gathered = paddle.gather(x, index, axis=1)
        selected = paddle.index_select(x, index, axis=1)
        values, order = paddle.topk(x, 3, axis=-1)
        ordered, least = paddle.sort(x, axis=1), paddle.argsort(x, axis=-1, descending=True)
        written = paddle.scatter(x[0], index, paddle.ones([3, 8]) * 0.5, overwrite=True)
        taken = paddle.take_along_axis(x, order, axis=-1)
        picked = paddle.gather_nd(x, paddle.stack([index % 2, index], axis=1))
        return gathered, selected, values, order, ordered, least, written, taken, picked


@net(normal(2, 6, 8))
class Writes(nn.Layer):
    def forward(self, x: Any) -> Any:
        y = x + 1
        y[:, 1:3] = 0.5
        y[:, 4] = x[:, 0] * 2
        z = paddle.zeros([2, 6, 8])
        z[:, ::2, :4] = x[:, ::2, 4:]
        return y, z, functional.one_hot((x[:, 0] > 0).astype("int64"), 4)


@net(normal(2, 4, 12))
class Temporal(nn.Layer):
    """One axis: convolutions with dilation, pools, and a transposed one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1D(4, 8, 3, padding=2, dilation=2)
        self.conv2 = nn.Conv1D(8, 8, 3, padding="SAME", groups=2)
        self.norm = nn.BatchNorm1D(8)
        self.up = nn.Conv1DTranspose(8, 4, 4, stride=2, padding=1)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm(self.conv2(self.conv1(x))))
        x = functional.max_pool1d(x, 2) + functional.avg_pool1d(x, 2)
        return self.up(x), functional.adaptive_avg_pool1d(x, 3)


@net(normal(2, 4, 9, 11))
class Images(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(4, 8, 3, stride=2, padding="SAME", padding_mode="zeros")
        self.reflect = nn.Pad2D([1, 2, 1, 0], mode="reflect")
        self.edge = nn.Pad2D(2, mode="replicate")
        self.valid = nn.Conv2D(4, 4, 3, padding=[0, 1, 2, 1])

    def forward(self, x: Any) -> Any:
        shuffled = functional.pixel_shuffle(self.conv(x), 2)
        pooled = functional.adaptive_avg_pool2d(x, [3, 4])
        most = functional.adaptive_max_pool2d(x, 3)
        sized = functional.interpolate(x, size=[12, 7], mode="bilinear", align_corners=False)
        aligned = functional.interpolate(x, size=[12, 7], mode="bilinear", align_corners=True)
        cubic = functional.interpolate(x, scale_factor=2, mode="bicubic")
        near = functional.interpolate(x, size=[5, 22], mode="nearest")
        ceiled = functional.max_pool2d(x, 3, 2, 1, ceil_mode=True)
        averaged = functional.avg_pool2d(x, 3, 2, 1, exclusive=False)
        unfolded = functional.unfold(x, [3, 3], strides=2, paddings=1)
        padded = self.reflect(x), self.edge(x), self.valid(x)
        return (
            shuffled,
            pooled,
            most,
            sized,
            aligned,
            cubic,
            near,
            ceiled,
            averaged,
            unfolded,
            *padded,
        )


@net(normal(2, 3, 8, 8))
class SpatialTransformer(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.angles = nn.Linear(192, 6)

    def forward(self, x: Any) -> Any:
        theta = self.angles(x.flatten(1)).reshape([-1, 2, 3])
        grid = functional.affine_grid(theta, [x.shape[0], 3, 8, 8], align_corners=False)
        return functional.grid_sample(x, grid, mode="bilinear", align_corners=True)


@net(normal(2, 3, 16, 16))
class Mixer(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2D(3, 16, 4, stride=4)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.tokens, self.channels = nn.Linear(16, 16), nn.Linear(16, 16)
        self.drop = nn.Dropout(0.1, mode="downscale_in_infer")

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose([0, 2, 1])
        x = x + self.tokens(self.norm1(x).transpose([0, 2, 1])).transpose([0, 2, 1])
        x = self.drop(x + self.channels(self.norm2(x)))
        return paddle.einsum("bnc,bmc->bnm", x, x)


@net(normal(1, 8, 8, 16))
class Swin(nn.Layer):
    """Windows of a shifted image, and a table of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)
        self.table = self.create_parameter([49, 2])
        rows = paddle.arange(16)
        index = (rows.unsqueeze(0) // 4 - rows.unsqueeze(1) // 4 + 3) * 7
        index = index + (rows.unsqueeze(0) % 4 - rows.unsqueeze(1) % 4 + 3)
        self.register_buffer("index", index)

    def forward(self, x: Any) -> Any:
        x = paddle.roll(x, [-2, -2], axis=[1, 2])
        x = x.reshape([-1, 2, 4, 2, 4, 16]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, 16, 16])
        qkv = self.qkv(x).reshape([-1, 16, 3, 2, 8]).transpose([2, 0, 3, 1, 4])
        query, key, value = qkv.unbind(0)
        scores = (query * 8**-0.5) @ key.transpose([0, 1, 3, 2])
        bias = self.table[self.index.reshape([-1])].reshape([16, 16, -1]).transpose([2, 0, 1])
        x = functional.softmax(scores + bias.unsqueeze(0), axis=-1) @ value
        x = self.proj(x.transpose([0, 2, 1, 3]).reshape([-1, 16, 16]))
        return x.reshape([-1, 2, 2, 4, 4, 16]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, 8, 8, 16])


@net(normal(2, 7, 16), normal(2, 5, 16))
class Decoder(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(16, 2, 32, normalize_before=True)

    def forward(self, target: Any, memory: Any) -> Any:
        return self.layer(target, memory)


@net(normal(2, 6, 4, 8))
class Attention(nn.Layer):
    def forward(self, x: Any) -> Any:
        return functional.scaled_dot_product_attention(x, x * 0.5, x + 1, is_causal=True)


@net(normal(2, 4, 8, 8))
class Deformable(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.offset, self.mask = nn.Conv2D(4, 18, 3, padding=1), nn.Conv2D(4, 9, 3, padding=1)
        self.conv = paddle.vision.ops.DeformConv2D(4, 6, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return self.conv(x, self.offset(x), functional.sigmoid(self.mask(x)))


@net(
    normal(1, 4, 16, 16),
    np.array([[1, 1, 9, 9], [2, 3, 15, 12.5]], "float32"),
    np.array([2], "int32"),
)
class Regions(nn.Layer):
    def forward(self, x: Any, boxes: Any, count: Any) -> Any:
        return paddle.vision.ops.roi_align(x, boxes, count, 3, 0.5, aligned=True)


@net(normal(3, 4))
class Branch(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.yes, self.no = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            y = functional.relu(self.yes(x))
        else:
            y = self.no(x) - 1
        return y * 2


@net(normal(3, 4))
class Loop(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        i = paddle.zeros([1], "int64")
        while (i < 5) & (paddle.abs(x).max() < 100):
            x = paddle.tanh(self.step(x)) * 1.5
            i = i + 1
        return x, i


@net(whole(30, 4, 6))
class Classifier(nn.Layer):
    """Words, their mean without padding, and a label."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, ids: Any) -> Any:
        is_word = (ids != 0).astype("float32").unsqueeze(-1)
        total = (self.words(ids) * is_word).sum(1)
        mean = total / paddle.clip(is_word.sum(1), min=1.0)
        scores = self.head(mean)
        return scores, paddle.argmax(scores, -1)


@net(normal(2, 3, 24, 24))
class LiteNet(nn.Layer):
    """Depthwise convolutions with squeeze and excitation, as classifiers of phones."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2D(3, 8, 3, stride=2, padding=1, bias_attr=False)
        self.deep = nn.Conv2D(8, 8, 5, padding=2, groups=8, bias_attr=False)
        self.point = nn.Conv2D(8, 16, 1, bias_attr=False)
        self.norms = nn.LayerList([nn.BatchNorm2D(8), nn.BatchNorm2D(8), nn.BatchNorm2D(16)])
        self.pool, self.first = nn.AdaptiveAvgPool2D(1), nn.Conv2D(8, 2, 1)
        self.second, self.head = nn.Conv2D(2, 8, 1), nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        x = functional.hardswish(self.norms[0](self.stem(x)))
        x = functional.hardswish(self.norms[1](self.deep(x)))
        gate = functional.hardsigmoid(self.second(functional.relu(self.first(self.pool(x)))))
        x = functional.hardswish(self.norms[2](self.point(x * gate)))
        return self.head(paddle.flatten(self.pool(x), start_axis=1))


@net(normal(2, 64))
class Double(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Bilinear(64, 64, 6), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        y = self.second(self.first(x, x)).astype("float64")
        return functional.softmax(y.cumsum(-1), -1), functional.cosine_similarity(x, x + 1)
