# SPDX-License-Identifier: Apache-2.0
"""What installed distributions announce: the entry point groups `tenon.plugins` and `tenon.operators`.

A distribution announces one of

    acme = tenon_acme:tenon_plugin.json    a file {"name": "acme", "library": "libtenon_acme.so"}
                                           in the package; `library` is relative to it
    acme = tenon_acme:plugins              a folder below the package
    acme = tenon_acme                      the package's own folder

and, in the other group, operators that need no plugin:

    acme = tenon_acme:acme.yaml            an operator file of namespace `acme` in the package

Only metadata is read, and no package is imported. importlib.metadata would do the same, at ten
times the cost on the first operator call.
"""

import os
import sys

_PLUGINS = "tenon.plugins"
_OPERATORS = "tenon.operators"


def plugin_folders():
    """Folders and libraries announced on sys.path that exist."""
    return [location for _, location, problem in announced() if not problem]


def operator_files():
    """Namespaces announced on sys.path, and the operator file of each: (path, problem or None)."""
    files = {}
    for text, location, problem in announced(_OPERATORS):
        files.setdefault(text.partition(" = ")[0], (location, problem))
    return files


def announced(group=_PLUGINS):
    """Every entry point of the group: (text, path of a folder or library, problem or None)."""
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
            for name, value in _entry_points(os.path.join(path, "entry_points.txt"), group):
                location, problem = _resolve(name, value, base)
                yield f"{name} = {value}", location, problem


def _entry_points(path, group):
    """Names and values of a group in one entry_points.txt."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return
    if group not in text:
        return
    section = None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _resolve(name, value, base):
    package, _, below = value.partition(":")
    below = below.strip()
    folder = _package_folder(package.strip().split("."), base)
    if not folder:
        return None, f"there is no package {package.strip()}"
    if below.endswith(".json"):
        return _library(name, folder, os.path.join(folder, below))
    if below.endswith((".yaml", ".yml")):
        path = os.path.join(folder, below)
        return path, None if os.path.isfile(path) else f"there is no file {path}"
    folder = os.path.join(folder, *filter(None, below.split(".")))
    return folder, None if os.path.isdir(folder) else f"there is no folder {folder}"


def _package_folder(parts, base):
    folder = os.path.join(base, *parts)
    if os.path.isdir(folder):
        return folder
    # An editable installation keeps its package elsewhere.
    from importlib.util import find_spec

    try:
        spec = find_spec(parts[0])
    except (ImportError, ValueError):
        return None
    locations = spec and spec.submodule_search_locations
    return os.path.join(next(iter(locations)), *parts[1:]) if locations else None


def _library(name, folder, manifest):
    """The library that a tenon_plugin.json names."""
    import json

    try:
        with open(manifest, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        return manifest, f"{manifest} cannot be read: {error}"
    content = content if isinstance(content, dict) else {}
    library = content.get("library")
    if not isinstance(library, str) or content.get("name") != name:
        return manifest, f'expected {{"name": "{name}", "library": "..."}} in {manifest}'
    path = os.path.normpath(os.path.join(folder, library))
    if not path.startswith(os.path.join(folder, "")):
        return path, f"{manifest} names a library outside its package: {library}"
    return path, None if os.path.isfile(path) else f"{manifest} names {path}, which does not exist"
