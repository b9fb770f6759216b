# SPDX-License-Identifier: Apache-2.0
# The methods of Tensor that tenon.distributed adds, for type checkers.
from collections.abc import Sequence
from typing import Any

from tenon import Tensor

class ShardedMethods:
    def to_local(self, *, grad_placements: Sequence[Any] | None = None) -> Tensor: ...
    def full_tensor(self) -> Tensor: ...
    def redistribute(
        self, device_mesh: Any = None, placements: Sequence[Any] | None = None
    ) -> Tensor: ...
    @property
    def placements(self) -> tuple[Any, ...]: ...
    @property
    def device_mesh(self) -> Any: ...
