# SPDX-License-Identifier: Apache-2.0
"""Which devices there are, and what each can do."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import tenon
from tenon import _core


def devices(all: bool = False) -> list[_core.device]:
    """The devices of loaded plugins. With `all`, plugins that bring other kinds and were not needed yet are loaded first.

    A plugin for a kind of device is loaded when that is named for the first time, as in tenon.device('cuda'), and its
    devices are listed from then on. `tenon.runtime.device_kinds` tells of the others without loading them.
    """
    if all:
        for kind, state in device_kinds().items():
            if state == "not loaded":
                # A plugin without its driver, or without a device, is no error of who asks what there is.
                try:
                    _core.device(kind)
                except (RuntimeError, LookupError, ValueError, OSError, NotImplementedError):
                    continue
    return _core.devices()


def device_kinds() -> dict[str, str]:
    """Kinds of devices that plugins here bring: "loaded", "not loaded" or "refused: REASON". No plugin is loaded for it
    that was not to be loaded anyway; whether a machine has such a device, its plugin says when it is loaded.
    """
    found: dict[str, str] = {}
    for plugin in json.loads(_core.plugin_describe())["plugins"]:
        state = {"loaded": "loaded", "known": "not loaded"}.get(plugin["state"])
        if state is None:
            state = f"refused: {plugin.get('reason', plugin['state'])}"
        for kind in plugin.get("devices", ()):
            if found.get(kind) != "loaded":
                found[kind] = state
    return dict(sorted(found.items()))


@dataclasses.dataclass(frozen=True)
class Capabilities:
    """What a device can do beside running operators, and which dtypes its kernels compute in."""

    device: _core.device
    host_memory: bool  # the host reads and writes its memory; each call finishes before it returns
    # Work is queued, on streams; else `Stream` and `Event` are there and order nothing.
    streams: bool
    work_graphs: bool  # `WorkGraph`
    profile: bool  # `profiler.device_profile`
    collective: bool  # its own library for collectives
    shared_memory: bool  # `runtime.ipc`
    compiles_source: bool  # kernels from source, `kernel_c`
    compiles_programs: bool  # a vendor's compiler takes parts of programs
    dtypes: tuple[_core.dtype, ...]  # in which it adds by a kernel of its own

    def __str__(self) -> str:
        names = [
            field.name.replace("_", " ")
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is True
        ]
        dtypes = ", ".join(each.name for each in self.dtypes)
        return f"{self.device}: {', '.join(names) or 'operators alone'}; computes in {dtypes or 'no dtype itself'}"


_GROUPS = {
    "streams": 0,
    "work_graphs": 2,
    "profile": 3,
    "collective": 4,
    "shared_memory": 5,
    "compiles_source": 7,
    "compiles_programs": 9,
}  # TENON_GROUP_ASYNC, ...
_DTYPES = """bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float8_e4m3 float8_e5m2 float16 bfloat16 float32
    float64 complex64 complex128"""


def capabilities(device: _core.device | str | None = None) -> Capabilities:
    """What `device` can do; None: the device on which tensors are made."""
    chosen = _core.get_device() if device is None else _core.device(device)
    groups: Any = {name: _core.has_group(chosen, number) for name, number in _GROUPS.items()}
    dtypes = tuple(
        getattr(tenon, name) for name in _DTYPES.split() if _adds(chosen, getattr(tenon, name))
    )
    host_memory = bool(_core.device_properties(chosen)["host_memory"])
    return Capabilities(device=chosen, host_memory=host_memory, dtypes=dtypes, **groups)


def _adds(device: _core.device, dtype: _core.dtype) -> bool:
    report = json.loads(_core.explain("tenon::add", device, dtype))
    return report.get("route") == "native"
