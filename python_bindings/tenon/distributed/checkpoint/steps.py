# SPDX-License-Identifier: Apache-2.0
"""A folder of checkpoints under the numbers of steps, of which the newest whole one can always be loaded."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import warnings
from typing import Any

from ..calls import broadcast_object
from ..group import ProcessGroup
from . import manifest as manifests
from .saving import group_of, load, save, wait_for_last
from .writer import Pending

_NAME = re.compile(r"step-(\d+)")


class Steps:
    """Saves of a run, of which the last `keep` are kept (None: all). Every rank of the group makes the same calls.

    steps = checkpoint.Steps("run")
    step, state = steps.load({"model": model, "optimizer": optimizer, "epoch": 0})   # step 0 if there is none
    steps.save(100, {"model": model, "optimizer": optimizer, "epoch": 3})
    """

    def __init__(
        self, folder: str | os.PathLike, keep: int | None = 3, group: ProcessGroup | None = None
    ) -> None:
        if keep is not None and keep < 1:
            raise ValueError(f"Steps: expected keep of at least 1 or None, got {keep}")
        self.folder, self.keep = os.path.abspath(os.fspath(folder)), keep
        self._group = group_of(group)
        os.makedirs(self.folder, exist_ok=True)

    def path(self, step: int) -> str:
        """The folder of a step."""
        return os.path.join(self.folder, f"step-{step:08}")

    def steps(self) -> list[int]:
        """Those that were written to their end, in ascending order: the same on all ranks."""
        return self._told_by_first(self._here)

    def save(self, step: int, state: Any, *, asynchronous: bool = False) -> Pending | None:
        """As checkpoint.save. A step that is there is written anew, and counts once it is whole."""
        self.wait()
        pending = save(state, self.path(step), group=self._group, asynchronous=asynchronous)
        if pending is None:
            self._remove_old()
        return pending

    def wait(self) -> None:
        """Return when the last save is there; raises what went wrong."""
        wait_for_last(self._group)
        self._remove_old()

    def load(self, state: Any, step: int | None = None) -> tuple[int, Any]:
        """The number of a step, by default of the last one, and `state` with what it has; 0 and `state` as it is if there
        is none. Without `step`, one that is damaged is left out, with a warning, for the one before."""
        self.wait()
        if step is not None:
            return step, load(state, self.path(step), group=self._group)
        for number in reversed(self.steps()):
            try:
                return number, load(state, self.path(number), group=self._group)
            except manifests.FormatError as error:
                warnings.warn(f"left out a checkpoint: {error}", RuntimeWarning, stacklevel=2)
        return 0, state

    def _here(self) -> list[int]:
        matches = (_NAME.fullmatch(name) for name in os.listdir(self.folder))
        return sorted(
            int(match[1])
            for match in matches
            if match and os.path.exists(os.path.join(self.folder, match[0], manifests.NAME))
        )

    def _told_by_first(self, what: Any) -> Any:
        if self._group is None:
            return what()
        value = what() if self._group.rank == 0 else None
        return broadcast_object(value, self._group.ranks[0], self._group)

    def _remove_old(self) -> None:
        """Older than those that are kept. The manifest goes first: what is left of a folder is no checkpoint."""
        if self.keep is None or (self._group is not None and self._group.rank != 0):
            return
        for number in self._here()[: -self.keep]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path(number), manifests.NAME))
            shutil.rmtree(self.path(number), ignore_errors=True)
