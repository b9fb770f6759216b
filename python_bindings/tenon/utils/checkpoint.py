# SPDX-License-Identifier: Apache-2.0
"""Recomputation: trade time for memory by computing the inside of a function again in backward.

A call under `checkpoint` keeps its arguments and, for each tensor that an operator inside saves, a
number. The first of these that backward unpacks runs the function again, up to the last tensor
that was saved, and hands out what the operators save this time. Chen et al., 2016, "Training Deep Nets
with Sublinear Memory Cost", arXiv:1604.06174.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.amp.autocast import current_region
from tenon.autograd.saved_tensors import SavedTensor, saved_tensors_hooks
from tenon.func import batching

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "recompute"]


class CheckpointError(RuntimeError):
    """The function saved other tensors when it was computed again."""


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose intermediate tensors are computed again in backward.

    The function must compute the same whenever it gets the same arguments. What decides how its
    operators compute is as it was in the call: the region of `tenon.amp.autocast`, the default dtype,
    `tenon.use_deterministic_algorithms`, and random numbers, unless `preserve_rng_state` is false.
    Tensors among the arguments are kept through the
    surrounding saved_tensors_hooks, so that checkpoints nest; tensors in lists and dicts among them
    are kept as they are. Backward may run several times, and with `create_graph`; each pass
    computes the function again.

    There is one implementation; `use_reentrant` is accepted for scripts that set it.

    Raises CheckpointError in backward if the second run saves other tensors than the first, and
    RuntimeError if a tensor that the function reads was modified in place since.
    """
    if not tenon.is_grad_enabled():
        return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(frame.pack, _unpack), _inside():
        return function(*args, **kwargs)


recompute = checkpoint
_regions = threading.local()


def is_inside() -> bool:
    """Whether what this thread saves for backward will be computed again, in the call or in backward: who keeps parts of it by
    saved_tensors_hooks of its own would keep it from that."""
    return getattr(_regions, "depth", 0) > 0


@contextlib.contextmanager
def _inside() -> Iterator[None]:
    _regions.depth = getattr(_regions, "depth", 0) + 1
    try:
        yield
    finally:
        _regions.depth -= 1


@contextlib.contextmanager
def surrounding(again: Callable[[Callable], contextlib.AbstractContextManager]) -> Iterator[None]:
    """What a checkpoint inside of this block computes again, it computes inside of `again(function)`: who lends modules
    something for the time of a call lends it for the second run, too."""
    before = getattr(_regions, "surroundings", ())
    _regions.surroundings = (*before, again)
    try:
        yield
    finally:
        _regions.surroundings = before


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool = False, **options: Any
) -> Any:
    """Apply `functions` (a Sequential or a list) one after the other, in `segments` checkpoints.

    The last segment is computed without one: backward would need its tensors at once.
    """
    steps = list(functions.children() if isinstance(functions, tenon.nn.Module) else functions)
    if not 1 <= segments <= max(len(steps), 1):
        raise ValueError(
            f"checkpoint_sequential: expected 1 to {len(steps)} segments, one or more functions "
            f"in each, got {segments}"
        )
    size = len(steps) // segments
    for segment in range(segments - 1):
        run = _in_sequence(steps[segment * size : (segment + 1) * size])
        input = checkpoint(run, input, use_reentrant=use_reentrant, **options)
    return _in_sequence(steps[(segments - 1) * size :])(input)


def _in_sequence(steps: Iterable[Callable]) -> Callable:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


class _Enough(BaseException):
    """Ends a second run: every tensor that the first one saved is there again."""


class _Argument:
    """A tensor among the arguments, kept as an operator would keep it."""

    def __init__(self, tensor: Tensor) -> None:
        self.requires_grad = tensor.requires_grad
        self.saved = SavedTensor(tensor, False)

    def again(self) -> Tensor:
        tensor = self.saved.unpack().detach()
        return tensor.requires_grad_() if self.requires_grad else tensor


