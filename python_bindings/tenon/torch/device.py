# SPDX-License-Identifier: Apache-2.0
"""Tenon's devices as a device of PyTorch.

    tenon.torch.device.register("acme")
    model.to("acme")

The devices of one kind are PyTorch's for a process: PyTorch has one place for devices that it does not know. docs/torch.md
says what runs where, and what is counted.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import types
from pathlib import Path
from typing import Any

import tenon
from tenon.torch import _device_build, _device_module
from tenon.torch._device_calls import Dispatcher
from tenon.torch._load import _torch
from tenon.torch._report import remember_device

__all__ = ["register"]

_NAME_OF_CPU = "tenon"  # "cpu" is PyTorch's own
_lock = threading.Lock()
_kept: list[Any] = []  # what ends with its last reference
_registered: tuple[str, str, types.ModuleType] | None = None


def register(kind: str, *, name: str | None = None) -> types.ModuleType:
    """Makes the devices of `kind`, a device kind of Tenon ("acme"), a device of PyTorch, and returns its module, `torch.acme`.

    `name` is what PyTorch calls it: the kind itself unless given, and "tenon" for the kind "cpu". Registering the same again
    does nothing. Raises RuntimeError if PyTorch has another such device in this process, ValueError for a kind that Tenon
    does not know, ImportError without PyTorch 2.11 or newer or a C++20 compiler.
    """
    global _registered
    torch = _torch()
    shown = name or (_NAME_OF_CPU if kind == "cpu" else kind)
    with _lock:
        if _registered is not None:
            if _registered[:2] == (kind, shown):
                return _registered[2]
            raise RuntimeError(
                f"torch.device.register: expected to register one kind of device in a process, got {kind!r} as {shown!r} after "
                f"{_registered[0]!r} as {_registered[1]!r}; start another process for it"
            )
        taken = torch._C._get_privateuse1_backend_name()
        if taken != "privateuseone":
            raise RuntimeError(
                f"torch.device.register: expected PyTorch's place for a device of others to be free, got {taken!r}, which another "
                f"package has registered; start another process for {kind!r}"
            )
        if ":" in kind:
            raise ValueError(
                f"torch.device.register: expected a kind of devices, such as {kind.partition(':')[0]!r}, got {kind!r}"
            )
        tenon.device(kind)  # raises, with the kinds that there are
        if kind != shown or shown.isidentifier() is False:
            _check_name(torch, shown)
        native = _device_build.loaded(torch)
        native.start(_device_build.library(), kind)
        dispatcher = Dispatcher(torch, native, kind)
        native.set_dispatcher(dispatcher)
        atexit.register(_end_threads, native)
        remember_device(dispatcher.report)
        torch.utils.rename_privateuse1_backend(shown)
        module = _device_module.made(torch, native, shown)
        torch._register_device_module(shown, module)
        # Calls that autocast does not name go on as they are.
        others = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
        others.fallback(torch.library.fallthrough_kernel)
        _kept.append(others)
        # `model.to()` then keeps its parameters, as for devices that PyTorch knows: weights that are one stay one.
        torch.__future__.set_swap_module_params_on_conversion(True)
        torch.utils.generate_methods_for_privateuse1_backend()
        # accelerate, and with it the Trainer of transformers, knows the devices of others by this variable alone.
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", shown)
        _registered = (kind, shown, module)
        return module


def _end_threads(native: Any) -> None:
    """Ends PyTorch's threads of backward passes on devices, and waits until they are gone.

    Each asks for the interpreter when it begins and when it ends. One that does so while the
    interpreter ends would end the process by std::terminate.
    """
    native.stop_backward()
    end = time.monotonic() + 10
    while time.monotonic() < end and any(map(_is_backward, Path("/proc/self/task").iterdir())):
        time.sleep(0.001)


def _is_backward(task: Path) -> bool:
    try:
        return (task / "comm").read_text().startswith("pt_autograd")
    except OSError:  # it has just ended
        return False


def _check_name(torch: Any, name: str) -> None:
    if not name.isidentifier() or hasattr(torch, name):
        raise ValueError(
            f"torch.device.register: expected a name that PyTorch has not, got {name!r}"
        )
