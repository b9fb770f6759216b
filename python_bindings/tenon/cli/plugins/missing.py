# SPDX-License-Identifier: Apache-2.0
"""Which libraries a plugin lacks. The system names only the first, and so people install one after
another; this names all. Asked only after loading failed: a guess that is wrong here refuses nothing."""

import json
import os
import struct
from pathlib import Path

from tenon.cli.plugins.elf_lint import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    Elf,
)

_SYSTEM_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_CACHE = "/etc/ld.so.cache"


def missing_libraries(path):
    """Names that the library at `path` needs, and those that it finds beside itself need, and that are
    not found where the system looks."""
    missing, seen, pending = [], set(), [path]
    while pending:
        file = pending.pop()
        needed, beside = _needs(file)
        for name in needed:
            if name in seen or "/" in name:
                continue
            seen.add(name)
            if found := _find(beside, name):
                pending.append(found)  # it came with the plugin: what it needs matters too
            elif not _is_installed(name):
                missing.append(name if file == path else f"{name} (needed by {file})")
    return missing


def companions(path):
    """Libraries that the plugin at `path` brings along: those that it, and they, need and find by a RUNPATH
    of $ORIGIN. Under a policy the host examines them as it does the plugin."""
    found, pending = [], [(os.path.realpath(path), [])]
    while pending:
        file, inherited = pending.pop()
        needed, runpath, rpath, origin = _dynamic(file)
        beside, theirs = (
            [_expand(folder, origin) for folder in folders or () if "ORIGIN" in folder]
            for folders in (runpath, rpath)
        )
        if runpath is None:
            beside = inherited = theirs + inherited  # RPATH holds for what they need, too
        for name in needed:
            library = "" if "/" in name else _find(beside, name)
            library = os.path.realpath(library) if library else ""
            if library and library not in found:
                found.append(library)
                pending.append((library, inherited))
    return found


def unopened_libraries(path):
    """A warning if the plugin at `path` opens a library at run time and the machine has none that will
    do, or None. The manifest beside the plugin lists them."""
    stem = os.path.basename(path).removeprefix("libtenon_").removesuffix(".so")
    try:
        opens = json.loads(_read(os.path.join(os.path.dirname(path), f"{stem}.tenon.json")))[
            "opens"
        ]
        names, variable, hint = opens["any_of"], opens["variable"], opens["hint"]
    except (KeyError, TypeError, ValueError):
        return None
    if variable and (wanted := os.environ.get(variable)):
        names = [wanted]
        hint = f"correct or unset {variable}"
    elif variable:
        hint += f", or set {variable} to the path of one"
    above = Path(path).parents
    if any(_find(above, name) if "/" in name else _is_installed(name) for name in names):
        return None
    return (
        f"it opens a library at run time, and none of {', '.join(names)} is installed; its kernels "
        f"do not run until one is: {hint}"
    )


def _is_installed(name):
    extra = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    # The cache holds names that end with NUL; its exact format need not be known.
    return name.encode() + b"\0" in _read(_CACHE) or bool(
        _find([*filter(None, extra), *_SYSTEM_FOLDERS], name)
    )


def _needs(path):
    """(names of libraries, folders that the library adds to the search)"""
    needed, runpath, rpath, origin = _dynamic(path, tags=(DT_NEEDED,))
    folders = (rpath or []) if runpath is None else runpath
    return needed, [_expand(folder, origin) for folder in filter(None, folders)]


def _expand(folder, origin):
    return folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def _dynamic(path, tags=(DT_NEEDED, DT_AUXILIARY, DT_FILTER)):
    """(names of libraries, entries of RUNPATH, entries of RPATH, what $ORIGIN is). Entries are as
    they stand, None without the tag. The system ignores RPATH where there is a RUNPATH."""
    needed, folders = [], {}
    try:
        for tag, _, text in Elf(_read(path)).dynamic():
            if tag in tags:
                needed.append(text)
            elif tag in (DT_RPATH, DT_RUNPATH):
                folders[tag] = text.split(":")
    except (struct.error, IndexError, ValueError, OverflowError, MemoryError):
        pass
    return needed, folders.get(DT_RUNPATH), folders.get(DT_RPATH), os.path.dirname(path)


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _find(folders, name):
    paths = (os.path.join(folder, name) for folder in folders)
    return next(filter(os.path.exists, paths), None)
