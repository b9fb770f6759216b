# SPDX-License-Identifier: Apache-2.0
"""A model whose stages lie on different ranks."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tenon
from tenon import Tensor
from tenon.nn import Module, Parameter

from ..calls import all_gather_object
from ..dtensor import DTensor, full_tensor, local_of
from ..errors import CollectiveError
from ..group import ProcessGroup
from ..world import world
from .drawing import draw
from .mail import KnownShapes, Mail, kinds_of
from .schedule import BACKWARD, FORWARD, WEIGHTS, Action, Message, Schedule
from .schedules import schedule_of
from .split_backward import Halves, Recorder, add_gradient
from .stages import Stage, cut


class _Forward(NamedTuple):
    """What a backward pass needs of the forward pass before."""

    inputs: tuple[Tensor, ...]  # that a gradient goes back to
    outputs: tuple[Tensor, ...]  # that a gradient comes from
    halves: Halves | None


class _Reference:
    """A weak reference of a parameter to its pipeline. Pickled with the parameter it is one to nothing: the pipeline stays."""

    def __init__(self, made: Pipeline | None = None) -> None:
        self._made = None if made is None else weakref.ref(made)

    def __call__(self) -> Pipeline | None:
        return None if self._made is None else self._made()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Reference:
        return self

    def __reduce__(self) -> tuple[type[_Reference], tuple[()]]:
        return _Reference, ()


class Pipeline:
    """One rank's stages of a model: see `pipeline`."""

    def __init__(
        self,
        model: Module | Sequence[Module],
        group: ProcessGroup,
        schedule: Schedule,
        split: Sequence[str] | None,
    ) -> None:
        self.group, self.schedule = group, schedule
        stages = cut(model, split, schedule.stages)
        self._agree(stages)
        self.stages = {
            index: Stage(index, stages[index]) for index in schedule.stages_of(group.rank)
        }
        self._ties = self._tied(stages)
        if group.size > 1:
            for param in self.parameters():
                param.pipeline = _Reference(self)
        self._recorders = {
            index: Recorder(stage) if schedule.splits_backward else None
            for index, stage in self.stages.items()
        }
        self._shapes: dict[tuple, KnownShapes] = {}
        self._live: dict[tuple[int, int], _Forward] = {}
        self.peak_activations = 0  # of the last step: as the schedule's, counted while it ran

    # -- as a module

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Those of this rank, with their names in the model."""
        for stage in self.stages.values():
            for name, param in stage.named_parameters():
                yield stage.model_name(name), param

    def parameters(self) -> Iterator[Parameter]:
        return (param for _, param in self.named_parameters())

    def state_dict(self) -> dict[str, Tensor]:
        """Of this rank's stages, with the names that the model has."""
        return {
            stage.model_name(name): tensor
            for stage in self.stages.values()
            for name, tensor in stage.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """That of the model, or of this rank's stages."""
        for stage in self.stages.values():
            names = {stage.model_name(name): name for name in stage.state_dict()}
            stage.load_state_dict(
                {own: state[name] for name, own in names.items() if name in state}
            )

    def train(self, mode: bool = True) -> Pipeline:
        for stage in self.stages.values():
            stage.train(mode)
        return self

    def eval(self) -> Pipeline:
        return self.train(False)

    def draw(self, file: str | os.PathLike | None = None) -> str:
        """The schedule as text, in units of a forward pass; with `file` ("pipe.svg") also as a picture."""
        return draw(self.schedule, file)

    # -- steps

    def step(
        self,
        *inputs: Tensor | None,
        target: Any = None,
        loss_fn: Callable[[Any, Any], Tensor],
        reduction: str = "mean",
    ) -> Tensor:
        """Forward and backward of a whole batch; returns the loss, on every rank. Gradients add to `.grad`.

        `inputs` are cut into micro-batches along their first axis where stage 0 lies, `target`, a tensor or None, where
        the last one does; other ranks may give None or the same. `loss_fn(output, target)` is the mean over the samples
        of a micro-batch, or with `reduction="sum"` their sum: the loss of the step, and its gradients, are those of the
        whole batch, also if micro-batches differ by a sample.
        """
        if reduction not in ("mean", "sum"):
            raise ValueError(f"pipeline: expected reduction 'mean' or 'sum', got {reduction!r}")
        with _told(self.group, "step") as where, tenon.enable_grad():
            rows, mail = self._begin("step", inputs)
            sizes = _sizes(rows, self.schedule.microbatches)
            batches = self._cut(inputs, sizes, 0, "input")
            targets = self._cut((target,), sizes, self.schedule.stages - 1, "target")
            self._live.clear()
            self.peak_activations = 0
            added_before = self._put_aside_tied()
            total: Tensor | None = None
            for action in self.schedule.table[self.group.rank]:
                where[0] = str(action)
                if action.kind == FORWARD:
                    weight = sizes[action.microbatch] / rows if reduction == "mean" else None
                    loss = self._forward(action, mail, batches, targets, loss_fn, weight)
                    if loss is not None:
                        total = loss if total is None else total + loss
                elif action.kind == BACKWARD:
                    self._backward(action, mail)
                else:
                    self._weights(action)
            where[0] = "its end"
            mail.finish()
            self._add_tied(added_before)
            return self._tell_loss(total)

    def predict(self, *inputs: Tensor | None) -> Any:
        """The model's output for a batch on the rank of the last stage, None on the others. Nothing is recorded."""
        with _told(self.group, "predict") as where, tenon.no_grad():
            rows, mail = self._begin("predict", inputs)
            mail.forward_only()
            sizes = _sizes(rows, self.schedule.microbatches)
            batches = self._cut(inputs, sizes, 0, "input")
            found: list[tuple[Tensor, ...]] = []
            for action in self.schedule.table[self.group.rank]:
                if action.kind != FORWARD:
                    continue
                where[0] = str(action)
                given = self._given(action, mail, batches)
                outputs = self.stages[action.stage](*given)
                if action.stage + 1 < self.schedule.stages:
                    mail.send(Message(FORWARD, action.stage + 1, action.microbatch), outputs)
                else:
                    found.append(outputs)
            mail.finish()
        if not found:
            return None
        joined = [tenon.concat(list(parts), 0) for parts in zip(*found, strict=True)]
        return joined[0] if len(joined) == 1 else tuple(joined)

    def counts(self, param: Tensor) -> bool:
        """Whether a parameter counts on this rank, where each is to count once: of tied ones, that several ranks have, the
        first one's."""
        return all(part.rank == 0 for part, tied in self._ties if tied is param)

    # -- how

    def _begin(self, what: str, inputs: tuple[Tensor | None, ...]) -> tuple[int, Mail]:
        """How many rows the batch has, which rank 0 says, and what is known of batches of this shape."""
        said = tenon.zeros([1 + 2 * 12], dtype=tenon.int64)
        if 0 in self.stages:
            tensors = [x for x in inputs if isinstance(x, Tensor)]
            if not tensors or len(tensors) != len(inputs) or any(x.ndim == 0 for x in tensors):
                raise ValueError(
                    f"pipeline: expected tensors with a first axis of samples on rank {self.group.rank}, where stage 0 "
                    f"lies, got {[type(x).__name__ for x in inputs]}"
                )
            # Only whether it is the shape of an earlier step matters.
            numbers = [hash((tuple(x.shape[1:]), x.dtype.name)) >> 1 for x in tensors]
            shape = [tensors[0].shape[0], *numbers, *[0] * 24][:25]
            said = tenon.tensor(shape, dtype=tenon.int64)
        with tenon.no_grad():
            self.group.broadcast(said, self.schedule.rank_of(0))
        rows, *shape = said.tolist()
        shapes = self._shapes.setdefault((what, rows, *shape), KnownShapes())
        return rows, Mail(self.group, self.schedule, shapes)

    def clear_cache(self) -> None:
        """Forget the shapes of what stages hand on, which are requested once for each shape of a batch. Every rank calls
        this after a change of the model that changes them."""
        self._shapes.clear()

    def _cut(self, tensors: tuple, sizes: list[int], stage: int, name: str) -> list[tuple]:
        """Micro-batches of what the rank of `stage` was given."""
        if stage not in self.stages:
            return []
        batches: list[list] = [[] for _ in sizes]
        for x in tensors:
            if not isinstance(x, Tensor):
                for batch in batches:
                    batch.append(x)
                continue
            if x.ndim == 0 or x.shape[0] != sum(sizes):
                raise ValueError(
                    f"pipeline: expected {sum(sizes)} rows of the {name}, as the first input has, got shape "
                    f"{tuple(x.shape)}"
                )
            start = 0
            for batch, size in zip(batches, sizes, strict=True):
                batch.append(x[start : start + size])
                start += size
        return [tuple(batch) for batch in batches]

    def _given(self, action: Action, mail: Mail, batches: list[tuple]) -> tuple[Tensor, ...]:
        if action.stage == 0:
            return batches[action.microbatch]
        return mail.take(Message(*action), self.schedule.rank_of(action.stage - 1))

    def _forward(
        self,
        action: Action,
        mail: Mail,
        batches: list[tuple],
        targets: list[tuple],
        loss_fn: Callable[[Any, Any], Tensor],
        weight: float | None,
    ) -> Tensor | None:
        stage, last = self.stages[action.stage], self.schedule.stages - 1
        given = self._given(action, mail, batches)
        needs: tuple[Tensor, ...] = ()
        if action.stage > 0:
            flags = [kind.needs_grad for kind in mail.kinds(Message(*action))]
            given = tuple(
                x.detach().requires_grad_() if flag else x
                for x, flag in zip(given, flags, strict=True)
            )
            needs = tuple(x for x, flag in zip(given, flags, strict=True) if flag)

        def run() -> tuple[tuple[Tensor, ...], Tensor | None]:
            outputs = stage(*given)
            if action.stage < last:
                return outputs, None
            value = outputs[0] if len(outputs) == 1 else outputs
            loss = loss_fn(value, targets[action.microbatch][0])
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                raise ValueError(
                    "pipeline: expected loss_fn to return a tensor of one number, got "
                    f"{tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__}"
                )
            loss = loss.reshape([])
            return (loss if weight is None else loss * weight,), loss

        recorder, halves = self._recorders[action.stage], None
        if recorder is None:
            outputs, loss = run()
        else:
            (outputs, loss), calls = recorder.run(run)
            halves = Halves(calls, [p for p in stage.parameters() if p.requires_grad])
        kept = tuple(x for x in outputs if x.requires_grad)
        self._live[action.stage, action.microbatch] = _Forward(needs, kept, halves)
        self.peak_activations = max(self.peak_activations, len(self._live))
        if action.stage < last:
            mail.send(Message(FORWARD, action.stage + 1, action.microbatch), outputs)
            mail.expect(
                Message(BACKWARD, action.stage, action.microbatch),
                tuple(kind for kind in kinds_of(outputs) if kind.needs_grad),
            )
            return None
        return outputs[0].detach()

    def _backward(self, action: Action, mail: Mail) -> None:
        key = (action.stage, action.microbatch)
        inputs, outputs, halves = self._live[key]
        grads: list[Tensor | None] = [None] * len(outputs)
        if action.stage + 1 < self.schedule.stages:
            message, sender = Message(*action), self.schedule.rank_of(action.stage + 1)
            grads = list(mail.take(message, sender))
        found: list[Tensor | None] = [None] * len(inputs)
        if halves is None:
            if outputs:
                tenon.autograd.backward(list(outputs), grads)
            found = [x.grad for x in inputs]
            del self._live[key]
        elif outputs:
            found = halves.inputs(outputs, grads, inputs)
            # What remains until the second half.
            self._live[key] = _Forward((), (), halves)
        if action.stage > 0:
            with tenon.no_grad():
                told = tuple(
                    tenon.zeros_like(x) if g is None else _as_plain(g).contiguous()
                    for x, g in zip(inputs, found, strict=True)
                )
            mail.send(Message(BACKWARD, action.stage - 1, action.microbatch), told)

    def _weights(self, action: Action) -> None:
        halves = self._live.pop((action.stage, action.microbatch)).halves
        assert halves is not None and action.kind == WEIGHTS
        halves.weights()

    def _tell_loss(self, total: Tensor | None) -> Tensor:
        """The sum of the micro-batches' losses, on every rank."""
        codes = ["float64", "float32", "float16", "bfloat16"]
        said = tenon.zeros([2], dtype=tenon.float64)
        if total is not None:
            value = total.to(tenon.float64).to("cpu").reshape([1])
            code = tenon.tensor([float(codes.index(total.dtype.name))], dtype=tenon.float64)
            said = tenon.concat([value, code])
        with tenon.no_grad():
            self.group.broadcast(said, self.schedule.rank_of(self.schedule.stages - 1))
            return said[0].to(getattr(tenon, codes[int(said[1].item())]))

    # -- ranks that agree

    def _agree(self, stages: list) -> None:
        """Ranks whose models differ would take each other's activations for something else."""
        shapes = [
            [(name, tuple(p.shape), p.dtype.name) for name, p in module.named_parameters()]
            for parts in stages
            for _, module in parts
        ]
        own = (shapes, repr(self.schedule))
        for rank, theirs in enumerate(all_gather_object(own, self.group)):
            if theirs != own:
                raise ValueError(
                    "pipeline: expected the same model, split and schedule on all ranks, got others on rank "
                    f"{self.group.rank} than on rank {rank}"
                )

    def _tied(self, stages: list) -> list[tuple[ProcessGroup, Parameter]]:
        """Parameters of this rank that stages of other ranks have, too, each with a group of those ranks."""
        ranks: dict[int, set[int]] = {}
        params: dict[int, Parameter] = {}
        for index, parts in enumerate(stages):
            for _, module in parts:
                for param in module.parameters():
                    params[id(param)] = param
                    ranks.setdefault(id(param), set()).add(self.schedule.rank_of(index))
        ties = []
        for key, users in ranks.items():
            if len(users) > 1:
                part = self.group.part(sorted(users))
                if part is not None:
                    with tenon.no_grad():
                        part.broadcast(local_of(params[key]))
                    ties.append((part, params[key]))
        return ties

    def _put_aside_tied(self) -> list[Tensor | None]:
        """Gradients of steps before, which are sums over the ranks already."""
        before = [param.grad for _, param in self._ties]
        for _, param in self._ties:
            param.grad = None
        return before

    def _add_tied(self, added_before: list[Tensor | None]) -> None:
        """Gradients of a parameter that several ranks have are the sum of theirs, in the order of ranks."""
        with tenon.no_grad():
            for (part, param), before in zip(self._ties, added_before, strict=True):
                if param.requires_grad:
                    grad = tenon.zeros_like(param) if param.grad is None else param.grad
                    if isinstance(grad, DTensor):
                        own = local_of(grad)
                        own.copy_(part.all_reduce(own.contiguous()))
                        param.grad = grad
                    else:
                        param.grad = part.all_reduce(grad.contiguous())
                    add_gradient(param, before)


@contextlib.contextmanager
def _told(group: ProcessGroup, call: str) -> Iterator[list[str]]:
    """What fails inside ends the group with the place, which the list holds: the other ranks wait for this one."""
    where = ["its begin"]
    try:
        yield where
    except CollectiveError:
        raise
    except BaseException as error:
        group.abort(
            f"pipeline: rank {group.rank} failed in {where[0]} of {call}(): {type(error).__name__}: {error}"
        )
        raise


def _as_plain(grad: Tensor) -> Tensor:
    """What stages hand on is plain. Beside sharded tensors it counts as whole on every rank, and its gradient is sharded."""
    return full_tensor(grad) if isinstance(grad, DTensor) else grad


def _sizes(rows: int, count: int) -> list[int]:
    if rows < count:
        raise ValueError(
            f"pipeline: expected a batch of {count} samples at least, one for each micro-batch, got {rows}"
        )
    return [rows * (i + 1) // count - rows * i // count for i in range(count)]


def pipeline(
    model: Module | Sequence[Module],
    group: ProcessGroup | None = None,
    *,
    microbatches: int,
    split: Sequence[str] | None = None,
    schedule: str | Schedule = "1F1B",
    chunks: int | None = None,
) -> Pipeline:
    """A model whose stages lie on the ranks of a group, by default of all ranks; every rank calls this.

        pipe = dist.pipeline(model, split=["blocks.2"], schedule="1F1B", microbatches=8)
        optimizer = optim.AdamW(pipe.parameters())
        loss = pipe.step(x, target=y, loss_fn=nn.functional.cross_entropy)

    `model` is a Sequential, also one of Sequentials, that is cut in front of the modules that `split` names, by default
    where numbers of parameters are even; or a list with a module for each stage. Stages hand on a tensor or several.
    `schedule` is "GPipe", "1F1B", "interleaved" (with `chunks` stages on each rank, by default 2), "ZB-H1", or a Schedule
    of your own. The model is the same on all ranks; each keeps its own stages, and a parameter that stages of several
    ranks share has the sum of their gradients on all of them.

    Gradients are those of the whole model on the whole batch: sums over micro-batches in their order, which have the bits
    of one process that accumulates. A stage that fails ends the group: the others raise CollectiveAborted, which says
    where.
    """
    group = group or world()
    return Pipeline(model, group, schedule_of(schedule, group.size, microbatches, chunks), split)
