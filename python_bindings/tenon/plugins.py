# SPDX-License-Identifier: Apache-2.0
"""Plugins: which are loaded, why others are not, and what runs where."""

from __future__ import annotations

import json
import os

from tenon import _core

__all__ = [
    "add_folder",
    "allow_overrides",
    "coverage",
    "doctor",
    "explain",
    "forbid_overrides",
    "list",
    "load",
    "load_plugin",
    "sdk_path",
    "unload",
]


def load(path, isolated=False, deadline=None, overrides=None):
    """Load a plugin library now, and raise what is wrong with it.

    `overrides`: whether its kernels for others' operators on others' devices are used; None leaves
    that as it is, which is no unless `allow_overrides` or TENON_OVERRIDES names it. `isolated` runs a device plugin in a process of its own: if it crashes, or leaves a request
    unanswered for `deadline` seconds (default: 300), that is an error here and not the end.

    A text without a slash is no path: plugins are never searched for, so it is NotFoundError."""
    path = _library_path(path)
    if overrides is not None:
        if isolated:
            raise ValueError("overrides: an isolated plugin has kernels for its own device alone")
        _core.plugin_allow_overrides(path, bool(overrides))
    if isolated:
        folders = ":".join(json.loads(_core.plugin_describe())["folders"])
        _core.plugin_load_isolated(path, folders, 0.0 if deadline is None else deadline)
    elif deadline is not None:
        raise ValueError("deadline: only isolated plugins have one; pass isolated=True")
    else:
        _core.plugin_load(path)


load_plugin = load


def _library_path(path):
    """The full path. A bare name goes to the host as it is, which refuses it and says what to write."""
    text = os.fsdecode(path)
    if isinstance(path, (str, bytes)) and os.sep not in text:
        _core.plugin_load(text)
    return os.path.abspath(text)


def unload(name):
    """Unload a plugin that nothing uses any more."""
    _core.plugin_unload(name)


def allow_overrides(name):
    """Use the kernels that plugin `name`, loaded or not, brings for others' operators on others'
    devices. "*": those of every plugin that was not named."""
    _core.plugin_allow_overrides(name, True)


def forbid_overrides(name):
    """Hold them back again."""
    _core.plugin_allow_overrides(name, False)


def add_folder(path):
    """Add a folder whose plugins are loaded when one of their devices is first named."""
    _core.plugin_add_folder(os.path.abspath(os.fspath(path)))


def list():
    """What the host knows about every plugin it saw: a list of dicts."""
    return json.loads(_core.plugin_describe())["plugins"]


def explain(op, device=None, dtype=None):
    """What would run operator `op` on `device` for `dtype`, and why: every kernel that is there for it,
    with its plugin, score and state; and what autotuning has chosen, with the measured times."""
    name = getattr(op, "full_name", op)
    report = json.loads(_core.explain(name, device, dtype))
    _judge(report)
    decisions = [
        decision
        for decision in json.loads(_core.autotune_report())["decisions"]
        if (decision["op"], decision["dtype"]) == (report["op"], report["dtype"])
        and decision["device"].split()[0] == report["device"].split(":")[0]
    ]
    if decisions:
        report["autotune"] = decisions
    return _Report(report)


OPTIONAL_SCORE = -0x40000000  # TENON_SCORE_OPTIONAL: one of several algorithms of a library


def _judge(report):
    """Say of every kernel whether it runs, and why; of the winner, why it wins."""
    last = None  # the kernel that nothing gets past
    for kernel in report.get("kernels", ()):
        name = kernel["plugin"]
        if kernel["held_back"] and not kernel["deterministic"] and _core.is_deterministic():
            kernel["state"] = (
                "held back: its results may differ from run to run; "
                "tenon.use_deterministic_algorithms(False)"
            )
            continue
        if kernel["held_back"]:
            kernel["state"] = (
                f"held back: needs consent; tenon.plugins.allow_overrides('{name}') "
                f"or TENON_OVERRIDES={name}"
            )
            continue
        if kernel["optional"] and kernel["score"] <= OPTIONAL_SCORE:
            kernel["state"] = "optional: runs where tenon.autotune chooses it"
            continue
        if kernel["optional"]:
            kernel["state"] = (
                f"optional: runs where tenon.autotune chooses it, or always with "
                f"tenon.plugins.allow_overrides('{name}') or TENON_OVERRIDES={name}"
            )
            if problem := _core.library_problem(name, report["op"]):
                kernel["state"] += f"; {problem}"
            continue
        if last:
            kernel["state"] = f"not reached: {last} comes before and never declines"
        elif kernel["may_decline"]:
            kernel["state"] = "asked at every call; runs unless it declines"
            if problem := _core.library_problem(name, report["op"]):
                kernel["state"] = f"declines every call: {problem}"
        else:
            kernel["state"] = (
                "runs" if kernel is report["kernels"][0] else "runs if all before decline"
            )
            last = name
    ready = [
        kernel
        for kernel in report.get("kernels", ())
        if not kernel["held_back"] and not kernel["optional"]
    ]
    if len(ready) > 1:
        first, second = ready[:2]
        if first["for"] != second["for"]:
            why = f"it is for {first['for']} itself, which goes before kernels compiled for any device"
        elif first["score"] != second["score"]:
            why = f"its score {first['score']} is above {second['score']} of {second['plugin']}"
        else:
            why = f"its score {first['score']} equals that of {second['plugin']}, which came later"
        report["why"] = f"{first['plugin']} is first: {why}"
    elif ready:
        report["why"] = f"{ready[0]['plugin']} has the only kernel"


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
        if entry["state"] == "loaded":
            entry["library_problems"] = library_problems(entry["name"])
        print(f"{entry['state']:<8}  {entry['name']} {entry.get('version', '')}  {entry['path']}")
        for remark in remarks(entry):
            print(f"          {remark}")
    for attempt in report["attempts"]:
        if attempt["reason"] != "NONE":
            print(
                f"\n{attempt['name'] or attempt['path']}: {attempt['stage']} failed ({attempt['reason']})"
            )
            print(f"  {attempt['text']}")
            if attempt["fix"]:
                print(f"  fix: {attempt['fix']}")


def remarks(entry):
    """What there is to say about a loaded plugin's kernels that are not used: texts."""
    name = entry["name"]
    if count := entry.get("held_back"):
        yield (
            f"{count} of its kernels held back: they are for operators and devices of others and need "
            f"consent; tenon.plugins.allow_overrides('{name}') or TENON_OVERRIDES={name}"
        )
    if unknown := entry.get("unknown_operators"):
        yield (
            f"kernels for operators that no package has defined: {', '.join(sorted(set(unknown)))}; load "
            "the plugin that defines them, or correct their names"
        )
    yield from entry.get("library_problems", ())


def library_problems(name):
    """What keeps libraries of a loaded plugin from being used: a list of texts. Opens them."""
    # One operator of each library that a plugin may have.
    operators = ("tenon::matmul", "tenon::conv2d", "tenon::fft_c2c", "tenon::cholesky")
    problems = (_core.library_problem(name, op) for op in operators)
    return [*dict.fromkeys(filter(None, problems))]


def sdk_path():
    """The folder for CMAKE_PREFIX_PATH, with which find_package(Tenon) finds headers and tools."""
    return os.path.dirname(os.path.abspath(__file__))


class _Report(dict):
    """A dict that prints as indented text."""

    def __str__(self):
        return json.dumps(self, indent=2)
