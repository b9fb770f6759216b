# SPDX-License-Identifier: Apache-2.0
"""Where extensions are built, one process at a time, and kept under names of their contents."""

import contextlib
import fcntl
import hashlib
import os
import re

from . import _ninja, _note
from ._errors import CompileError
from ._recipe import Recipe

_KEPT = 8  # builds of one recipe


def root_folder():
    """TENON_EXTENSIONS_DIR, or a folder in the user's cache."""
    folder = os.environ.get("TENON_EXTENSIONS_DIR")
    if not folder:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(cache, "tenon", "extensions")
    return os.path.abspath(folder)


def build_library(
    name,
    sources,
    *,
    cflags=(),
    cuda_cflags=(),
    ldflags=(),
    include_paths=(),
    library_paths=(),
    build_directory=None,
    verbose=False,
    plugin=False,
):
    """Compile and link sources into a shared library, and return its path, which is another one
    whenever the contents are. With `plugin`, it is made as the host wants a plugin to be."""
    check_name(name)
    recipe = Recipe(
        name=name,
        sources=[os.path.abspath(os.fspath(source)) for source in sources],
        cflags=list(cflags),
        cuda_cflags=list(cuda_cflags),
        ldflags=list(ldflags),
        include_paths=[os.path.abspath(os.fspath(path)) for path in include_paths],
        library_paths=[os.path.abspath(os.fspath(path)) for path in library_paths],
        plugin=plugin,
    )
    return build(recipe, build_directory, verbose)


def check_name(name):
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,21}", name):
        raise ValueError(
            f"expected a name like [a-z][a-z0-9_]*, at most 22 characters, got {name!r}"
        )


def build(recipe, build_directory=None, verbose=False):
    folder = build_directory or os.path.join(root_folder(), recipe.name, recipe.key())
    folder = os.path.abspath(os.fspath(folder))
    with locked(folder):
        return _keep(recipe, _ninja.run(recipe, folder, verbose), folder)


def build_in_place(recipe, folder):
    """The library under its own name, for a package."""
    with locked(folder):
        path = _ninja.run(recipe, folder)
        if recipe.plugin:
            with open(path, "rb") as file:
                _note.check(file.read())
        return path


@contextlib.contextmanager
def locked(folder):
    """Alone in the folder. The system takes the lock from a process that dies."""
    try:
        _make_folder(folder)
        lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise CompileError(
            f"extensions cannot be built in {folder}: {error.strerror}; "
            "name a folder of your own with TENON_EXTENSIONS_DIR or build_directory"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _make_folder(folder):
    """Make it and its parents writable by the user alone, whatever the umask: the host checks each."""
    if os.path.isdir(folder):
        return
    _make_folder(os.path.dirname(folder))
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o755)


def _keep(recipe, library, folder):
    """The library under a name of its own: a process may hold several builds, and the host tells
    plugins apart by name."""
    with open(library, "rb") as file:
        content = file.read()
    digest = hashlib.sha256(content).hexdigest()[:8]
    path = os.path.join(folder, f"libtenon_{recipe.name}_{digest}.so")
    if os.path.exists(path):
        os.utime(path)
        return path
    if recipe.plugin:
        content = _note.renamed(content, f"{recipe.name}_{digest}")
    partial = f"{path}.{os.getpid()}"
    with open(partial, "wb") as file:
        file.write(content)
    os.chmod(partial, 0o755)  # the host loads nothing that others can write
    os.rename(partial, path)
    _drop_old(recipe, folder)
    return path


def _drop_old(recipe, folder):
    builds = [
        os.path.join(folder, entry)
        for entry in os.listdir(folder)
        if re.fullmatch(rf"libtenon_{recipe.name}_[0-9a-f]{{8}}\.so", entry)
    ]
    for path in sorted(builds, key=os.path.getmtime)[:-_KEPT]:
        os.unlink(path)  # stays mapped where it is in use
