# SPDX-License-Identifier: Apache-2.0
"""Operators by namespace: tenon.ops.add, and tenon.ops.acme.swiglu of a package.

A namespace is loaded when it is first named: by the plugin whose note lists it, or from the operator
file that an installed distribution announces for it. Until then nothing of its package runs. If that
fails, the error says why.
"""

import json

from tenon import _core
from tenon.host import entry_points as _entry_points
from tenon.ops._interpreter import load as _load_files
from tenon.ops._suggestions import did_you_mean

__all__ = ["load", "names"]


def load(*paths):
    """Define the operators of operator files (docs/operator_files.md), without a compiler, and
    return their namespace. The files of one call share it. A file that was loaded before is
    replaced as a whole."""
    namespace = _load_files(*paths)
    return _Namespace(namespace) if namespace else None


def names():
    """Names of all operators that are loaded, with their namespaces."""
    return _core.operator_names()


class _Namespace:
    """Operators of one namespace as attributes."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        try:
            return _core.operator(f"{self._name}::{name}")
        except AttributeError:
            hint = did_you_mean(name, dir(self))
            raise AttributeError(f"there is no operator {self._name}::{name}{hint}") from None

    def __dir__(self):
        prefix = f"{self._name}::"
        return [name[len(prefix) :] for name in names() if name.startswith(prefix)]

    def __repr__(self):
        return f"<operators of namespace {self._name}>"


def _is_loaded(namespace):
    return any(full.startswith(f"{namespace}::") for full in names())


def _plugins():
    return json.loads(_core.plugin_describe())["plugins"]


def _operator_files():
    return _entry_points.operator_files()


def _load(namespace):
    """Load the plugin that defines the namespace. False: there is none."""
    for plugin in _plugins():
        if namespace in plugin["namespaces"] and plugin["state"] != "loaded":
            _core.plugin_load(
                plugin["path"]
            )  # one that was refused is refused again, with its reason
            return True
    if namespace in (files := _operator_files()):
        path, problem = files[namespace]
        if problem:
            raise FileNotFoundError(problem)
        load(path)
        if not _is_loaded(namespace):
            raise ValueError(f"expected operators of namespace {namespace} in {path}")
        return True
    return False


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon.ops' has no attribute '{name}'")
    if _is_loaded(name):
        return _Namespace(name)
    if f"tenon::{name}" not in names():
        try:
            found = _load(name)
        except Exception as error:
            raise AttributeError(
                f"operators of namespace {name} cannot be loaded: {error}"
            ) from error
        if found:
            return _Namespace(name)
        raise AttributeError(
            f"there is no operator tenon::{name}, and no known plugin or package of namespace "
            f"{name}{did_you_mean(name, __dir__())}"
        )
    return getattr(_Namespace("tenon"), name)


def __dir__():
    loaded = names()  # before the plugins are asked: this makes them known
    namespaces = {full.partition("::")[0] for full in loaded}
    namespaces.update(space for plugin in _plugins() for space in plugin["namespaces"])
    return sorted({"load", "names", *namespaces, *_operator_files(), *dir(_Namespace("tenon"))})
