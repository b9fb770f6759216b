# SPDX-License-Identifier: Apache-2.0
"""Reads the sources with another compiler: what build/release compiles, without code for a processor.

    .venv/bin/python scripts/compile_with.py g++-14 --root ~/.cache/tenon/compilers
    .venv/bin/python scripts/compile_with.py clang++-16 --only '^(kernel_core|sdk)/'

It takes the commands of build/release/compile_commands.json, leaves out options that the compiler does
not know, and has it check syntax, types and templates (-fsyntax-only). Generated sources have to be
there: scripts/build.sh release. Errors are printed, warnings are counted; the exit status is 1 if a
file does not compile. scripts/compilers.sh calls this for each compiler that docs/support.md names.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent


def c_compiler(compiler):
    """The C compiler beside a C++ compiler: gcc-14 for g++-14, clang-16 for clang++-16."""
    return compiler.replace("clang++", "clang").replace("g++", "gcc")


def is_c(command):
    return command[-1].endswith(".c")


def read_commands(build, only):
    """Commands without duplicates, as lists of arguments whose last one is the source."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]), TREE)
        if not re.search(only, source):
            continue
        arguments = shlex.split(entry["command"])[1:]
        kept, skip = [], False
        for argument in arguments:
            if skip or argument in ("-c", entry["file"]):
                skip = False
            elif argument == "-o":
                skip = True
            elif argument != "-Werror":
                kept.append(argument)
        # Options of machine code alone make no other text of a source.
        key = (source, *sorted(a for a in kept if a.startswith(("-D", "-I", "-std", "-march"))))
        commands.setdefault(key, (source, entry["directory"], [*kept, entry["file"]]))
    return list(commands.values())


def run(command, directory, root):
    def enter():
        if root:
            os.chroot(root)
        os.chdir(directory)

    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command, preexec_fn=enter, env=environment, capture_output=True, text=True, errors="replace"
    )


def unknown_options(compiler, commands, root):
    """Options of the commands that the compiler refuses."""
    unknown = set()
    for c in (False, True):
        program = c_compiler(compiler) if c else compiler
        options = {
            a
            for _, _, command in commands
            if is_c(command) == c
            for a in command[:-1]
            if a.startswith(("-f", "-m", "-W", "-std"))
        }
        # Refusing one of several, a compiler does not always say which.
        for option in sorted(options):
            arguments = ["-x", "c" if c else "c++", "-fsyntax-only", option, "/dev/null"]
            result = run([program, *arguments], "/", root)
            if result.returncode:
                unknown.add(option)
            elif "warning" in result.stderr:  # clang: an unknown warning, or one without effect
                unknown.add(option)
    return unknown


def main():
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("compiler", help="a C++ compiler, such as g++-14 or clang++-16")
    parser.add_argument("--build", type=Path, default=TREE / "build/release")
    parser.add_argument("--root", help="the folder of a system that holds the compiler; needs root")
    parser.add_argument(
        "--only", default="", help="sources whose path fits this regular expression"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    commands = read_commands(options.build, options.only)
    if not commands:
        sys.exit(f"compile_with.py: expected sources that fit {options.only!r}, found none")
    version = run([options.compiler, "--version"], "/", options.root)
    if version.returncode:
        sys.exit(f"compile_with.py: {options.compiler} does not run: {version.stderr.strip()}")
    print(version.stdout.splitlines()[0])
    unknown = unknown_options(options.compiler, commands, options.root)
    if unknown:
        print("left out, as it does not know them:", *sorted(unknown))

    def compile_one(item):
        source, directory, command = item
        program = c_compiler(options.compiler) if is_c(command) else options.compiler
        kept = [a for a in command if a not in unknown]
        return source, run([program, "-fsyntax-only", *kept], directory, options.root)

    failed, warnings = [], collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for source, result in pool.map(compile_one, commands):
            warnings.update(re.findall(r"warning: .*\[(-W[\w+=-]+)\]", result.stderr))
            if result.returncode:
                failed.append(source)
                errors = [line for line in result.stderr.splitlines() if "error" in line]
                print(f"{source}:", *(errors or result.stderr.splitlines())[:6], sep="\n  ")
    print(f"{options.compiler}: {len(commands)} commands, {len(failed)} failed")
    if warnings:
        print("warnings:", ", ".join(f"{name} {n}" for name, n in warnings.most_common()))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
