# SPDX-License-Identifier: Apache-2.0
"""Model: the loop that trains a network, and what belongs to it."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.data import DataLoader, Dataset, IterableDataset, TensorDataset
from tenon.metrics import Metric
from tenon.utils import CheckpointManager, Progress

from .callbacks import Callback
from .flops import evaluating


class Model:
    """A network with the loop that trains it.

        model = Model(network)
        model.prepare(optimizer, nn.CrossEntropyLoss(), metrics.Accuracy())
        model.fit(loader, validation=other_loader, epochs=10)

    Of a batch, the first `inputs` elements are the network's arguments. The others follow its
    outputs as arguments of the loss and of the metrics. Data is a DataLoader, a Dataset or a tuple
    of tensors (batched by `batch_size`), or any iterable of batches.
    """

    def __init__(self, network: nn.Module, inputs: int = 1) -> None:
        if inputs < 1:
            raise ValueError(f"Model: expected at least one input, got {inputs}")
        self.network, self.inputs = network, inputs
        self.optimizer: Any = None
        self.loss: Callable[..., Tensor] | None = None
        self.metrics: dict[str, Metric] = {}
        self.epoch = 0  # passes through the data that are complete
        self.step = 0  # of the optimizer
        self.history: list[dict[str, float]] = []  # one row for each epoch
        self.stop_training = False  # a callback may set it
        self.batch: Any = None  # that is trained on, for callbacks
        self._mean = _Mean()
        self._callbacks: list[Callback] = []
        self._loader: Any = None
        self._resumed = False  # within an epoch

    def prepare(
        self,
        optimizer: Any = None,
        loss: Callable[..., Tensor] | None = None,
        metrics: Metric | Sequence[Metric] | Mapping[str, Metric] = (),
    ) -> None:
        """Say what trains and measures the network. Metrics in a list are named by their classes."""
        self.optimizer, self.loss = optimizer, loss
        if isinstance(metrics, Metric):
            metrics = [metrics]
        if not isinstance(metrics, Mapping):
            metrics = {_snake_case(type(metric).__name__): metric for metric in metrics}
        self.metrics = dict(metrics)

    # -- training ----------------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        validation: Any = None,
        *,
        epochs: int = 1,
        batch_size: int = 32,
        shuffle: bool = True,
        accumulate: int = 1,
        clip_norm: float | None = None,
        callbacks: Sequence[Callback] = (),
        resume: CheckpointManager | str | os.PathLike | None = None,
        progress: bool = True,
    ) -> list[dict[str, float]]:
        """Train until `epochs` passes are complete; the history, one dict for each of them.

        accumulate  batches whose gradients are averaged for one step of the optimizer
        clip_norm   the norm of all gradients together, at most
        resume      a manager or folder of ModelCheckpoint: go on from its last checkpoint, if any,
                    in the middle of an epoch as well

        `batch_size` and `shuffle` are for data that is no loader. The means of the loss and the
        metrics of an epoch are those of its batches as they were trained on; names that begin with
        "val_" are of `validation`.
        """
        if self.optimizer is None or self.loss is None:
            raise RuntimeError(
                "Model.fit: expected an optimizer and a loss; call prepare(optimizer, loss) first"
            )
        if accumulate < 1:
            raise ValueError(f"Model.fit: expected accumulate of at least 1, got {accumulate}")
        self._loader = _batches(data, batch_size, shuffle)
        self._callbacks = sorted(callbacks, key=lambda callback: callback.runs_last)
        self.stop_training = False
        if resume is not None:
            self._resume(resume)
        for callback in self._callbacks:
            callback.on_train_begin(self)
        try:
            while self.epoch < epochs and not self.stop_training:
                row = self._train_epoch(epochs, accumulate, clip_norm, progress)
                for callback in self._callbacks:
                    row |= callback.values(self)
                if validation is not None:
                    values = self.evaluate(validation, batch_size=batch_size)
                    row |= {f"val_{name}": value for name, value in values.items()}
                self.epoch += 1
                self.history.append(row)
                for callback in self._callbacks:
                    callback.on_epoch_end(self, row)
        finally:
            for callback in self._callbacks:
                callback.on_train_end(self)
        return self.history

    def _train_epoch(
        self, epochs: int, accumulate: int, clip_norm: float | None, progress: bool
    ) -> dict[str, float]:
        self.network.train()
        if not self._resumed:
            self._mean.reset()
            for metric in self.metrics.values():
                metric.reset()
        self._resumed = False
        for callback in self._callbacks:
            callback.on_epoch_begin(self)
        # Only those that do something are called for each batch.
        after_batch = [c for c in self._callbacks if _overrides(c, "on_batch_end")]
        after_step = [c for c in self._callbacks if _overrides(c, "on_step_end")]
        before_step = [c for c in self._callbacks if _overrides(c, "on_gradients")]
        mean, metrics = self._mean, list(self.metrics.values())
        forward = self._forward
        batches: Iterable = self._loader
        if progress:
            label = f"epoch {self.epoch + 1}/{epochs}"
            batches = Progress(batches, label, values=self._shown_values)
        self.optimizer.zero_grad()
        waiting = 0  # batches whose gradients wait for a step
        for batch in batches:
            self.batch = batch
            outputs, targets, loss = forward(batch)
            (loss if accumulate == 1 else loss / accumulate).backward()
            waiting += 1
            mean.add(loss)
            for metric in metrics:
                metric.update(*outputs, *targets)
            for callback in after_batch:
                callback.on_batch_end(self, loss)
            if waiting == accumulate:
                waiting = 0
                self._update(clip_norm, before_step, after_step)
            if self.stop_training:
                break
        if waiting:  # the rest: fewer batches than one step takes
            for parameter in self.network.parameters():
                if parameter.grad is not None:
                    parameter.grad *= accumulate / waiting
            self._update(clip_norm, before_step, after_step)
        self.batch = None
        return self._values()

    def _shown_values(self) -> dict[str, float]:
        shown = {"loss": self._mean.value()}
        for callback in self._callbacks:
            shown |= callback.values(self)
        return shown

    def _update(
        self,
        clip_norm: float | None,
        before_step: Sequence[Callback],
        after_step: Sequence[Callback],
    ) -> None:
        for callback in before_step:
            callback.on_gradients(self)
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        for callback in after_step:
            callback.on_step_end(self)

    def _forward(self, batch: Any) -> tuple[tuple, tuple, Tensor]:
        arguments, targets = self._split(batch)
        result = self.network(*arguments)
        outputs = result if type(result) is tuple else (result,)
        return outputs, targets, self.loss(*outputs, *targets)  # type: ignore[misc]

    def _split(self, batch: Any) -> tuple[tuple, tuple]:
        if self.inputs == 1 and type(batch) in (list, tuple) and len(batch) == 2:  # nearly always
            return (batch[0],), (batch[1],)
        if isinstance(batch, Tensor):
            batch = (batch,)
        if len(batch) < self.inputs:
            raise ValueError(
                f"Model: expected batches of at least {self.inputs} elements, as many as the "
                f"network has inputs, got {len(batch)}"
            )
        return tuple(batch[: self.inputs]), tuple(batch[self.inputs :])

    def _values(self) -> dict[str, float]:
        return {
            "loss": self._mean.value(),
            **{name: metric.compute() for name, metric in self.metrics.items()},
        }

    # -- without training --------------------------------------------------------------------------

    def evaluate(
        self, data: Any, *, batch_size: int = 32, progress: bool = False
    ) -> dict[str, float]:
        """The mean loss and the metrics over `data`, in eval mode and without gradients."""
        if self.loss is None:
            raise RuntimeError("Model.evaluate: expected a loss; call prepare(loss=...) first")
        metrics = {name: copy.copy(metric) for name, metric in self.metrics.items()}
        for metric in metrics.values():
            metric.reset()  # gives the copy counts of its own
        mean = _Mean()
        with evaluating(self.network):
            for batch in _shown(_batches(data, batch_size, False), "evaluate", progress):
                outputs, targets, loss = self._forward(batch)
                mean.add(loss)
                for metric in metrics.values():
                    metric.update(*outputs, *targets)
        return {
            "loss": mean.value(),
            **{name: metric.compute() for name, metric in metrics.items()},
        }

    def predict(self, data: Any, *, batch_size: int = 32, progress: bool = False) -> Any:
        """The network's outputs for `data`, all batches in one tensor, in eval mode.

        Elements of a batch beyond the inputs are left out. A tuple if the network returns one.
        """
        results = []
        with evaluating(self.network):
            for batch in _shown(_batches(data, batch_size, False), "predict", progress):
                results.append(self.network(*self._split(batch)[0]))
        if not results:
            raise ValueError("Model.predict: expected a batch, got none")
        if type(results[0]) is tuple:
            return tuple(tenon.concat(list(parts)) for parts in zip(*results, strict=True))
        return tenon.concat(results)

    # -- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that a training needs to go on: network, optimizer, random state, callbacks,
        and the place in the data, if the loader has a state_dict()."""
        devices = {str(parameter.device) for parameter in self.network.parameters()}
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict() if self.optimizer is not None else None,
            "epoch": self.epoch,
            "step": self.step,
            "history": [dict(row) for row in self.history],
            "mean": self._mean.state_dict(),
            "metrics": {name: metric.state_dict() for name, metric in self.metrics.items()},
            "loader": self._loader.state_dict() if hasattr(self._loader, "state_dict") else None,
            "random": {name: tenon.random.get_state(name) for name in sorted(devices | {"cpu"})},
            "callbacks": [callback.state_dict() for callback in self._callbacks],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what state_dict() gave. Callbacks and loader get theirs when fit resumes."""
        self.network.load_state_dict(state["network"])
        if self.optimizer is not None and state["optimizer"] is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.step = state["epoch"], state["step"]
        self.history = [dict(row) for row in state["history"]]
        self._mean.load_state_dict(state["mean"])
        for name, metric in self.metrics.items():
            if name in state["metrics"]:
                metric.load_state_dict(state["metrics"][name])
        for name, random_state in state["random"].items():
            tenon.random.set_state(random_state, name)

    def save(self, path: str | os.PathLike, *, training: bool = True) -> None:
        """Write state_dict() to a file, or with `training=False` the network's tensors alone."""
        tenon.save(self.state_dict() if training else self.network.state_dict(), path)

    def load(self, path: str | os.PathLike) -> None:
        """Read what save() wrote; of a file of tensors alone, the network's."""
        state = tenon.load(path)
        if isinstance(state.get("network"), Mapping):
            self.load_state_dict(state)
        else:
            self.network.load_state_dict(state)

    def _resume(self, source: Any) -> None:
        manager = source if isinstance(source, CheckpointManager) else CheckpointManager(source)
        if manager.latest() is None:
            return
        _, state = manager.load()
        self.load_state_dict(state)
        place = state["loader"]
        if place is not None and hasattr(self._loader, "load_state_dict"):
            self._loader.load_state_dict(place)
            self._resumed = place.get("batches", 0) > 0
        if len(state["callbacks"]) != len(self._callbacks):
            raise ValueError(
                f"Model.fit: expected the {len(state['callbacks'])} callbacks of the checkpoint, "
                f"got {len(self._callbacks)}; pass the same ones in the same order"
            )
        for callback, kept in zip(self._callbacks, state["callbacks"], strict=True):
            callback.load_state_dict(kept)


class _Mean:
    """The mean of losses, which stay tensors until it is read: the loop waits for no device."""

    most = 512  # tensors that wait

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._total, self._count = 0.0, 0
        self._pending: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        self._pending.append(loss.detach())
        if len(self._pending) >= self.most:
            self._read()

    def _read(self) -> None:
        for loss in self._pending:
            self._total += loss.item()
        self._count += len(self._pending)
        self._pending.clear()

    def value(self) -> float:
        self._read()
        return self._total / self._count if self._count else float("nan")

    def state_dict(self) -> dict[str, float]:
        self._read()
        return {"total": self._total, "count": self._count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.reset()
        self._total, self._count = state["total"], state["count"]


def _batches(data: Any, batch_size: int, shuffle: bool) -> Iterable:
    if isinstance(data, tuple) and data and all(isinstance(part, Tensor) for part in data):
        data = TensorDataset(*data)
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size, shuffle)
    return data


def _shown(batches: Iterable, label: str, progress: bool) -> Iterable:
    return Progress(batches, label) if progress else batches


def _overrides(callback: Callback, method: str) -> bool:
    return getattr(type(callback), method) is not getattr(Callback, method)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
