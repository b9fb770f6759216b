# SPDX-License-Identifier: Apache-2.0
"""`torch.acme`: the functions that PyTorch, and programs written for it, look for in a device's module."""

from __future__ import annotations

import types
from typing import Any


class _DeviceScope:
    """`with torch.acme.device(1):`, the devices that are made without an index are this one."""

    def __init__(self, native: Any, index: int) -> None:
        self._native, self._index = native, index

    def __enter__(self) -> None:
        self._before = self._native.current_device()
        if self._index >= 0:
            self._native.set_device(self._index)

    def __exit__(self, *exception: object) -> None:
        self._native.set_device(self._before)


def made(torch: Any, native: Any, name: str) -> types.ModuleType:
    """The module of the device that PyTorch calls `name`."""
    module = types.ModuleType(f"torch.{name}", f"The device {name!r} of Tenon.")

    def index_of(device: Any = None) -> int:
        if device is None:
            return int(native.current_device())
        if isinstance(device, int):
            return device
        index = torch.device(device).index
        return int(native.current_device()) if index is None else int(index)

    def is_available() -> bool:
        return native.device_count() > 0

    def synchronize(device: Any = None) -> None:
        native.synchronize(index_of(device))

    def set_device(device: Any) -> None:
        native.set_device(index_of(device))

    def device(device: Any) -> _DeviceScope:
        return _DeviceScope(native, index_of(device))

    def manual_seed(seed: int) -> None:
        native.default_generator(native.current_device()).manual_seed(seed)

    def manual_seed_all(seed: int) -> None:
        for index in range(native.device_count()):
            native.default_generator(index).manual_seed(seed)

    def initial_seed() -> int:
        return int(native.default_generator(native.current_device()).initial_seed())

    def get_rng_state(device: Any = None) -> Any:
        return native.default_generator(index_of(device)).get_state()

    def set_rng_state(new_state: Any, device: Any = None) -> None:
        native.default_generator(index_of(device)).set_state(new_state)

    def get_amp_supported_dtype() -> list[Any]:
        return [torch.float16, torch.bfloat16]

    def _is_in_bad_fork() -> bool:
        return False  # a call on a device that did not survive a fork says so

    def empty_cache() -> None:
        """Memory is cached by Tenon, which gives it back when a device has no more."""

    for each in (
        *(is_available, synchronize, set_device, device, manual_seed, manual_seed_all),
        *(initial_seed, get_rng_state, set_rng_state, get_amp_supported_dtype, _is_in_bad_fork),
        empty_cache,
    ):
        setattr(module, each.__name__, each)
    module.device_count = native.device_count  # type: ignore[attr-defined]
    module.current_device = native.current_device  # type: ignore[attr-defined]
    return module
