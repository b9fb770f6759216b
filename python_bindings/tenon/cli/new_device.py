# SPDX-License-Identifier: Apache-2.0
"""Write a device plugin that builds, loads and runs every operator: the start of a new one.

The folder holds eight functions, a build file, a Python package with an entry point, tests, CI, and a
README that leads from there to a device with kernels, streams and collectives.
"""

import os
import re

from tenon.cli import CommandError

HELP = "write the plugin of a new device"

_PLACEHOLDER = "acme"
# Targets that every build folder has, and names that the host uses itself.
_TAKEN = {
    "all",
    "clean",
    "help",
    "install",
    "package",
    "test",
    "edit_cache",
    "rebuild_cache",
    "cpu",
    "meta",
    "tenon",
}


def add_arguments(parser):
    parser.add_argument(
        "name", help="what users will call the device: lower case, at most 16 characters"
    )
    parser.add_argument("--folder", help="where to write it; default: tenon_<name>")
    parser.add_argument(
        "--vendor", help="the vendor's name in texts; default: the name, capitalised"
    )


def run(arguments):
    name = arguments.name
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,15}", name):
        raise CommandError(
            f"expected a name like [a-z][a-z0-9_]*, at most 16 characters, got '{name}'"
        )
    if name in _TAKEN:
        raise CommandError(f"'{name}' is taken; choose another name")
    vendor = arguments.vendor or name.replace("_", " ").title()
    if not re.fullmatch(r"[\w .,&()-]{1,40}", vendor):
        raise CommandError(
            f"expected a vendor's name of at most 40 letters, digits and ' .,&()-', got '{vendor}'"
        )
    folder = arguments.folder or f"tenon_{name}"
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise CommandError(f"{folder} exists and is not empty; choose another with --folder")

    written = write(template_folder(), folder, name, vendor)
    width = max(map(len, (path for path, _ in written)))
    for path, lines in written:
        print(f"  {path:<{width}}  {lines:>4} lines")
    print(
        f"""
{folder}: a device plugin of eight functions. Build it, and use it:

  cd {folder}
  cmake -B build -DCMAKE_PREFIX_PATH="$(python -c 'import tenon; print(tenon.sdk_path())')"
  cmake --build build
  python -m pytest tests
  tenon-conformance build/libtenon_{name}.so

README.md says what comes next."""
    )


def template_folder():
    """The template, in an installed package or in the source tree."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for folder in (
        os.path.join(package, "share", "tenon", "templates", "device"),
        os.path.join(package, "..", "..", "sdk", "templates", "device"),
    ):
        if os.path.isfile(os.path.join(folder, "CMakeLists.txt")):
            return folder
    raise CommandError("this installation has no template; install the whole package")


def write(template, folder, name, vendor):
    """Copy the template with its names replaced. Returns (path, lines) of each file."""

    def rename(text):
        text = text.replace(_PLACEHOLDER, name).replace(_PLACEHOLDER.upper(), name.upper())
        return text.replace(_PLACEHOLDER.title(), vendor)

    written = []
    for base, folders, files in os.walk(template):
        folders[:] = sorted(set(folders) - {"build", "__pycache__", ".pytest_cache"})
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
