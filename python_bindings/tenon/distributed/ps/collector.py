# SPDX-License-Identifier: Apache-2.0
"""The gradients of rows that one backward pass makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor, _core


class Collector:
    """What a backward pass makes of a table's rows, in the order of the pass; several modules may read one table."""

    def __init__(self, push: Callable[..., None]) -> None:
        self._push = push
        self._pass: int | None = None
        self._parts: list[tuple[Any, ...]] = []

    def collect(
        self, leaf: Tensor, ids: Tensor, shows: Tensor | None, clicks: Tensor | None
    ) -> None:
        """Of rows that were pulled for `ids`: their gradient is whole."""
        number = _core._backward_pass_number()
        if number != self._pass:
            self._pass, self._parts = number, []  # a pass that raised has left its parts
            _core._call_after_backward(self._finish)
        assert leaf.grad is not None
        self._parts.append((ids, leaf.grad.to("cpu"), shows, clicks))
        leaf.grad = None  # another pass over the same graph begins anew

    def _finish(self) -> None:
        parts, self._parts, self._pass = self._parts, [], None
        with tenon.no_grad():
            columns = list(zip(*parts, strict=True))
            ids, grads = tenon.cat(columns[0], 0), tenon.cat(columns[1], 0)
            uses: list[Tensor | None] = []
            for column, otherwise in ((columns[2], tenon.ones), (columns[3], tenon.zeros)):
                if all(x is None for x in column):
                    uses.append(None)
                else:
                    given = [
                        otherwise([part[0].numel()]) if x is None else x
                        for x, part in zip(column, parts, strict=True)
                    ]
                    uses.append(tenon.cat(given, 0))
        self._push(ids, grads, *uses)
