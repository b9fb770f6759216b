# SPDX-License-Identifier: Apache-2.0
"""Write a device plugin that builds, loads and runs every operator: the start of a new one.

The folder holds eight functions, a build file, a Python package with an entry point, tests, CI, and a
README that leads from there to a device with kernels, streams and collectives.
"""

from tenon.cli import template

HELP = "write the plugin of a new device"


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
    template.check_name(name, "a name")
    template.check_plugin_name(name)
    vendor = template.vendor_name(arguments.vendor, name)
    folder = template.folder_to_write(arguments.folder, name, "NAME")
    names = {"acme": name, "ACME": name.upper(), "Acme": vendor}
    template.print_written(template.write(template_folder(), folder, names))
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
    return template.find("device")
