# SPDX-License-Identifier: Apache-2.0
"""Which values, functions and attributes count for the captured state of a function (captured_state.py), and what makes a refusal."""

from __future__ import annotations

import functools
import io
import random
import threading
import types
import weakref
from typing import Any

from tenon import _core

# Values that are equal if their texts are.
PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))

# What reads variables by names that no code tells, and builtin modules whose functions answer from hidden state.
HIDDEN_READERS = {"eval", "exec", "globals", "locals", "vars", "__import__", "open", "input"}
HIDDEN_STATE = {"sys", "posix", "gc", "time", "io", "_io"}
# Modules whose state has no part in results, unless one of these names is read.
BESIDE: dict[str, set[str]] = {
    "logging": {
        "level",
        "isEnabledFor",
        "getEffectiveLevel",
        "hasHandlers",
        "handlers",
        "disabled",
    },
    "warnings": {"filters"},
    "threading": {"current_thread", "get_ident", "get_native_id", "active_count", "enumerate"},
    "typing": set(),
    "traceback": set(),
    "linecache": set(),
    "importlib": set(),
}
# Settings of this package that no signature holds, as functions that tell them.
SETTINGS = (_core.get_num_threads,)
# Classes of tenon.distributed whose counters change as ranks talk, which is in no program.
RANK_GROUPS = {"ProcessGroup", "DeviceMesh", "PassState"}
LOCK_STATE = {"acquire", "locked", "_is_owned"}
# Methods that no reading calls.
UNREAD = {
    f"__{name}__"
    for name in "new init del dir reduce reduce_ex getstate setstate sizeof setattr delattr setitem delitem init_subclass "
    "subclasshook set_name set delete copy deepcopy getnewargs doc module dict weakref annotations match_args "
    "dataclass_fields dataclass_params abstractmethods slots orig_bases parameters".split()
}
MADE = {"__init__", "__new__", "__class_getitem__"}  # what calling or indexing a class runs
CODE = (types.FunctionType, staticmethod, classmethod, property, functools.partialmethod)
LOCKS = (type(threading.Lock()), type(threading.RLock()))
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
# Kinds of objects whose state cannot be compared.
REFUSED: list[tuple[Any, str]] = [
    (types.MappingProxyType, "it reads a mapping proxy, which shows another dictionary"),
    (VIEWS, "it reads a view of a dictionary, which shows another object"),
    (weakref.ref, "it reads a weak reference, whose object may go"),
    (io.IOBase, "it reads a file"),
    (random.Random, "it draws random numbers of Python; pass them as arguments"),
    (types.GeneratorType, "it reads a generator, which is used up as it is read"),
    (types.CoroutineType, "it reads a coroutine"),
]


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def module_of(cls: type) -> str:
    """The name of its module; none of classes written in C whose instances alone have one."""
    module = cls.__module__
    return module if isinstance(module, str) else ""


def is_ours(cls: type) -> bool:
    return module_of(cls).partition(".")[0] == "tenon"


def functions_of(item: Any) -> list[Any]:
    """The functions in Python that reading or calling an attribute of a class runs."""
    if isinstance(item, (staticmethod, classmethod)):
        return functions_of(item.__func__) or [item.__func__]
    if isinstance(item, property):
        return [item.fget] if item.fget is not None else []
    if isinstance(item, functools.cached_property):
        return [item.func]
    if isinstance(item, functools.partialmethod):
        return [item.func, item.args, item.keywords]
    return [item] if isinstance(item, types.FunctionType) else []
