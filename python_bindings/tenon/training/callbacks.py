# SPDX-License-Identifier: Apache-2.0
"""What happens beside training: checkpoints, an early end, rates, logs and pictures."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tenon
from tenon.nn.utils.clip_grad import get_total_norm
from tenon.utils import CheckpointManager

from .curves import draw_curves
from .event_writer import EventWriter

if TYPE_CHECKING:
    from .model import Model

Row = Mapping[str, float]


class Callback:
    """Functions that Model.fit calls. A subclass defines those that it needs.

    `state_dict` gives what a resumed training must know; callbacks with `runs_last` come after the
    others.
    """

    runs_last = False

    def on_train_begin(self, model: Model) -> None: ...
    def on_train_end(self, model: Model) -> None: ...
    def on_epoch_begin(self, model: Model) -> None: ...
    def on_epoch_end(self, model: Model, row: Row) -> None: ...
    def on_batch_end(self, model: Model, loss: Any) -> None: ...
    def on_gradients(
        self, model: Model
    ) -> None: ...  # whole, before they are clipped and the step is made
    def on_step_end(self, model: Model) -> None: ...

    def values(self, model: Model) -> dict[str, float]:
        """What it has measured of the epoch, for its row in the history and for the progress bar."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Throughput(Callback):
    """`samples_per_second` in the history and beside the bar: samples of the epoch that were trained on, by the
    time that this took. Reading data counts; validation and callbacks between epochs do not."""

    def __init__(self) -> None:
        self._samples, self._begun = 0, 0.0

    def on_epoch_begin(self, model: Model) -> None:
        self._samples, self._begun = 0, time.perf_counter()

    def on_batch_end(self, model: Model, loss: Any) -> None:
        first = model.batch if isinstance(model.batch, tenon.Tensor) else model.batch[0]
        self._samples += first.shape[0] if first.ndim else 1

    def values(self, model: Model) -> dict[str, float]:
        seconds = max(time.perf_counter() - self._begun, 1e-9)
        return {"samples_per_second": self._samples / seconds}


class GradientNorm(Callback):
    """`grad_norm` and `max_grad_norm` in the history, and the mean beside the bar: the norm of all gradients
    together at each step of the optimizer, before `clip_norm` changes them. Norms stay on the device
    until they are shown."""

    def __init__(self, norm_type: float = 2.0) -> None:
        self.norm_type = norm_type
        self._norms: list[tenon.Tensor] = []

    def on_epoch_begin(self, model: Model) -> None:
        self._norms = []

    def on_gradients(self, model: Model) -> None:
        gradients = [p.grad for p in model.network.parameters() if p.grad is not None]
        with tenon.no_grad():
            self._norms.append(get_total_norm(gradients, self.norm_type))

    def values(self, model: Model) -> dict[str, float]:
        if not self._norms:
            return {}
        norms = tenon.stack(self._norms)
        return {"grad_norm": float(norms.mean()), "max_grad_norm": float(norms.max())}


class ModelCheckpoint(Callback):
    """Save all that a training needs, after every epoch or every `every_steps` steps.

    `Model.fit(resume=folder)` goes on from there. Files are written in the background, from a copy.
    With `monitor`, the network's tensors of the best epoch so far also go to `best.safetensors`.
    """

    runs_last = True

    def __init__(
        self,
        folder: str | os.PathLike | CheckpointManager,
        *,
        every_steps: int | None = None,
        keep: int | None = 3,
        monitor: str | None = None,
        mode: str = "auto",
        asynchronous: bool = True,
    ) -> None:
        if every_steps is not None and every_steps < 1:
            raise ValueError(f"ModelCheckpoint: expected every_steps >= 1, got {every_steps}")
        self.manager = (
            folder if isinstance(folder, CheckpointManager) else CheckpointManager(folder, keep)
        )
        self.every_steps, self.asynchronous = every_steps, asynchronous
        self._best = _Best(monitor, mode) if monitor is not None else None

    def on_step_end(self, model: Model) -> None:
        if self.every_steps is not None and model.step % self.every_steps == 0:
            self._save(model)

    def on_epoch_end(self, model: Model, row: Row) -> None:
        if self._best is not None and self._best.improves(row):
            best = os.path.join(self.manager.folder, "best.safetensors")
            tenon.save(model.network.state_dict(), best)
        self._save(model)

    def on_train_end(self, model: Model) -> None:
        self.manager.wait()

    def _save(self, model: Model) -> None:
        self.manager.save(model.step, model.state_dict(), asynchronous=self.asynchronous)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best.value if self._best is not None else None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self._best is not None:
            self._best.value = state["best"]


