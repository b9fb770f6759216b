# SPDX-License-Identifier: Apache-2.0
"""Plugins: which there are, why one is refused, and what runs where."""

HELP = "list and diagnose plugins"

COMMANDS = {
    "list": "tenon.cli.plugins.list",
    "coverage": "tenon.cli.plugins.coverage",
    "explain": "tenon.cli.plugins.explain",
}
