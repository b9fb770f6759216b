# SPDX-License-Identifier: Apache-2.0
"""Inception v3 (Szegedy et al., 2016)."""

from __future__ import annotations

from typing import Any, NamedTuple

import tenon
from tenon import Tensor, nn
from tenon.nn import init

from ._blocks import untrained
from .googlenet import BasicConv2d


class InceptionOutputs(NamedTuple):
    """Scores in training: of the model, and of the classifier on the way."""

    logits: Tensor
    aux_logits: Tensor


def _pooled(x: Tensor) -> Tensor:
    return nn.functional.avg_pool2d(x, 3, 1, 1)


def _smaller(x: Tensor) -> Tensor:
    return nn.functional.max_pool2d(x, 3, 2)


class InceptionA(nn.Module):
    """Windows of 1, 5 and twice 3, and a mean."""

    def __init__(self, channels: int, pool_features: int) -> None:
        self.branch1x1 = BasicConv2d(channels, 64, 1)
        self.branch5x5_1 = BasicConv2d(channels, 48, 1)
        self.branch5x5_2 = BasicConv2d(48, 64, 5, padding=2)
        self.branch3x3dbl_1 = BasicConv2d(channels, 64, 1)
        self.branch3x3dbl_2 = BasicConv2d(64, 96, 3, padding=1)
        self.branch3x3dbl_3 = BasicConv2d(96, 96, 3, padding=1)
        self.branch_pool = BasicConv2d(channels, pool_features, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [
            self.branch1x1(x),
            self.branch5x5_2(self.branch5x5_1(x)),
            self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x))),
            self.branch_pool(_pooled(x)),
        ]
        return tenon.concat(parts, 1)


class InceptionB(nn.Module):
    """Half the size: windows of 3 with stride 2, and a maximum."""

    def __init__(self, channels: int) -> None:
        self.branch3x3 = BasicConv2d(channels, 384, 3, stride=2)
        self.branch3x3dbl_1 = BasicConv2d(channels, 64, 1)
        self.branch3x3dbl_2 = BasicConv2d(64, 96, 3, padding=1)
        self.branch3x3dbl_3 = BasicConv2d(96, 96, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return tenon.concat([self.branch3x3(x), double, _smaller(x)], 1)


class InceptionC(nn.Module):
    """Windows of 7 as a row and a column, once and twice."""

    def __init__(self, channels: int, inner: int) -> None:
        row, column = {"padding": (0, 3)}, {"padding": (3, 0)}
        self.branch1x1 = BasicConv2d(channels, 192, 1)
        self.branch7x7_1 = BasicConv2d(channels, inner, 1)
        self.branch7x7_2 = BasicConv2d(inner, inner, (1, 7), **row)
        self.branch7x7_3 = BasicConv2d(inner, 192, (7, 1), **column)
        self.branch7x7dbl_1 = BasicConv2d(channels, inner, 1)
        self.branch7x7dbl_2 = BasicConv2d(inner, inner, (7, 1), **column)
        self.branch7x7dbl_3 = BasicConv2d(inner, inner, (1, 7), **row)
        self.branch7x7dbl_4 = BasicConv2d(inner, inner, (7, 1), **column)
        self.branch7x7dbl_5 = BasicConv2d(inner, 192, (1, 7), **row)
        self.branch_pool = BasicConv2d(channels, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        parts = [
            self.branch1x1(x),
            self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x))),
            self.branch7x7dbl_5(self.branch7x7dbl_4(double)),
            self.branch_pool(_pooled(x)),
        ]
        return tenon.concat(parts, 1)


class InceptionD(nn.Module):
    """Half the size: windows of 3 and 7 with stride 2, and a maximum."""

    def __init__(self, channels: int) -> None:
        self.branch3x3_1 = BasicConv2d(channels, 192, 1)
        self.branch3x3_2 = BasicConv2d(192, 320, 3, stride=2)
        self.branch7x7x3_1 = BasicConv2d(channels, 192, 1)
        self.branch7x7x3_2 = BasicConv2d(192, 192, (1, 7), padding=(0, 3))
        self.branch7x7x3_3 = BasicConv2d(192, 192, (7, 1), padding=(3, 0))
        self.branch7x7x3_4 = BasicConv2d(192, 192, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        seven = self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x)))
        three = self.branch3x3_2(self.branch3x3_1(x))
        return tenon.concat([three, self.branch7x7x3_4(seven), _smaller(x)], 1)


