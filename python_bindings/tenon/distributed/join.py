# SPDX-License-Identifier: Apache-2.0
"""Data parallel ranks with differently many batches: who is done takes part with zeros until all are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tenon

from .errors import CollectiveMismatch

if TYPE_CHECKING:
    from .data_parallel import DistributedDataParallel

# What a rank tells the others in front of each forward pass.
_DONE, _GOES_ON, _SENDS, _SENDS_BUFFERS = range(4)


class Join:
    """One `with model.join()` of this rank."""

    def __init__(
        self, model: DistributedDataParallel, divides_by_all: bool, raises_early: bool
    ) -> None:
        self._model, self._divides_by_all, self._raises_early = model, divides_by_all, raises_early
        self._last: list[int] = []  # the ranks that went on, when it was told last

    def go_on(self, sends: bool, sends_buffers: bool) -> int:
        """In front of a forward pass; returns the first rank that has one."""
        self._tell(_SENDS_BUFFERS if sends_buffers else _SENDS if sends else _GOES_ON)
        return self._last[0]

    def wait_for_others(self) -> None:
        """This rank is done."""
        model = self._model
        while (told := self._tell(_DONE)) != _DONE:
            if told == _SENDS_BUFFERS:
                model._send_buffers(self._last[0])
            if told in (_SENDS, _SENDS_BUFFERS):
                for reducer in model._reducers:
                    reducer.shadow()
        if self._last:
            with tenon.no_grad():
                for tensor in (*model.module.parameters(), *model.module.buffers()):
                    model._broadcast(tensor, self._last[0])

    def _tell(self, own: int) -> int:
        """What the ranks that go on do."""
        model = self._model
        group = model.process_group
        with tenon.no_grad():
            told = group.all_gather(tenon.tensor([own], dtype=tenon.int64, device="cpu")).tolist()
        going = [rank for rank, each in enumerate(told) if each != _DONE]
        if not going:
            return _DONE
        if self._raises_early and len(going) < group.size:
            raise RuntimeError(
                f"DistributedDataParallel.join: expected equally many batches on all ranks, got no more on ranks "
                f"{[rank for rank in range(group.size) if rank not in going]}"
            )
        kinds = {told[rank] for rank in going}
        if len(kinds) > 1:
            text = (
                "DistributedDataParallel.join: expected ranks that go on to do the same, got some inside no_sync() or in "
                "eval() and others not"
            )
            group.abort(text)
            raise CollectiveMismatch(text)
        self._last = going
        scale = 1.0 if self._divides_by_all else group.size / len(going)
        for reducer in model._reducers:
            reducer.join_with(scale, going[0])
        return kinds.pop()
