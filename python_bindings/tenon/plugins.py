# SPDX-License-Identifier: Apache-2.0
"""Plugins: which are loaded, why others are not, and what runs where."""

from __future__ import annotations

import json
import os

from tenon import _core

__all__ = [
    "add_folder",
    "coverage",
    "doctor",
    "explain",
    "list",
    "load",
    "load_plugin",
    "sdk_path",
    "unload",
]


def load(path, isolated=False, deadline=None):
    """Load a plugin library now, and raise what is wrong with it.

    `isolated` runs a device plugin in a process of its own: if it crashes, or leaves a request
    unanswered for `deadline` seconds (default: 300), that is an error here and not the end."""
    path = os.path.abspath(os.fspath(path))
    if isolated:
        folders = ":".join(json.loads(_core.plugin_describe())["folders"])
        _core.plugin_load_isolated(path, folders, 0.0 if deadline is None else deadline)
    elif deadline is not None:
        raise ValueError("deadline: only isolated plugins have one; pass isolated=True")
    else:
        _core.plugin_load(path)


load_plugin = load


def unload(name):
    """Unload a plugin that nothing uses any more."""
    _core.plugin_unload(name)


def add_folder(path):
    """Add a folder whose plugins are loaded when one of their devices is first named."""
    _core.plugin_add_folder(os.path.abspath(os.fspath(path)))


def list():
    """What the host knows about every plugin it saw: a list of dicts."""
    return json.loads(_core.plugin_describe())["plugins"]


def explain(op, device=None, dtype=None):
    """What would run operator `op` on `device` for `dtype`, and why."""
    name = getattr(op, "full_name", op)
    return _Report(json.loads(_core.explain(name, device, dtype)))


def coverage(device=None, dtype=None):
    """How every operator would run on `device`: a dict from route (native, lowered, host, none) to
    operator names."""
    result = {}
    for name in _core.operator_names():
        route = json.loads(_core.explain(name, device, dtype)).get("route", "none")
        result.setdefault(route, []).append(name)
    return result


def doctor():
    """Print every plugin that was looked at: loaded or refused, why, and how to fix it."""
    report = json.loads(_core.plugin_describe())
    for entry in report["plugins"]:
        print(f"{entry['state']:<8}  {entry['name']} {entry['version']}  {entry['path']}")
    for attempt in report["attempts"]:
        if attempt["reason"] != "NONE":
            print(
                f"\n{attempt['name'] or attempt['path']}: {attempt['stage']} failed ({attempt['reason']})"
            )
            print(f"  {attempt['text']}")
            if attempt["fix"]:
                print(f"  fix: {attempt['fix']}")


def sdk_path():
    """The folder for CMAKE_PREFIX_PATH, with which find_package(Tenon) finds headers and tools."""
    return os.path.dirname(os.path.abspath(__file__))


class _Report(dict):
    """A dict that prints as indented text."""

    def __str__(self):
        return json.dumps(self, indent=2)
