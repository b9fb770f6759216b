# SPDX-License-Identifier: Apache-2.0
"""Which libraries a plugin lacks. The system names only the first, and so people install one after
another; this names all. Asked only after loading failed: a guess that is wrong here refuses nothing."""

import os
import struct

from tenon.cli.plugins.elf_lint import DT_NEEDED, DT_RPATH, DT_RUNPATH, Elf

_SYSTEM_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_CACHE = "/etc/ld.so.cache"


def missing_libraries(path):
    """Names that the library at `path` needs, and those that it finds beside itself need, and that are
    not found where the system looks."""
    extra = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders = [*filter(None, extra), *_SYSTEM_FOLDERS]
    cache = _read(_CACHE)
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
            # The cache holds names that end with NUL; its exact format need not be known.
            elif name.encode() + b"\0" not in cache and not _find(folders, name):
                missing.append(name if file == path else f"{name} (needed by {file})")
    return missing


def _needs(path):
    """(names of libraries, folders that the library adds to the search)"""
    needed, folders = [], []
    try:
        for tag, _, text in Elf(_read(path)).dynamic():
            if tag == DT_NEEDED:
                needed.append(text)
            elif tag in (DT_RPATH, DT_RUNPATH):
                folders += filter(None, text.split(":"))
    except (struct.error, IndexError, ValueError, OverflowError, MemoryError):
        pass
    origin = os.path.dirname(path)
    return needed, [f.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for f in folders]


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _find(folders, name):
    paths = (os.path.join(folder, name) for folder in folders)
    return next(filter(os.path.exists, paths), None)
