# SPDX-License-Identifier: Apache-2.0
"""The switch that says whether operators are recorded for gradients."""

from __future__ import annotations

import functools

from tenon import _core

is_grad_enabled = _core.is_grad_enabled


class set_grad_enabled:
    """Switch recording on or off: at once as a call, for a block as a context manager."""

    __module__ = "tenon.autograd"
    __slots__ = ("_on", "_previous")

    def __init__(self, on):
        self._on = bool(on)
        self._previous = _core._set_grad_enabled(self._on)

    def __enter__(self):
        _core._set_grad_enabled(self._on)
        return self

    def __exit__(self, *exception):
        _core._set_grad_enabled(self._previous)


class _Recording:
    """Context manager and decorator that sets recording for a block or a function."""

    _on: bool
    __slots__ = ("_previous",)

    def __enter__(self):
        self._previous = _core._set_grad_enabled(self._on)
        return self

    def __exit__(self, *exception):
        _core._set_grad_enabled(self._previous)

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __call__(self, function):
        on = self._on

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            previous = _core._set_grad_enabled(on)
            try:
                return function(*args, **kwargs)
            finally:
                _core._set_grad_enabled(previous)

        return wrapper


class no_grad(_Recording):
    """Operators in this block are not recorded. Also a decorator: `@tenon.no_grad()`."""

    __module__ = "tenon.autograd"
    __slots__ = ()
    _on = False


class enable_grad(_Recording):
    """Operators in this block are recorded. Also a decorator: `@tenon.enable_grad()`."""

    __module__ = "tenon.autograd"
    __slots__ = ()
    _on = True


class inference_mode(no_grad):
    """no_grad() by the name that programs for inference use; `inference_mode(False)` changes
    nothing.

    Tensors made inside are ordinary ones: they may be used in recorded operators later.
    """

    __module__ = "tenon.autograd"
    __slots__ = ()

    def __new__(cls, mode=True):
        if callable(mode):
            return no_grad(mode)
        return super().__new__(cls) if mode else set_grad_enabled(is_grad_enabled())
