# SPDX-License-Identifier: Apache-2.0
"""Twenty small models of the usual kinds, written for torch_models.py: layers and idioms that packages of models have less of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Function(nn.Module):
    """Layers, and what is done with them."""

    def __init__(self, function: Callable[..., Any], **layers: Any) -> None:
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def perceptron() -> tuple[Any, ...]:
    layers = [nn.Linear(20, 32), nn.SiLU(), nn.Dropout(0.1), nn.Linear(32, 5), nn.LogSoftmax(-1)]
    return nn.Sequential(*layers), torch.randn(4, 20)


def lenet() -> tuple[Any, ...]:
    layers = [nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh()]
    return nn.Sequential(*layers, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, 10)), torch.randn(
        2, 1, 28, 28
    )


def squeeze_excite() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        y = functional.relu(self.norm(self.conv(x)))
        scale = torch.sigmoid(self.up(functional.relu(self.down(y.mean((2, 3))))))
        return (y * scale[:, :, None, None]).amax((2, 3))

    layers = {"conv": nn.Conv2d(3, 16, 3, padding=1), "norm": nn.BatchNorm2d(16)}
    return Function(run, **layers, down=nn.Linear(16, 4), up=nn.Linear(4, 16)), torch.randn(
        2, 3, 12, 12
    )


def inception() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        parts = [self.one(x), self.three(x), self.five(x), functional.max_pool2d(x, 3, 1, 1)]
        return functional.adaptive_avg_pool2d(torch.cat(parts, 1), 2).flatten(1)

    convolutions = {"one": nn.Conv2d(4, 8, 1), "three": nn.Conv2d(4, 8, 3, padding=1)}
    return Function(run, **convolutions, five=nn.Conv2d(4, 4, 5, padding=2)), torch.randn(
        2, 4, 9, 9
    )


def autoencoder() -> tuple[Any, ...]:
    down = [nn.Conv2d(3, 8, 3, 2, 1), nn.ELU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ELU()]
    up = [nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(8, 3, 4, 2, 1)]
    return nn.Sequential(*down, *up, nn.Sigmoid()), torch.randn(2, 3, 16, 16)


def upsampling() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        small = functional.max_pool2d(self.first(x), 2)
        large = functional.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
        return self.last(torch.cat([x, large], 1))

    return Function(run, first=nn.Conv2d(3, 8, 3, padding=1), last=nn.Conv2d(11, 2, 1)), (
        torch.randn(2, 3, 8, 8)
    )


def sound() -> tuple[Any, ...]:
    layers = [nn.Conv1d(2, 8, 5, dilation=2, padding=4), nn.GroupNorm(2, 8), nn.GELU()]
    layers += [nn.Conv1d(8, 8, 5, groups=8), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(3), nn.Flatten()]
    return nn.Sequential(*layers), torch.randn(2, 2, 40)


def volumes() -> tuple[Any, ...]:
    layers = [nn.Conv3d(1, 4, 3), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten()]
    return nn.Sequential(*layers), torch.randn(2, 1, 8, 8, 8)


def memory() -> tuple[Any, ...]:
    layers = {"lstm": nn.LSTM(6, 8, 2, batch_first=True), "head": nn.Linear(8, 3)}
    return Function(lambda self, x: self.head(self.lstm(x)[0][:, -1]), **layers), torch.randn(
        2, 7, 6
    )


def both_ways() -> tuple[Any, ...]:
    layers = {"gru": nn.GRU(6, 8, bidirectional=True, batch_first=True), "head": nn.Linear(16, 3)}
    return Function(lambda self, x: self.head(self.gru(x)[0].mean(1)), **layers), torch.randn(
        2, 7, 6
    )


def language() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        size = x.shape[1]
        mask = torch.full((size, size), float("-inf")).triu(1)
        y = self.words(x) + self.positions.weight[:size]
        return self.head(self.layers(y, mask=mask, is_causal=True))

    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    layers = {"words": nn.Embedding(50, 16), "positions": nn.Embedding(16, 16)}
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Function(run, **layers, layers=encoder, head=nn.Linear(16, 50)), torch.randint(
        0, 50, (2, 9)
    )


def translation() -> tuple[Any, ...]:
    model = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
    return model, torch.randn(2, 5, 16), torch.randn(2, 4, 16)


def rotation() -> tuple[Any, ...]:
    """Attention with rotated queries, as Llama has, and grouped heads."""

    def run(self: Any, x: Any) -> Any:
        batch, length, _ = x.shape
        steps = torch.arange(length, device=x.device)[:, None]
        angles = steps / 100 ** (torch.arange(4, device=x.device) / 4)
        sine, cosine = angles.sin().repeat(1, 2), angles.cos().repeat(1, 2)

        def rotated(y: Any) -> Any:
            first, second = y.chunk(2, -1)
            return y * cosine + torch.cat([-second, first], -1) * sine

        query = rotated(self.query(x).view(batch, length, 4, 8).transpose(1, 2))
        key, value = self.pair(x).view(batch, length, 2, 2, 8).permute(2, 0, 3, 1, 4)
        key, value = (y.repeat_interleave(2, 1) for y in (rotated(key), value))
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        y = self.out(y.transpose(1, 2).reshape(batch, length, 32))
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)

    layers = {"query": nn.Linear(32, 32), "pair": nn.Linear(32, 32), "out": nn.Linear(32, 32)}
    return Function(run, **layers), torch.randn(2, 6, 32)


def experts() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        gates = x.new_zeros(x.shape[0], 4).scatter(1, chosen, weights)
        each = torch.einsum("bi,eio->beo", x, self.experts)
        return (functional.gelu(each) * gates[:, :, None]).sum(1)

    return Function(
        run, gate=nn.Linear(8, 4), experts=nn.Parameter(torch.randn(4, 8, 6))
    ), torch.randn(5, 8)


def recommender() -> tuple[Any, ...]:
    def run(self: Any, users: Any, items: Any, numbers: Any) -> Any:
        parts = torch.stack([self.users(users), self.items(items).sum(1), self.numbers(numbers)], 1)
        crossed = torch.bmm(parts, parts.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.head(torch.cat([crossed, numbers], 1))).squeeze(1)

    layers = {
        "users": nn.Embedding(30, 8),
        "items": nn.Embedding(40, 8),
        "numbers": nn.Linear(5, 8),
    }
    inputs = torch.randint(0, 30, (4,)), torch.randint(0, 40, (4, 3)), torch.randn(4, 5)
    return Function(run, **layers, head=nn.Linear(14, 1)), *inputs


def graph() -> tuple[Any, ...]:
    def run(self: Any, x: Any, edges: Any) -> Any:
        for layer in (self.first, self.second):
            messages = layer(x)[edges[0]]
            x = functional.relu(x.new_zeros(6, 8).index_add(0, edges[1], messages))
        return functional.normalize(x.mean(0), dim=0)

    layers = {"first": nn.Linear(4, 8), "second": nn.Linear(8, 8)}
    return Function(run, **layers), torch.randn(6, 4), torch.randint(0, 6, (2, 15))


def warping() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        theta = self.where(x.flatten(1)).view(-1, 2, 3) * 0.1 + torch.eye(2, 3, device=x.device)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return functional.grid_sample(x, grid, align_corners=False)

    return Function(run, where=nn.Linear(48, 6)), torch.randn(2, 3, 4, 4)


def spectrum() -> tuple[Any, ...]:
    def run(self: Any, x: Any) -> Any:
        y = torch.fft.rfft(x, dim=1)
        y = torch.view_as_complex(torch.view_as_real(y) * self.filter)
        return functional.layer_norm(torch.fft.irfft(y, n=x.shape[1], dim=1), (4,))

    return Function(run, filter=nn.Parameter(torch.randn(5, 4, 2))), torch.randn(2, 8, 4)


def similarity() -> tuple[Any, ...]:
    def run(self: Any, x: Any, y: Any) -> Any:
        first, second = (self.body(each) for each in (x, y))
        near = functional.cosine_similarity(first[:, None], second[None], dim=-1)
        return near, torch.cdist(first, second), near.argsort(1)[:, :2], near.logsumexp(1)

    body = nn.Sequential(nn.Linear(6, 8), nn.PReLU(), nn.LayerNorm(8))
    return Function(run, body=body), torch.randn(3, 6), torch.randn(4, 6)


def choices() -> tuple[Any, ...]:
    """Indices, masks and loops over what is known when the model is exported."""

    def run(self: Any, x: Any) -> Any:
        state = x.new_zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        y = torch.where(state > 0, state, state.clamp(-0.1, 0.1)).masked_fill(state < -0.9, 0.0)
        y = torch.gather(y, 1, y.argmax(1, keepdim=True)) + y.cumsum(1).flip(1).roll(1, 1)
        return torch.nan_to_num(y / y.norm(dim=1, keepdim=True)), y.std(1), y.sort(1).values

    return Function(run, cell=nn.GRUCell(4, 8)), torch.randn(3, 5, 4)


MODELS: tuple[Callable[[], tuple[Any, ...]], ...] = (
    perceptron, lenet, squeeze_excite, inception, autoencoder, upsampling, sound, volumes, memory, both_ways, language,
    translation, rotation, experts, recommender, graph, warping, spectrum, similarity, choices,
)  # fmt: skip
