# SPDX-License-Identifier: Apache-2.0
"""Gradients of rows: tables of embeddings with `sparse=True` beside the same tables with whole gradients, through steps of
training of random settings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tenon
from tenon import nn, optim

from .outcome import Fault, Refused, attempt, differs

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD with decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Adagrad with decay": lambda p: optim.Adagrad(p, lr=0.1, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
}


class RowsProgram:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw.getrandbits(32))
        self.count, self.features = draw.randint(1, 12), draw.randint(1, 4)
        self.dtype = draw.choice([tenon.float64, tenon.float32])
        options: dict[str, Any] = {"padding_idx": draw.choice([None, None, 0, -1])}
        options["scale_grad_by_freq"] = draw.random() < 0.2
        weight = tenon.tensor(self.rng.standard_normal((self.count, self.features)))
        self.tables = []
        for is_sparse in (False, True):
            table = nn.Embedding(self.count, self.features, sparse=is_sparse, **options).to(
                self.dtype
            )
            with tenon.no_grad():
                table.weight.copy_(weight)
            self.tables.append(table)
        self.name = draw.choice(list(OPTIMIZERS))
        self.optimizers = [OPTIMIZERS[self.name](table.parameters()) for table in self.tables]
        self.scalers = (
            [tenon.amp.GradScaler(init_scale=8.0) for _ in self.tables]
            if draw.random() < 0.2
            else None
        )

    def _loss(self) -> tuple[str, Callable[[Any], tenon.Tensor]]:
        shape = self.draw.choice([(3,), (2, 3), (0,), ()])
        ids = tenon.tensor(self.rng.integers(-self.count, self.count, shape))
        target = tenon.tensor(self.rng.standard_normal((*shape, self.features))).to(self.dtype)
        losses: list[tuple[str, Callable[[Any], tenon.Tensor]]] = [
            ("squares", lambda table: ((table(ids) - target) ** 2).sum()),
            ("twice", lambda table: (table(ids) * table(ids)).sum()),
            (
                "beside the whole",
                lambda table: (table(ids) * target).sum() + (table.weight**2).sum(),
            ),
            ("none", lambda table: (table(ids) * 0.0).sum()),
        ]
        return self.draw.choice(losses)

    def checks(self) -> Iterator[tuple[str, str | None]]:
        trace = [
            f"{self.count} rows of {self.features}, {self.name}, {self.dtype}, scaler {self.scalers is not None}"
        ]
        for _ in range(self.draw.randint(1, 6)):
            for optimizer in self.optimizers:
                optimizer.zero_grad(set_to_none=True)
            for _ in range(self.draw.randint(1, 2)):
                label, loss = self._loss()
                trace.append(label)
                for number, table in enumerate(self.tables):
                    total = loss(table)
                    (self.scalers[number].scale(total) if self.scalers else total).backward()
            yield "gradient", self._differs(trace, lambda table: table.weight.grad)
            if self.scalers:
                for scaler, optimizer in zip(self.scalers, self.optimizers):
                    scaler.unscale_(optimizer)
            change = self.draw.choice(["nothing", "norm", "value"])
            trace.append(f"clip by {change}")
            for table in self.tables:
                try:
                    if change == "norm":
                        attempt(nn.utils.clip_grad_norm_, table.parameters(), 0.7)
                    elif change == "value":
                        attempt(nn.utils.clip_grad_value_, table.parameters(), 0.3)
                except (Refused, Fault) as error:
                    yield change, f"{'; '.join(trace)}: {error}"
                    return
            yield "clipped gradient", self._differs(trace, lambda table: table.weight.grad)
            for number, optimizer in enumerate(self.optimizers):
                if self.scalers:
                    self.scalers[number].step(optimizer)
                    self.scalers[number].update()
                else:
                    optimizer.step()
            yield f"a step of {self.name}", self._differs(trace, lambda table: table.weight)

    def _differs(self, trace: list[str], of: Callable[[Any], Any]) -> str | None:
        want, got = (of(table) for table in self.tables)
        if want is None or got is None:
            return None if want is got else f"{'; '.join(trace)}: got {got}, expected {want}"
        text = differs(got.detach(), want.detach())
        return text and f"{'; '.join(trace)}: {text}"


def case(draw: random.Random) -> Iterator[tuple[str, str | None]]:
    yield from RowsProgram(draw).checks()
