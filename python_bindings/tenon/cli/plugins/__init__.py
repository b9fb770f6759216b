# SPDX-License-Identifier: Apache-2.0
"""Plugins: which there are, why one is refused, and what runs where."""

HELP = "list and diagnose plugins"

COMMANDS = {
    "list": "tenon.cli.plugins.list",
    "doctor": "tenon.cli.plugins.doctor",
    "coverage": "tenon.cli.plugins.coverage",
    "explain": "tenon.cli.plugins.explain",
    "check": "tenon.cli.plugins.check",
    "lock": "tenon.cli.plugins.lock",
    "unload": "tenon.cli.plugins.unload",
}


def add_plugin_option(parser):
    """For commands that ask about a plugin which lies in no known folder."""
    parser.add_argument(
        "--plugin",
        metavar="LIBRARY",
        action="append",
        default=[],
        help="load this plugin first; may be repeated",
    )


def load_plugins(arguments):
    import os

    from tenon import plugins

    for path in arguments.plugin:
        plugins.load(os.path.abspath(path))  # a shell's name of a file, also without a slash
