# SPDX-License-Identifier: Apache-2.0
"""Operators by namespace: tenon.ops.add, and tenon.ops.acme.swiglu of a plugin."""

from tenon import _core

__all__ = ["names"]


def names():
    """Names of all operators, with their namespaces."""
    return _core.operator_names()


class _Namespace:
    """Operators of one namespace as attributes."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        try:
            return _core.operator(f"{self._name}::{name}")
        except AttributeError:
            raise AttributeError(f"there is no operator {self._name}::{name}") from None

    def __dir__(self):
        prefix = f"{self._name}::"
        return [name[len(prefix) :] for name in names() if name.startswith(prefix)]

    def __repr__(self):
        return f"<operators of namespace {self._name}>"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon.ops' has no attribute '{name}'")
    if any(full.startswith(f"{name}::") for full in names()):
        return _Namespace(name)
    return getattr(_Namespace("tenon"), name)


def __dir__():
    return sorted(
        {"names", *(name.partition("::")[0] for name in names()), *dir(_Namespace("tenon"))}
    )
