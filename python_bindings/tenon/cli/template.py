# SPDX-License-Identifier: Apache-2.0
"""Projects from templates: what `tenon new-device`, `new-op` and `new-pass` share."""

import glob
import os
import re

from tenon.cli.errors import CommandError

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


def check_plugin_name(name, option=None):
    """Refuse the name of one of Tenon's own plugins, or of a device of theirs, loaded or not: a process
    has one plugin of a name. `option`: what chooses another."""
    if name in _own_names():
        advice = f"another name with {option}" if option else "another name"
        raise CommandError(f"'{name}' is taken by a plugin of Tenon's own; choose {advice}")


def _own_names():
    import json

    from tenon import _core

    report = json.loads(_core.plugin_describe(load_default=False))
    beside = os.path.dirname(report["host"]["library"])
    folders = [os.path.realpath(beside + below) for below in ("/../plugins", "/tenon/plugins")]
    names = {"reference"}  # of the conformance kit
    for plugin in report["plugins"]:
        if os.path.dirname(plugin["path"]) in folders:
            names |= {plugin["name"], *plugin["devices"], *plugin["namespaces"]}
    for folder in folders:  # plugins that are loaded by their paths alone
        for found in glob.glob(os.path.join(glob.escape(folder), "on_demand", "libtenon_*.so")):
            names.add(os.path.basename(found).removeprefix("libtenon_").removesuffix(".so"))
    return names


def vendor_name(given, name):
    """The vendor's name in texts; default: the name, capitalised."""
    vendor = given or name.replace("_", " ").title()
    if not re.fullmatch(r"[\w .,&()-]{1,40}", vendor):
        raise CommandError(
            f"expected a vendor's name of at most 40 letters, digits and ' .,&()-', got '{vendor}'"
        )
    return vendor


def folder_to_write(given, package, option):
    """The folder to write: `given`, or tenon_<package>. Refused if it holds something, or if a package of
    that name lies here in another folder: two plugins of one name do not load together. `option`: what
    chooses another package."""
    own = f"tenon_{package}"
    folder = given or own
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        advice = "another with --folder" if given else f"another name with {option}"
        raise CommandError(f"{folder} exists and is not empty; choose {advice}")
    if given and _is_project(own):
        raise CommandError(
            f"{own} holds a plugin '{package}' already, and two of one name do not load together; "
            f"choose another name with {option}"
        )
    return folder


def _is_project(folder):
    return os.path.exists(os.path.join(folder, "pyproject.toml"))


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
