# SPDX-License-Identifier: Apache-2.0
"""A folder of checkpoints of which the newest whole one can always be loaded.

A checkpoint is one file, `step-00000100.safetensors`, written beside its name, synchronised with
the disk, then renamed: whenever the process or the machine ends, the folder holds whole files and, at
worst, one that has another suffix.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from typing import Any

import tenon
from tenon import Tensor
from tenon.io import safetensors
from tenon.io.serialization import flattened

_NAME = re.compile(r"step-(\d+)\.safetensors")


class CheckpointManager:
    """Saves the state of a run under step numbers, and keeps the last `keep` (None: all).

    One manager at a time writes to a folder; in a run of several processes, that of the first.
    Any number of processes may load. As a context manager it waits for the last save.
    """

    def __init__(self, folder: str | os.PathLike, keep: int | None = 3) -> None:
        if keep is not None and keep < 1:
            raise ValueError(f"CheckpointManager: expected keep of at least 1 or None, got {keep}")
        self.folder, self.keep = os.fspath(folder), keep
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        os.makedirs(self.folder, exist_ok=True)
        for name in os.listdir(self.folder):
            if re.fullmatch(_NAME.pattern + r"\..*\.tmp", name):  # of a run that was killed
                os.unlink(os.path.join(self.folder, name))

    def save(self, step: int, state: Any, *, asynchronous: bool = False) -> None:
        """Write `state` (see tenon.save) as step `step`, which must not lie before the latest.

        `asynchronous=True` copies the tensors to host memory and returns; a thread writes the file.
        A second save waits for the first, and raises its error if it failed.
        """
        self.wait()
        latest = self.latest()
        if latest is not None and step < latest:
            raise ValueError(
                f"CheckpointManager.save: expected a step of at least {latest}, the latest in "
                f"{self.folder}, got {step}; discard_after({step}) removes those of an abandoned "
                "run"
            )
        tensors, metadata = flattened(state)
        if not asynchronous:
            return self._write(step, tensors, metadata)
        copies = {name: _copied(tensor) for name, tensor in tensors.items()}
        self._thread = threading.Thread(
            target=self._write_later, args=(step, copies, metadata), name="tenon-checkpoint"
        )
        self._thread.start()

    def wait(self) -> None:
        """Return when the last save is on the disk; raises its error if it failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def load(
        self, step: int | None = None, device: Any = None, *, memory_map: bool = False
    ) -> tuple[int, Any]:
        """The number and the state of a step, of the latest by default.

        Without `step` a file that cannot be read is left out, with a warning, for the one before.
        """
        self.wait()
        steps = self.steps() if step is None else [step]
        for number in reversed(steps):
            path = self.path(number)
            try:
                return number, tenon.load(path, device, memory_map=memory_map)
            except ValueError as error:
                if step is not None:
                    raise
                warnings.warn(f"left out a checkpoint: {error}", RuntimeWarning, stacklevel=2)
        raise FileNotFoundError(
            f"CheckpointManager.load: expected a checkpoint in {self.folder}, found none that can "
            "be read"
        )

    def latest(self) -> int | None:
        """The last step that was saved, or None."""
        return max(self.steps(), default=None)

    def steps(self) -> list[int]:
        """All steps in the folder, in ascending order."""
        matches = (_NAME.fullmatch(name) for name in os.listdir(self.folder))
        return sorted(int(match[1]) for match in matches if match)

    def path(self, step: int) -> str:
        """The file of a step."""
        return os.path.join(self.folder, f"step-{step:08}.safetensors")

    def discard_after(self, step: int) -> None:
        """Delete the checkpoints of later steps."""
        self.wait()
        for number in self.steps():
            if number > step:
                os.unlink(self.path(number))

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, *exception: object) -> None:
        self.wait()

    def _write(self, step: int, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        safetensors.write(self.path(step), tensors, metadata)
        if self.keep is not None:
            for old in self.steps()[: -self.keep]:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path(old))

    def _write_later(self, step: int, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        try:
            self._write(step, tensors, metadata)
        except BaseException as error:
            self._error = error


def _copied(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    # A strided device tensor becomes dense on the way; a host tensor is always copied.
    return tensor.clone() if tensor.device.kind == "cpu" else tensor.cpu()
