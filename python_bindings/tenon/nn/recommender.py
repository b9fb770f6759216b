# SPDX-License-Identifier: Apache-2.0
"""Layers of recommenders: features brought to mean 0 by sums over all data, and classes told from noise."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import init
from .module import Module
from .parameter import Buffer, Parameter


class DataNorm(Module):
    """Features [N, num_features] minus their mean over all data seen, over the root of their mean square deviation from it; see tenon.data_norm.

    The layer keeps the number of rows, their sum and the sum of squared deviations. In training each batch is normalised by what
    came before it, and then added: what was there counts `summary_decay_rate` of it. `eps` is added to each squared deviation. With
    `slot_dim` above 0 rows count for those slots alone that have shows. `batch_size`, `batch_sum` and `batch_square_sum` are what the sums start from.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        slot_dim: int = -1,
        summary_decay_rate: float = 0.9999999,
        enable_scale_and_shift: bool = False,
        batch_size: float = 1e4,
        batch_sum: float = 0.0,
        batch_square_sum: float = 1e4,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if slot_dim > 0 and num_features % slot_dim:
            raise ValueError(
                f"DataNorm: expected a slot_dim that divides num_features={num_features}, got {slot_dim}"
            )
        if batch_size <= 0 or batch_square_sum <= 0:
            raise ValueError(
                f"DataNorm: expected batch_size and batch_square_sum above 0, got {batch_size} and {batch_square_sum}"
            )
        self.num_features, self.eps, self.slot_dim = num_features, eps, slot_dim
        self.summary_decay_rate = summary_decay_rate
        options = {"device": device, "dtype": dtype or tenon.float32}

        def filled(value: float) -> Tensor:
            return tenon.full([num_features], value, **options)

        self.batch_size = Buffer(filled(batch_size))
        self.batch_sum = Buffer(filled(batch_sum))
        self.batch_square_sum = Buffer(filled(batch_square_sum))
        self.weight = Parameter(filled(1.0)) if enable_scale_and_shift else None
        self.bias = Parameter(filled(0.0)) if enable_scale_and_shift else None

    def forward(self, x: Tensor) -> Tensor:
        out, mean, _ = tenon.data_norm(
            x,
            self.batch_size,
            self.batch_sum,
            self.batch_square_sum,
            self.weight,
            self.bias,
            self.slot_dim,
        )
        if self.training:
            with tenon.no_grad():
                self._add(x, mean)
        return out

    def _add(self, x: Tensor, mean: Tensor) -> None:
        x = x.to(self.batch_size.dtype)  # sums over a batch exceed what float16 holds
        seen = tenon.ones_like(x)
        if self.slot_dim > 0:
            slots = x.reshape([x.shape[0], -1, self.slot_dim])
            shown = (slots[:, :, :1].abs() >= 1e-7).to(x.dtype)
            seen = tenon.expand(shown, slots.shape).reshape(x.shape)
        counts = seen.sum(0)
        square = (((x - mean) ** 2) * seen).sum(0) + counts * self.eps
        for held, added in (
            (self.batch_size, counts),
            (self.batch_sum, (x * seen).sum(0)),
            (self.batch_square_sum, square),
        ):
            held.copy_(held * self.summary_decay_rate + added)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, slot_dim={self.slot_dim}"


class NCELoss(Module):
    """tenon.nce with the parameters of `num_total_classes` classes: the loss [N, 1] of each row's targets against `num_neg_samples` classes that are drawn.

    `sampler` says how these are drawn: 'uniform'; 'log_uniform', class c with the probability log((c + 2) / (c + 1)) / log(classes + 1), for classes
    that are sorted by how frequent they are; or 'custom_dist', by the probabilities `custom_dist`. They are drawn from `generator`, a
    tenon.random.Generator, where one is given.
    """

    def __init__(
        self,
        feature_size: int,
        num_total_classes: int,
        num_neg_samples: int = 10,
        sampler: str = "uniform",
        custom_dist: Any = None,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        generator: Any = None,
    ) -> None:
        if sampler not in ("uniform", "log_uniform", "custom_dist"):
            raise ValueError(
                f"NCELoss: expected sampler 'uniform', 'log_uniform' or 'custom_dist', got {sampler!r}"
            )
        if (custom_dist is not None) != (sampler == "custom_dist"):
            raise ValueError(
                f"NCELoss: expected custom_dist if, and only if, sampler is 'custom_dist', got {sampler!r}"
            )
        if num_neg_samples < 1 or num_total_classes < 1:
            raise ValueError(
                f"NCELoss: expected at least one class and one negative sample, got {num_total_classes} and {num_neg_samples}"
            )
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.feature_size, self.num_total_classes = feature_size, num_total_classes
        self.num_neg_samples, self.sampler = num_neg_samples, sampler
        self.generator = generator
        self.probabilities = None
        if sampler != "uniform":
            values = custom_dist
            if sampler == "log_uniform":
                whole = math.log(num_total_classes + 1)
                values = [math.log((c + 2) / (c + 1)) / whole for c in range(num_total_classes)]
            probabilities = tenon.asarray(values).to(**options)
            if tuple(probabilities.shape) != (num_total_classes,):
                raise ValueError(
                    f"NCELoss: expected custom_dist of {num_total_classes} probabilities, got shape {tuple(probabilities.shape)}"
                )
            self.probabilities = Buffer(probabilities, persistent=False)
        self.weight = Parameter(tenon.empty([num_total_classes, feature_size], **options))
        self.bias = Parameter(tenon.zeros([num_total_classes], **options)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.xavier_uniform_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, x: Tensor, label: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        return tenon.nce(
            x,
            label,
            self.weight,
            self.bias,
            self.probabilities,
            sample_weight,
            count=self.num_neg_samples,
            generator=self.generator,
        )

    def extra_repr(self) -> str:
        return f"{self.feature_size}, {self.num_total_classes}, num_neg_samples={self.num_neg_samples}, sampler={self.sampler!r}"
