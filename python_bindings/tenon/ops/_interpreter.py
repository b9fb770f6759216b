# SPDX-License-Identifier: Apache-2.0
"""Operator files at run time (docs/operator_files.md)."""

import os

from tenon import _core


def load(*paths):
    """Define the operators of files that share a namespace; returns the namespace's name."""
    plugins = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")
    library = os.path.join(plugins, "on_demand", "libtenon_interpreter.so")
    defined = _core.load_operator_files([os.fspath(path) for path in paths], library)
    return defined[0].partition("::")[0] if defined else None
