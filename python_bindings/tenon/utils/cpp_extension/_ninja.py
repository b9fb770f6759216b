# SPDX-License-Identifier: Apache-2.0
"""A recipe as a ninja file, and its run. Commands are lists of words; they are quoted here alone."""

import os
import shlex
import subprocess
import sys

from . import _toolchain
from ._errors import CompileError


def run(recipe, folder, verbose=False):
    """Bring the library of a recipe in `folder` up to date. Returns its path."""
    library = os.path.join(folder, f"lib{recipe.name}.so")
    _write(os.path.join(folder, "exports.map"), recipe.exports())
    _write(os.path.join(folder, "build.ninja"), _text(recipe, folder, library))
    command = [*_toolchain.ninja(), "-C", folder]
    if jobs := os.environ.get("MAX_JOBS"):
        command += ["-j", jobs]
    environment = {k: v for k, v in os.environ.items() if k != "NINJA_STATUS"}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    said = []
    with process:
        for line in process.stdout:
            said.append(line)
            if verbose and line.startswith("["):
                print(line, end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        raise CompileError(_failure(recipe, "".join(said)))
    return library


def _failure(recipe, said):
    # "[1/2] compiling x" and "ninja: Entering ..." say nothing that helps here.
    lines = [line for line in said.splitlines() if not line.startswith(("[", "ninja: "))]
    return f"building extension '{recipe.name}' failed\n" + "\n".join(lines)


def _write(path, text):
    """Leave a file alone that would not change: what depends on it is not built again."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except (OSError, UnicodeDecodeError):
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _text(recipe, folder, library):
    lines = [
        "# Written by tenon.utils.cpp_extension.",
        "ninja_required_version = 1.8",
        "rule compile",
        "  command = $words",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = compiling $what",
        "rule link",
        "  command = $words",
        "  description = linking $what",
    ]
    objects = []
    for index, source in enumerate(recipe.sources):
        stem = os.path.splitext(os.path.basename(source))[0]
        path = os.path.join(folder, f"{index}_{stem}.o")
        words = recipe.compile_command(source, path, f"{path}.d")
        lines += _edge("compile", path, [source], words, os.path.basename(source))
        objects.append(path)
    script = os.path.join(folder, "exports.map")
    words = recipe.link_command(objects, library, script)
    # The archive is a part of the library as much as an object is.
    archives = [word for word in words if word.endswith(".a")]
    lines += _edge("link", library, [*objects, script, *archives], words, os.path.basename(library))
    return "\n".join(lines) + "\n"


def _edge(rule, out, inputs, words, what):
    return [
        f"build {_path(out)}: {rule} {' '.join(map(_path, inputs))}",
        f"  words = {_value(shlex.join(words))}",
        f"  what = {_value(what)}",
    ]


def _value(text):
    if "\n" in text:
        raise ValueError(f"expected paths and flags of one line, got {text!r}")
    return text.replace("$", "$$")


def _path(text):
    return _value(text).replace(":", "$:").replace(" ", "$ ").replace("|", "$|")