class InceptionE(nn.Module):
    """Windows of 3 as a row beside a column."""

    def __init__(self, channels: int) -> None:
        row, column = {"padding": (0, 1)}, {"padding": (1, 0)}
        self.branch1x1 = BasicConv2d(channels, 320, 1)
        self.branch3x3_1 = BasicConv2d(channels, 384, 1)
        self.branch3x3_2a = BasicConv2d(384, 384, (1, 3), **row)
        self.branch3x3_2b = BasicConv2d(384, 384, (3, 1), **column)
        self.branch3x3dbl_1 = BasicConv2d(channels, 448, 1)
        self.branch3x3dbl_2 = BasicConv2d(448, 384, 3, padding=1)
        self.branch3x3dbl_3a = BasicConv2d(384, 384, (1, 3), **row)
        self.branch3x3dbl_3b = BasicConv2d(384, 384, (3, 1), **column)
        self.branch_pool = BasicConv2d(channels, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        single = self.branch3x3_1(x)
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        parts = [
            self.branch1x1(x),
            self.branch3x3_2a(single),
            self.branch3x3_2b(single),
            self.branch3x3dbl_3a(double),
            self.branch3x3dbl_3b(double),
            self.branch_pool(_pooled(x)),
        ]
        return tenon.concat(parts, 1)


class InceptionAux(nn.Module):
    """A classifier on the way, which brings gradients to early layers."""

    def __init__(self, channels: int, num_classes: int) -> None:
        self.conv0 = BasicConv2d(channels, 128, 1)
        self.conv1 = BasicConv2d(128, 768, 5)
        self.fc = nn.Linear(768, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.conv0(nn.functional.avg_pool2d(x, 5, 3)))
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Inception3(nn.Module):
    """Classifies images [N, 3, H, W] of 75 x 75 pixels at least, usually of 299 x 299. In training with `aux_logits` the
    result is InceptionOutputs, and images have 299 x 299 pixels at least."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, dropout: float = 0.5
    ) -> None:
        self.aux_logits = aux_logits
        self.Conv2d_1a_3x3 = BasicConv2d(3, 32, 3, stride=2)
        self.Conv2d_2a_3x3 = BasicConv2d(32, 32, 3)
        self.Conv2d_2b_3x3 = BasicConv2d(32, 64, 3, padding=1)
        self.maxpool1 = nn.MaxPool2d(3, 2)
        self.Conv2d_3b_1x1 = BasicConv2d(64, 80, 1)
        self.Conv2d_4a_3x3 = BasicConv2d(80, 192, 3)
        self.maxpool2 = nn.MaxPool2d(3, 2)
        self.Mixed_5b = InceptionA(192, 32)
        self.Mixed_5c = InceptionA(256, 64)
        self.Mixed_5d = InceptionA(288, 64)
        self.Mixed_6a = InceptionB(288)
        self.Mixed_6b = InceptionC(768, 128)
        self.Mixed_6c = InceptionC(768, 160)
        self.Mixed_6d = InceptionC(768, 160)
        self.Mixed_6e = InceptionC(768, 192)
        self.AuxLogits = InceptionAux(768, num_classes) if aux_logits else None
        self.Mixed_7a = InceptionD(768)
        self.Mixed_7b = InceptionE(1280)
        self.Mixed_7c = InceptionE(2048)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.fc: Any = nn.Linear(2048, num_classes)
        for name, module in self.named_modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                own = {"AuxLogits.conv1.conv": 0.01, "AuxLogits.fc": 0.001}
                init.trunc_normal_(module.weight, 0.0, own.get(name, 0.1), -2.0, 2.0)

    def extract(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The last features [N, 2048, H, W], and in training the scores of the classifier on the way, if there is one."""
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(self.maxpool1(x)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(self.maxpool2(x))))
        x = self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))
        x = self.Mixed_6e(self.Mixed_6d(x))
        aux = self.AuxLogits(x) if self.training and self.AuxLogits is not None else None
        return self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))), aux

    def forward(self, x: Tensor) -> Any:
        """Scores [N, num_classes]."""
        features, aux = self.extract(x)
        scores = self.fc(self.dropout(self.avgpool(features)).flatten(1))
        return scores if aux is None else InceptionOutputs(scores, aux)


class InceptionV3(Inception3):
    """Inception v3 as PaddlePaddle has it: without a classifier on the way, with an `eps` of 1e-5 in its norms, and with a dropout that scales what
    it keeps by 1 in training, and everything afterwards by 0.8. With `num_classes=0` the result is the last features, of every place or, with
    `with_pool`, their means [N, C, 1, 1]."""

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        if num_classes > 0 and not with_pool:
            raise ValueError(
                f"InceptionV3: expected num_classes=0 without a pool, as classes are those of whole images, got {num_classes}"
            )
        super().__init__(max(num_classes, 0), aux_logits=False, dropout=0.2)
        self.with_pool = with_pool
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eps = 1e-5
        if num_classes <= 0:
            self.fc = None

    def forward(self, x: Tensor) -> Any:
        features = self.extract(x)[0]
        if self.fc is None:
            return self.avgpool(features) if self.with_pool else features
        kept = self.dropout(self.avgpool(features)) * (1 - self.dropout.p)
        return self.fc(kept.flatten(1))


@untrained
def inception_v3(**settings: Any) -> Inception3:
    """Inception v3."""
    return Inception3(**settings)
