# SPDX-License-Identifier: Apache-2.0
"""Write a package with a new operator that builds, computes and differentiates: the start of yours.

The folder holds the operator's definition in YAML, its kernel in C++ (with --expression: none, and
then no compiler is needed), a build file, a Python package with an entry point, tests and CI.
"""

import keyword

from tenon.cli import template
from tenon.cli.errors import CommandError

HELP = "write a package with a new operator"


def add_arguments(parser):
    parser.add_argument("name", help="the operator's name: lower case, at most 32 characters")
    parser.add_argument(
        "--namespace",
        help="users call it tenon.ops.<namespace>.<name>; default: the operator's name",
    )
    parser.add_argument(
        "--expression",
        action="store_true",
        help="no kernel: an expression in YAML alone, which needs no compiler",
    )
    parser.add_argument("--folder", help="where to write it; default: tenon_<namespace>")
    parser.add_argument(
        "--vendor", help="the vendor's name in texts; default: the namespace, capitalised"
    )


def run(arguments):
    name = arguments.name
    template.check_name(name, "an operator's name", longest=32)
    if name.endswith("_") or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        why = "is a word of Python" if not name.endswith("_") else "ends in _, as in-place forms do"
        raise CommandError(f"'{name}' {why}; choose another name")
    namespace = arguments.namespace or name
    _check_namespace(namespace)
    vendor = template.vendor_name(arguments.vendor, namespace)
    template.check_plugin_name(namespace, "--namespace")
    folder = template.folder_to_write(arguments.folder, namespace, "--namespace")

    names = {"acme": namespace, "Acme": vendor, "swiglu": name}
    written = []
    for part in ("common", "expression" if arguments.expression else "kernel"):
        written += template.write(template.find("operator", part), folder, names)
    template.print_written(written)
    build = (
        "  python -m pytest tests"
        if arguments.expression
        else """  cmake -B build -DCMAKE_PREFIX_PATH="$(python -c 'import tenon; print(tenon.sdk_path())')"
  cmake --build build
  python -m pytest tests build/gen/python"""
    )
    print(
        f"""
{folder}: the operator tenon.ops.{namespace}.{name}. Build it, and use it:

  cd {folder}
{build}

README.md says what comes next."""
    )


def _check_namespace(namespace):
    import tenon

    template.check_name(namespace, "a namespace")
    if keyword.iskeyword(namespace):
        raise CommandError(
            f"'{namespace}' is a word of Python; choose a namespace with --namespace"
        )
    if namespace in ("load", "names") or f"tenon::{namespace}" in tenon.ops.names():
        raise CommandError(
            f"tenon.ops.{namespace} is there already; choose a namespace with --namespace"
        )
