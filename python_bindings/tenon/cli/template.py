# SPDX-License-Identifier: Apache-2.0
"""Projects from templates: what `tenon new-device`, `new-op` and `new-pass` share."""

import os
import re

from tenon.cli import CommandError

# Targets that every build folder has, and names that the host uses itself.
_TAKEN = frozenset(
    "all clean help install package test edit_cache rebuild_cache cpu meta tenon std".split()
)
_LEFT_OUT = {"build", "__pycache__", ".pytest_cache"}


def check_name(name, what, longest=16):
    """Refuse a name that cannot be a plugin's or a namespace's."""
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{longest - 1}}}", name):
        raise CommandError(
            f"expected {what} like [a-z][a-z0-9_]*, at most {longest} characters, got '{name}'"
        )
    if name in _TAKEN:
        raise CommandError(f"'{name}' is taken; choose another name")


def vendor_name(given, name):
    """The vendor's name in texts; default: the name, capitalised."""
    vendor = given or name.replace("_", " ").title()
    if not re.fullmatch(r"[\w .,&()-]{1,40}", vendor):
        raise CommandError(
            f"expected a vendor's name of at most 40 letters, digits and ' .,&()-', got '{vendor}'"
        )
    return vendor


def check_folder(folder):
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise CommandError(f"{folder} exists and is not empty; choose another with --folder")


def find(*path):
    """The folder of a template, in an installed package or in the source tree."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for base in (
        os.path.join(package, "share", "tenon", "templates"),
        os.path.join(package, "..", "..", "sdk", "templates"),
    ):
        folder = os.path.join(base, *path)
        if os.path.isdir(folder):
            return folder
    raise CommandError("this installation has no template; install the whole package")


def write(template, folder, names):
    """Copy a template with its names replaced, in texts and paths. Returns (path, lines) of each
    file."""
    pattern = re.compile("|".join(map(re.escape, names)))

    def rename(text):
        return pattern.sub(lambda found: names[found[0]], text)

    written = []
    for base, folders, files in os.walk(template):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        below = rename(os.path.relpath(base, template))
        os.makedirs(os.path.join(folder, below), exist_ok=True)
        for file in sorted(files):
            with open(os.path.join(base, file), encoding="utf-8") as source:
                text = rename(source.read())
            path = os.path.normpath(os.path.join(below, rename(file)))
            with open(os.path.join(folder, path), "w", encoding="utf-8") as target:
                target.write(text)
            written.append((path, text.count("\n")))
    return written


def print_written(written):
    width = max(len(path) for path, _ in written)
    for path, lines in sorted(written):
        print(f"  {path:<{width}}  {lines:>4} lines")
