# SPDX-License-Identifier: Apache-2.0
"""Plugins: which are loaded, why others are not, and what runs where.

The libraries of Tenon's own plugins lie in this folder, too, where the build and the wheel put them.
"""

from tenon.plugins.management import (
    add_folder,
    allow_overrides,
    coverage,
    doctor,
    explain,
    forbid_overrides,
    list,
    load,
    load_plugin,
    sdk_path,
    unload,
)

__all__ = [
    "add_folder",
    "allow_overrides",
    "coverage",
    "doctor",
    "explain",
    "forbid_overrides",
    "list",
    "load",
    "load_plugin",
    "sdk_path",
    "unload",
]
