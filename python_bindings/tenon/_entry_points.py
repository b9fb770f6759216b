# SPDX-License-Identifier: Apache-2.0
"""Plugin folders of installed distributions: the entry point group `tenon.plugins`.

A distribution announces `acme = tenon_acme` (its plugins lie in the package's folder) or
`acme = tenon_acme:plugins` (in a folder below it). Only metadata is read, and no package is
imported. importlib.metadata would do the same, at ten times the cost on the first operator call.
"""

import os
import sys

_GROUP = "tenon.plugins"


def plugin_folders():
    """Folders announced on sys.path that exist."""
    folders = []
    for base in dict.fromkeys(path or os.getcwd() for path in sys.path):
        try:
            entries = [
                entry.path
                for entry in os.scandir(base)
                if entry.name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for path in entries:
            for value in _values(os.path.join(path, "entry_points.txt")):
                folder = _folder(value, base)
                if folder:
                    folders.append(folder)
    return folders


def _values(path):
    """Values of the group in one entry_points.txt."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return
    if _GROUP not in text:
        return
    section = None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == _GROUP and "=" in line and not line.startswith(("#", ";")):
            yield line.partition("=")[2].strip()


def _folder(value, base):
    package, _, below = value.partition(":")
    parts = package.strip().split(".")
    folder = os.path.join(base, *parts)
    if not os.path.isdir(folder):  # an editable installation keeps its package elsewhere
        from importlib.util import find_spec

        try:
            spec = find_spec(parts[0])
        except (ImportError, ValueError):
            return None
        locations = spec and spec.submodule_search_locations
        if not locations:
            return None
        folder = os.path.join(next(iter(locations)), *parts[1:])
    folder = os.path.join(folder, *filter(None, below.strip().split(".")))
    return folder if os.path.isdir(folder) else None