class EarlyStopping(Callback):
    """End the training when `monitor` has not improved by `min_delta` for `patience` epochs.

    `restore_best=True` gives the network the tensors of its best epoch at the end.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        *,
        patience: int = 0,
        min_delta: float = 0.0,
        mode: str = "auto",
        restore_best: bool = False,
    ) -> None:
        self._best = _Best(monitor, mode, min_delta)
        self.patience, self.restore_best = patience, restore_best
        self.waited = 0
        self._tensors: dict[str, Any] | None = None

    def on_epoch_end(self, model: Model, row: Row) -> None:
        if self._best.improves(row):
            self.waited = 0
            if self.restore_best:
                state = model.network.state_dict()
                self._tensors = {name: tensor.clone() for name, tensor in state.items()}
            return
        self.waited += 1
        if self.waited > self.patience:
            model.stop_training = True

    def on_train_end(self, model: Model) -> None:
        if self._tensors is not None:
            model.network.load_state_dict(self._tensors)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best.value, "waited": self.waited, "tensors": self._tensors}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._best.value, self.waited = state["best"], state["waited"]
        self._tensors = state["tensors"]


class LRScheduler(Callback):
    """Step a schedule of tenon.optim.lr_scheduler after every epoch, or `by="step"`.

    `monitor` is for ReduceLROnPlateau: the value of the row that it looks at.
    """

    def __init__(self, schedule: Any, *, by: str = "epoch", monitor: str | None = None) -> None:
        if by not in ("epoch", "step"):
            raise ValueError(f'LRScheduler: expected by="epoch" or "step", got {by!r}')
        if by == "step" and monitor is not None:
            raise ValueError("LRScheduler: monitor has a value once an epoch; leave out by='step'")
        self.schedule, self.by, self.monitor = schedule, by, monitor

    def on_step_end(self, model: Model) -> None:
        if self.by == "step":
            self.schedule.step()

    def on_epoch_end(self, model: Model, row: Row) -> None:
        if self.by == "epoch":
            self.schedule.step(*([] if self.monitor is None else [_value(row, self.monitor)]))

    def state_dict(self) -> dict[str, Any]:
        return self.schedule.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.schedule.load_state_dict(dict(state))


class CSVLogger(Callback):
    """Write the history to a CSV file after every epoch, whole each time."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = os.fspath(path)

    def on_epoch_end(self, model: Model, row: Row) -> None:
        names = list(dict.fromkeys(name for old in model.history for name in old))
        with open(self.path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["epoch", *names])
            for epoch, old in enumerate(model.history, 1):
                writer.writerow([epoch, *(old.get(name, "") for name in names)])


class TensorBoard(Callback):
    """Write events that TensorBoard shows: each epoch's row, and with `every_steps` the loss and
    the learning rates in between."""

    def __init__(self, folder: str | os.PathLike, *, every_steps: int | None = None) -> None:
        self.folder, self.every_steps = folder, every_steps
        self._writer: EventWriter | None = None
        self._loss: Any = None

    def on_train_begin(self, model: Model) -> None:
        self._writer = EventWriter(self.folder)

    def on_batch_end(self, model: Model, loss: Any) -> None:
        self._loss = loss

    def on_step_end(self, model: Model) -> None:
        if self._writer is None or not self.every_steps or model.step % self.every_steps:
            return
        self._writer.add_scalar("step/loss", self._loss.item(), model.step)
        for number, group in enumerate(model.optimizer.param_groups):
            self._writer.add_scalar(f"step/lr/{number}", group["lr"], model.step)

    def on_epoch_end(self, model: Model, row: Row) -> None:
        if self._writer is None:
            return
        for name, value in row.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(f"epoch/{name}", value, model.epoch)
        self._writer.flush()

    def on_train_end(self, model: Model) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None


class LearningCurve(Callback):
    """Draw the history as an SVG picture after every epoch."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = os.fspath(path)

    def on_epoch_end(self, model: Model, row: Row) -> None:
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(draw_curves(model.history))


class _Best:
    """The best value of one name so far."""

    def __init__(self, name: str, mode: str, min_delta: float = 0.0) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f'expected mode "auto", "min" or "max", got {mode!r}')
        if mode == "auto":
            lower = ("loss", "error", "perplexity")
            mode = "min" if any(word in name for word in lower) else "max"
        self.name, self.mode, self.min_delta = name, mode, min_delta
        self.value: float | None = None

    def improves(self, row: Row) -> bool:
        value = _value(row, self.name)
        if self.value is not None:
            gain = self.value - value if self.mode == "min" else value - self.value
            if not gain > self.min_delta:
                return False
        elif value != value:  # NaN would never be beaten
            return False
        self.value = value
        return True


def _value(row: Row, name: str) -> float:
    if name not in row:
        raise KeyError(
            f"expected {name!r} among the values of an epoch, got {list(row)}; names that begin "
            "with 'val_' need validation data"
        )
    return row[name]
