# SPDX-License-Identifier: Apache-2.0
"""Write a package with a pass over programs that builds and runs: the start of yours.

The folder holds the pass in C++, its plugin, a build file, a Python package whose import makes the pass known, tests and
CI. Where one expression of operators stands for another, tenon.jit.rewrites.rewrite needs none of it.
"""

from tenon.cli import template

HELP = "write a package with a pass over programs"


def add_arguments(parser):
    parser.add_argument("name", help="the pass's name: lower case, at most 32 characters")
    parser.add_argument(
        "--package",
        help="users import tenon_<package>, whose plugin has that name; default: the pass's name",
    )
    parser.add_argument("--folder", help="where to write it; default: tenon_<package>")
    parser.add_argument(
        "--vendor", help="the vendor's name in texts; default: the package, capitalised"
    )


def run(arguments):
    name = arguments.name
    template.check_name(name, "a pass's name", longest=32)
    package = arguments.package or name[:16].rstrip("_")
    template.check_name(package, "a package")
    template.check_plugin_name(package, "--package")
    vendor = template.vendor_name(arguments.vendor, package)
    folder = template.folder_to_write(arguments.folder, package, "--package")
    names = {"acme": package, "ACME": package.upper(), "Acme": vendor, "fold_scales": name}
    template.print_written(template.write(template.find("pass"), folder, names))
    print(
        f"""
{folder}: the pass {name}, which folds factors of products. Build it, and use it:

  cd {folder}
  cmake -B build -DCMAKE_PREFIX_PATH="$(python -c 'import tenon; print(tenon.sdk_path())')"
  cmake --build build
  python -m pytest tests

README.md says what comes next."""
    )
