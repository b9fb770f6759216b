# SPDX-License-Identifier: Apache-2.0
"""Mode geo: a worker's own copies of rows, and what changed in them since servers gave them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tenon
from tenon import Tensor

from .row_optimizer import SUM, RowOptimizer, push
from .settings import Settings


class LocalRows:
    """Rows are copied from the servers when they are first read after a round of `steps` pushes; what the optimizer keeps of
    a row stays over rounds."""

    def __init__(self, settings: Settings, steps: int, workers: int) -> None:
        self._settings = dataclasses.replace(settings, hot_rows=0)
        self._steps, self._workers = steps, workers
        self._optimizer = RowOptimizer(settings)
        self.forget()

    def forget(self) -> None:
        """Begin without copies."""
        self._rows = self._settings.make(self._optimizer.state_width, self._optimizer.initial_state)
        self._begin_round()

    def _begin_round(self) -> None:
        plain = dataclasses.replace(self._settings, optimizer=SUM, options={})
        self._base = plain.make(0, 0.0)  # as servers gave them, in this round
        self._touched: list[Tensor] = []
        self._pushes = 0

    def pull(self, flat: Tensor, from_servers: Callable[[Tensor], Tensor]) -> Tensor:
        self._copy(flat, from_servers)
        out = tenon.empty([flat.numel(), self._settings.dim])
        self._rows.pull(flat, out)
        return out

    def _copy(self, flat: Tensor, from_servers: Callable[[Tensor], Tensor]) -> None:
        has = tenon.empty([flat.numel()], dtype=tenon.bool)
        self._base.contains(flat, has)
        if not bool(has.all().item()):
            missing = _unique(flat[~has])
            rows = from_servers(missing)
            self._base.assign(missing, rows)
            self._rows.assign(missing, rows)

    def push(
        self, flat: Tensor, gradients: Tensor, from_servers: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor] | None:
        """An update of the copies; at the end of a round, what servers are to add."""
        self._copy(flat, from_servers)
        push(self._rows, self._optimizer, self._settings.dim, [(flat, gradients, None, None)], 1.0)
        self._touched.append(flat)
        self._pushes += 1
        if self._pushes < self._steps:
            return None
        ids = _unique(tenon.cat(self._touched))
        now, before = (tenon.empty([ids.numel(), self._settings.dim]) for _ in range(2))
        self._rows.pull(ids, now)
        self._base.pull(ids, before)
        self._begin_round()
        return ids, (now - before) / self._workers


def _unique(ids: Tensor) -> Tensor:
    found = tenon.unique(ids)
    assert isinstance(found, Tensor)
    return found
