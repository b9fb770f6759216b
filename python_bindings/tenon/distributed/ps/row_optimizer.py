# SPDX-License-Identifier: Apache-2.0
"""Updates of rows: those of the optimizers of tenon.optim, with the bits that they give a dense table."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, _core, optim

from .settings import Settings

# Blocks of gradients, one of each worker: ids, gradients, shows or None, clicks or None.
Block = tuple[Tensor, Tensor, Tensor | None, Tensor | None]

SUM = "Sum"  # what is pushed is added: the servers' half of mode geo
_own: dict[str, type[optim.Optimizer]] = {}


def register_optimizer(kind: type[optim.Optimizer]) -> type[optim.Optimizer]:
    """Let tables use an optimizer of your own, by the name of its class; servers and workers import the module that does
    it. Its `updates_rows` says whether rows may be updated alone, `new_state` what it keeps, of the shape of the rows."""
    if hasattr(optim, kind.__name__):
        raise ValueError(
            f"register_optimizer: expected a name of its own, got that of optim.{kind.__name__}"
        )
    _own[kind.__name__] = kind
    return kind


def optimizer_name(optimizer: Any) -> str:
    name = (
        optimizer if isinstance(optimizer, str) else getattr(optimizer, "__name__", repr(optimizer))
    )
    if _found(name) is None:
        raise ValueError(
            f"Table: expected a class of tenon.optim as optimizer, or one given to ps.register_optimizer, got {name!r}"
        )
    return name


def _found(name: str) -> type[optim.Optimizer] | None:
    kind = _own.get(name) or getattr(optim, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, optim.Optimizer) else None


class RowOptimizer:
    """The optimizer of one table, applied to rows that were taken out of it."""

    def __init__(self, settings: Settings) -> None:
        self._dim = settings.dim
        self._optimizer: optim.Optimizer | None = None
        self._state: list[str] = []  # of what it keeps: what has the rows' shape
        self.initial_state = 0.0
        if settings.optimizer == SUM:
            return
        kind = _found(settings.optimizer)
        if kind is None:
            raise ValueError(
                f"Table: the server knows no optimizer {settings.optimizer!r}; import the module that registers it there, too"
            )
        probe = tenon.zeros([1, settings.dim]).requires_grad_()
        self._optimizer = kind([probe], **settings.options)
        self._group = self._optimizer.param_groups[0]
        if not self._optimizer.updates_rows(self._group):
            raise ValueError(
                f"Table: {settings.optimizer} with {settings.options} changes rows without a gradient, which servers do "
                "not; SGD without momentum, Adagrad, both without weight decay, and optimizers with lazy=True do"
            )
        begun = self._optimizer.new_state(probe.detach(), self._group)
        first = set()
        for key, value in begun.items():
            if isinstance(value, Tensor) and tuple(value.shape) == tuple(probe.shape):
                self._state.append(key)
                first.add(value[0, 0].item())
        self._rest = {
            key: value for key, value in begun.items() if key not in self._state and key != "step"
        }
        if len(first) > 1:
            raise ValueError(
                f"Table: {settings.optimizer} begins with different numbers, which a table cannot"
            )
        self.initial_state = first.pop() if first else 0.0

    @property
    def state_width(self) -> int:
        return self._dim * len(self._state)

    def update(self, values: Tensor, gradients: Tensor, step: int) -> Tensor:
        """Rows [n, dim + state_width] after a push, the `step`th from 0."""
        if self._optimizer is None:
            return values + gradients
        if self._group["maximize"]:
            gradients = -gradients
        parts = values.reshape([values.shape[0], 1 + len(self._state), self._dim])
        rows = [parts[:, index].contiguous() for index in range(1 + len(self._state))]
        state = {**self._rest, "step": step, **dict(zip(self._state, rows[1:], strict=True))}
        self._optimizer.update(rows[0], gradients, state, self._group)
        return tenon.cat([rows[0], *(state[key] for key in self._state)], 1)


def push(
    table: _core.Table, optimizer: RowOptimizer, dim: int, blocks: list[Block], divisor: float
) -> None:
    """Add up what workers pushed, in their order, and update each id's row once."""
    total = sum(block[0].numel() for block in blocks)
    step = table.counters()["version"]
    ids, gradients = tenon.empty([total], dtype=tenon.int64), tenon.empty([total, dim])
    shows, clicks = tenon.empty([total]), tenon.empty([total])
    with tenon.no_grad():
        count = _core._merge_gradients(blocks, dim, divisor, ids, gradients, shows, clicks)
        ids, gradients = ids[:count], gradients[:count]
        indices = tenon.empty([count], dtype=tenon.int64)
        width = dim + optimizer.state_width
        values = tenon.empty([count, width])
        rows = table.push_begin(ids, shows[:count], clicks[:count], indices, values)
        if rows == 0:
            return
        if rows < count:
            ids = tenon.index_select(ids, indices[:rows], 0)
            gradients = tenon.index_select(gradients, indices[:rows], 0)
        table.push_end(ids, optimizer.update(values[:rows], gradients, step).contiguous())
