# SPDX-License-Identifier: Apache-2.0
"""Operator calls as files, for reports of bugs and for finding them."""

from __future__ import annotations

import os
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.io import load, save

from .observation import Observer

_FORMAT = "tenon.call"


def save_call(path: str | os.PathLike[str], operator: str, args: tuple[Any, ...]) -> None:
    """Write one call, with the values of its tensors, as a safetensors file."""
    save({"format": _FORMAT, "operator": operator, "args": [_stored(arg) for arg in args]}, path)


class save_failing:
    """Save the first operator call of this thread that fails in a block to `path`.

        with tenon.utils.save_failing("call.safetensors"):
            model(x)

    The error passes on. `tenon.utils.replay(path)` makes the call again, in another process or on
    another device. Only the host's and the operator's own errors count, not those found before the
    call, such as a wrong number of arguments.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.operator: str | None = None  # the one that failed
        self._observer = Observer(lambda name, args, results: None, self._failed)

    def _failed(self, name: str, args: tuple[Any, ...]) -> None:
        if self.operator is None:
            self.operator = name
            save_call(self.path, name, args)

    def __enter__(self) -> save_failing:
        self.operator = None
        self._observer.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._observer.__exit__(*exception)


def replay(path: str | os.PathLike[str], device: Any = None) -> Any:
    """Make a call again that `save_failing` or `check_numerics` saved; returns its result or raises
    its error. `device`: where, instead of the device it was made on."""
    stored = load(path)
    if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
        raise ValueError(
            f"{os.fspath(path)}: expected a call saved by save_failing or check_numerics, got another "
            "file"
        )
    args = [_restored(each, device) for each in stored["args"]]
    with tenon.no_grad():
        return _core.operator(stored["operator"])(*args)


def _stored(value: Any) -> Any:
    """JSON keeps numbers, texts and lists; the rest is tagged."""
    if isinstance(value, Tensor):
        return {"tensor": value.detach(), "device": str(value.device)}
    if isinstance(value, tuple):
        return [_stored(each) for each in value]
    if isinstance(value, tenon.dtype):
        return {"dtype": value.name}
    if isinstance(value, tenon.device):
        return {"place": str(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return value


def _restored(value: Any, device: Any) -> Any:
    if isinstance(value, list):
        return [_restored(each, device) for each in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return value["tensor"].to(device or value["device"])
    if "dtype" in value:
        return tenon.dtype(value["dtype"])
    if "place" in value:
        return tenon.device(device or value["place"])
    return complex(*value["complex"])
