# SPDX-License-Identifier: Apache-2.0
"""profile: a block, or steps of a loop, recorded."""

from __future__ import annotations

import enum
import functools
import os
import re
import socket
from collections.abc import Callable, Iterable
from os import PathLike
from types import TracebackType
from typing import Any

import tenon
from tenon import _core

from . import export
from .device_profile import device_profile as DeviceProfile
from .events import Event, Frame, Memory, decode, nest, outside_of_tenon
from .modules import ModuleScopes
from .report import write_report
from .scope import number_of
from .table import Table, summarize


class ProfilerAction(enum.Enum):
    """What a schedule says about a step."""

    NONE = 0
    WARMUP = 1  # recorded, and thrown away
    RECORD = 2
    RECORD_AND_SAVE = 3  # the last step of a cycle


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Cycles of steps: `wait` without recording, `warmup` recorded and thrown away, `active` recorded.

    `repeat` cycles (0: as long as there are steps), after `skip_first` steps.
    """
    if active < 1 or min(wait, warmup, repeat, skip_first) < 0:
        raise ValueError(
            "schedule: expected active >= 1 and wait, warmup, repeat and skip_first >= 0, got "
            f"active={active}, wait={wait}, warmup={warmup}, repeat={repeat}, skip_first={skip_first}"
        )

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        cycle = wait + warmup + active
        if step < 0 or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Record the operator calls of this thread in a block, or in steps that a `schedule` chooses.

        with tenon.profiler.profile(record_shapes=True) as p:
            model(x)
        print(p.table())                   # where the time went
        p.export_html("report.html")       # opens without a server
        p.export_chrome_trace("trace.json")

        with tenon.profiler.profile(
            schedule=tenon.profiler.schedule(wait=1, warmup=1, active=3, repeat=2),
            on_trace_ready=lambda p: p.export_perfetto(f"steps-{p.step_number}.pftrace"),
        ) as p:
            for batch in loader:
                train(batch)
                p.step()

    `activities` are "host" and devices, whose own records are shown beside the host's if their plugin
    keeps any. `record_shapes`: dtypes and shapes of tensor arguments. `with_stack`: Python's stacks.
    `with_modules`: calls of modules. `profile_memory`: the bytes in use on the device after every
    operator. Each of them makes a call slower; without them it takes some 50 ns more. `capacity` is how
    many calls are kept; `lost` counts those beyond it. One profile at a time on a thread.
    """

    def __init__(
        self,
        activities: Iterable[Any] = ("host",),
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        capacity: int = 1_000_000,
    ) -> None:
        if isinstance(activities, str):
            raise TypeError(f"profile: expected a list of activities, got the text {activities!r}")
        if capacity < 1:
            raise ValueError(f"profile: expected capacity >= 1, got {capacity}")
        self._devices = [tenon.device(each) for each in activities if str(each) != "host"]
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._shapes, self._memory = bool(record_shapes), bool(profile_memory)
        self._stack, self._modules = bool(with_stack), bool(with_modules)
        self._capacity = capacity
        self._action = ProfilerAction.NONE
        self._device_profiles: list[DeviceProfile] = []
        self._module_scopes: ModuleScopes | None = None
        self._step_begun = False
        self._records: _core.CallRecords | None = None  # of the last cycle
        self._decoded: tuple[list[Event], list[Memory]] | None = None
        self._device_events: list[Event] = []
        self.step_number = 0  # calls of step() so far
        self.lost = 0  # records of the last cycle that did not fit

    # -- recording ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; `with` does it."""
        self.step_number = 0
        self._go_to(self._schedule(0) if self._schedule else ProfilerAction.RECORD_AND_SAVE)

    def step(self) -> None:
        """The end of a step, in a loop with a schedule."""
        self._end_step()
        before = self._action
        self.step_number += 1
        after = self._schedule(self.step_number) if self._schedule else before
        if self._schedule and before in _RECORDS:
            if before is ProfilerAction.RECORD_AND_SAVE or after not in _RECORDS:
                self._finish()
        self._go_to(after)

    def stop(self) -> None:
        """End; `with` does it."""
        self._end_step()
        if self._action in _RECORDS:
            self._finish()
        elif self._action is ProfilerAction.WARMUP:
            self._stop_recording()
        self._action = ProfilerAction.NONE

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, profiled: the last call's records are those that are shown."""

        @functools.wraps(function)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return profiled

    def _go_to(self, action: ProfilerAction) -> None:
        is_on = self._action is not ProfilerAction.NONE
        if action is ProfilerAction.NONE:
            if is_on:
                self._stop_recording()
        elif not is_on:
            self._start_recording()
        elif self._action is ProfilerAction.WARMUP and action in _RECORDS:
            self._stop_recording()
            self._start_recording()
        self._action = action
        if self._schedule and action in _RECORDS:
            _core.scope_begin(number_of("step", f"step {self.step_number}"))
            self._step_begun = True

    def _end_step(self) -> None:
        if self._step_begun:
            _core.scope_end()
            self._step_begun = False

    def _start_recording(self) -> None:
        _core.record_start(self._capacity, self._shapes, self._memory, self._stack)
        try:
            if self._modules:
                self._module_scopes = ModuleScopes()
            for device in self._devices:
                device_profile = DeviceProfile(device)
                device_profile.__enter__()
                self._device_profiles.append(device_profile)
        except BaseException:
            self._stop_recording()
            raise

    def _stop_recording(self) -> None:
        profiles, self._device_profiles = self._device_profiles, []
        for device_profile in profiles:
            device_profile.__exit__(None, None, None)
        if self._module_scopes is not None:
            self._module_scopes.close()
            self._module_scopes = None
        self._records, self._decoded = _core.record_stop(), None
        self.lost = self._records.lost
        self._device_events = [
            Event(
                record.name,
                record.kind,
                record.begin_ns,
                record.end_ns,
                f"{device_profile.device} stream {record.stream:#x}",
                bytes=record.bytes,
            )
            for device_profile in profiles
            for record in device_profile.records
        ]

    def _finish(self) -> None:
        self._stop_recording()
        self._action = ProfilerAction.NONE
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    # -- results -----------------------------------------------------------------------------------

    def _decode(self) -> tuple[list[Event], list[Memory]]:
        if self._decoded is None:  # records stay as they are until they are looked at
            records = self._records
            if records is None:
                return [], []
            self._decoded = decode(records.tuples(), records.details(), self._frames())
        return self._decoded

    def _frames(self) -> dict[int, tuple[Frame, ...]]:
        return outside_of_tenon(self._records.stacks) if self._records is not None else {}

    def _nested_device_events(self) -> list[Event]:
        tracks: dict[str, list[Event]] = {}
        for event in self._device_events:
            tracks.setdefault(event.track, []).append(event)
        return [event for track in tracks.values() for event in nest(track)]

    @property
    def events(self) -> list[Event]:
        """Everything recorded in the last cycle: the host's events in order, then those of devices."""
        return [*self._decode()[0], *self._nested_device_events()]

    @property
    def memory(self) -> list[Memory]:
        """Memory in use after each operator, with `profile_memory`."""
        return self._decode()[1]

    def table(self, group_by: str = "operator", sort_by: str = "self_ns") -> Table:
        """Events summed up: by "operator", "shape", "module" or "stack" (the innermost line)."""
        needed = {"shape": self._shapes, "module": self._modules, "stack": self._stack}
        if not needed.get(group_by, True):
            option = {"shape": "record_shapes", "module": "with_modules", "stack": "with_stack"}
            raise ValueError(
                f"profile.table: group_by={group_by!r} needs what was not recorded; pass "
                f"{option[group_by]}=True to profile"
            )
        return summarize(self.events, group_by, sort_by)

    key_averages = table

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write JSON for chrome://tracing and ui.perfetto.dev."""
        export.write_chrome_trace(path, self.events, self.memory)

    def export_perfetto(self, path: str | PathLike[str]) -> None:
        """Write Perfetto's protobuf, a fifth of the size of the JSON, for ui.perfetto.dev. A million calls
        take half a second."""
        export.write_perfetto(path, self._records, self._frames(), self._nested_device_events())

    def export_tensorboard(self, folder: str | PathLike[str], worker: str | None = None) -> str:
        """Write a trace for TensorBoard's plugin torch-tb-profiler into its log folder, and return the
        file's path. `worker` names the process; default: host and process id. Operators need
        `record_shapes` to be told apart by shape."""
        worker = worker or re.sub(r"[^\w-]", "_", f"{socket.gethostname()}_{os.getpid()}")
        if not re.fullmatch(r"[\w-]+", worker):
            raise ValueError(
                f"export_tensorboard: expected a worker of letters, digits, _ and -, got {worker!r}"
            )
        return export.write_tensorboard(folder, worker, self.events)

    def export_html(self, path: str | PathLike[str], title: str = "Tenon profile") -> None:
        """Write one page with tables and a timeline, which opens without a server."""
        write_report(path, title, self.events, self.memory)

    def export_stacks(self, path: str | PathLike[str]) -> None:
        """Write folded stacks, weighted by nanoseconds, for flame graphs."""
        if not self._stack:
            raise ValueError("profile.export_stacks: pass with_stack=True to profile")
        export.write_stacks(path, self.events)

    def __repr__(self) -> str:
        return repr(self.table())
