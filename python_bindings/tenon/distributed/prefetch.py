# SPDX-License-Identifier: Apache-2.0
"""Units of ZeRO stage 3 are gathered while the one before them computes, in the order of the last pass.

Every rank runs the same modules in the same order, so that every rank gathers the same unit ahead.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from tenon import Tensor, _core

from .group import ProcessGroup

if TYPE_CHECKING:
    from .fully_shard import Unit


class _Ahead:
    """A unit that is on its way."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.versions = unit, unit.versions()
        self.finish: Callable[[], list[Tensor]] = unit.start(ahead=True)


class GatherOrder:
    """Of the units of a group, forward and backward. What was not gathered in the predicted order is forgotten, and gathered
    when it is wanted."""

    def __init__(self) -> None:
        # By a unit's number, and whether in a backward pass: what came behind it. Addresses would not do: a new unit may have
        # that of a dead one, and on some of the ranks alone.
        self._next: dict[tuple[int, bool], weakref.ref[Unit]] = {}
        self._last: tuple[int, bool] | None = None
        self._seen: set[int] = set()  # in this pass, in which no unit is predicted twice
        self._ahead: _Ahead | None = None
        self._predicted_by: tuple[int, bool] | None = None

    def gather(self, unit: Unit) -> list[Tensor]:
        is_backward = _core._backward_pass_number() > 0
        place = (unit.number, is_backward)
        if place == self._last:  # computed again, and wanted by the backward pass of that
            return unit.start()()
        if self._last is None or self._last[1] != is_backward or unit.number in self._seen:
            self._seen.clear()  # another pass
            self._next = {key: unit for key, unit in self._next.items() if unit() is not None}
        elif self._last is not None:
            self._next[self._last] = weakref.ref(unit)
        self._seen.add(unit.number)
        self._last = place
        ahead, self._ahead = self._ahead, None
        if ahead is not None and (ahead.unit is not unit or ahead.versions != unit.versions()):
            ahead.finish()  # all ranks take part to the end
            if self._predicted_by is not None and self._predicted_by != place:
                self._next.pop(self._predicted_by, None)
            ahead = None
        wholes = unit.start()() if ahead is None else ahead.finish()
        found = self._next.get(place)
        following = None if found is None else found()
        if following is None or following.number in self._seen:
            self._next.pop(place, None)
        else:
            self._ahead, self._predicted_by = _Ahead(following), place
        return wholes


_orders: weakref.WeakKeyDictionary[ProcessGroup, GatherOrder] = weakref.WeakKeyDictionary()


def order_of(group: ProcessGroup) -> GatherOrder:
    return _orders.setdefault(group, GatherOrder())
