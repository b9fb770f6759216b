# SPDX-License-Identifier: Apache-2.0
"""Updates of the rows of a table that have gradients: layout 'coo' with indices along one axis, which is what embeddings
with `sparse=True` give."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


def is_rows(grad: Tensor) -> bool:
    """Whether the gradient consists of some rows of its parameter."""
    return grad.layout == "coo" and grad.indices().shape[0] == 1


class Rows:
    """The rows of a parameter, and of what of its state has the parameter's shape, as tensors of their own.

    An update of these is an ordinary one; `write_back` puts them where they were. Equal rows are added up first.
    """

    def __init__(self, target: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        self._target, self._state = target, state
        self._index = grad.indices()[0]
        self.param = tenon.index_select(target, self._index, 0)
        self.state = {
            name: tenon.index_select(value, self._index, 0) if self._is_table(value) else value
            for name, value in state.items()
        }

    def _is_table(self, value: Any) -> bool:
        is_state = isinstance(value, Tensor) and value is not self._target
        return is_state and tuple(value.shape) == tuple(self._target.shape)

    def write_back(self) -> None:
        """The parameter and its state, after the update."""
        self.write(self._target, self.param)
        for name, value in self.state.items():
            before = self._state.get(name)
            if before is None and isinstance(value, Tensor) and value.shape == self.param.shape:
                before = self._state[name] = tenon.zeros_like(self._target)
            if isinstance(before, Tensor) and self._is_table(before):
                self.write(before, value)
            else:
                self._state[name] = value

    def write(self, table: Tensor, rows: Tensor) -> None:
        """Put `rows` into a table of the parameter's shape, in its dtype."""
        tenon.index_copy(table, 0, self._index, rows.to(table.dtype), out=table)