class _Settings:
    """What of the thread and the program decides how operators compute, as it is now."""

    def __init__(self) -> None:
        self.region = current_region()
        self.dtype = tenon.get_default_dtype()
        self.deterministic = _core.is_deterministic()
        self.levels = batching.running_levels()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block in which it is so again."""
        now = _Settings()
        self._set_program_wide(now)
        try:
            # Without a region there is nothing to enter: in a backward pass none of the caller's acts.
            with self.region or contextlib.nullcontext(), batching.running(self.levels):
                yield
        finally:
            now._set_program_wide(self)

    def _set_program_wide(self, now: _Settings) -> None:
        if self.dtype != now.dtype:
            tenon.set_default_dtype(self.dtype)
        if self.deterministic != now.deterministic:
            tenon.use_deterministic_algorithms(self.deterministic)


class _Frame:
    """One call under checkpoint."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, preserves: bool) -> None:
        self.function = function
        self.args = [_kept(value) for value in args]
        self.kwargs = {name: _kept(value) for name, value in kwargs.items()}
        self.settings = _Settings()
        self.surroundings = getattr(_regions, "surroundings", ())
        self.devices = _devices_of((*args, *kwargs.values())) if preserves else []
        self.random_states = [_core.random_state(device) for device in self.devices]
        self.saved: list[tuple] = []  # what each saved tensor looked like
        # Computed again and not unpacked yet, with their versions.
        self.ready: dict[int, tuple[Tensor, int]] = {}

    def pack(self, tensor: Tensor) -> tuple[_Frame, int]:
        self.saved.append(_description(tensor))
        return self, len(self.saved) - 1

    def unpack(self, index: int) -> Tensor:
        if index not in self.ready:
            self.ready.clear()
            self.run_again()
        # Every node asks once in a pass; a pass over a part of the graph leaves some.
        tensor, version = self.ready.pop(index)
        if tensor._version != version:
            raise _modified(tensor, version, tensor._version)
        return tensor

    def run_again(self) -> None:
        count = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            self.check(count, tensor)
            self.ready[count] = tensor, tensor._version
            count += 1
            if count == len(self.saved):
                raise _Enough
            return tensor

        args = [_again(value) for value in self.args]
        kwargs = {name: _again(value) for name, value in self.kwargs.items()}
        states = [tenon.random.get_state(device) for device in self.devices]
        try:
            _set_random_states(self.devices, self.random_states)
            hooks = saved_tensors_hooks(pack, _given)
            with contextlib.ExitStack() as stack:
                for again in self.surroundings:
                    stack.enter_context(again(self.function))
                with self.settings.again(), tenon.enable_grad(), hooks, _inside():
                    self.function(*args, **kwargs)
        except _Enough:
            return
        finally:
            _set_random_states(self.devices, states)
        raise CheckpointError(
            f"checkpoint: the function saved {len(self.saved)} tensors for backward when it was "
            f"called, and {count} when it was computed again; it must run the same operators each "
            "time, so it may not depend on anything that changes between forward and backward"
        )

    def check(self, index: int, tensor: Tensor) -> None:
        before, now = self.saved[index], _description(tensor)
        if before[:3] != now[:3]:
            raise CheckpointError(
                f"checkpoint: saved tensor {index} had shape {tuple(before[0])} and dtype "
                f"{before[1].name} when the function was called, and shape {tuple(now[0])} and "
                f"dtype {now[1].name} when it was computed again; the function must run the same "
                "operators each time"
            )
        if before[3] == now[3] and before[4] != now[4]:
            raise _modified(tensor, before[4], now[4])


def _modified(tensor: Tensor, expected: int, found: int) -> RuntimeError:
    return RuntimeError(
        f"checkpoint: a tensor of shape {tuple(tensor.shape)} that the function reads was modified "
        f"in place since it was called: expected version {expected}, found version {found}; run "
        "backward before the parameters change"
    )


def _unpack(packed: tuple[_Frame, int]) -> Tensor:
    frame, index = packed
    return frame.unpack(index)


def _given(tensor: Tensor) -> Tensor:
    return tensor


def _description(tensor: Tensor) -> tuple:
    # Memory and version tell tensors from outside, which must not have changed, from those made
    # within: these lie elsewhere the next time, or went through the same number of writes.
    part = _core.parts_of(tensor)[0] if tensor.layout == "sharded" else tensor
    return tensor.shape, tensor.dtype, tensor.device, part.data_ptr(), tensor._version


def _kept(value: Any) -> Any:
    return _Argument(value) if isinstance(value, Tensor) else value


def _again(value: Any) -> Any:
    return value.again() if isinstance(value, _Argument) else value


def _devices_of(values: Iterable) -> list:
    devices = [tenon.device("cpu")]
    for value in values:
        if isinstance(value, Tensor) and value.device not in devices:
            devices.append(value.device)
    return devices


def _set_random_states(devices: list, states: list) -> None:
    for device, state in zip(devices, states, strict=True):
        tenon.random.set_state(state, device)
