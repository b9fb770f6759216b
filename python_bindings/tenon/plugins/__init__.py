# SPDX-License-Identifier: Apache-2.0
"""Plugins: which are loaded, why others are not, and what runs where.

The libraries of Tenon's own plugins lie in this folder, too, where the build and the wheel put them.
"""

from __future__ import annotations

import importlib as _importlib

TYPE_CHECKING = False  # of `typing`, whose import costs more than all else up to the first tensor
if TYPE_CHECKING:
    from typing import Any

    from tenon.plugins.management import add_folder as add_folder
    from tenon.plugins.management import allow_overrides as allow_overrides
    from tenon.plugins.management import coverage as coverage
    from tenon.plugins.management import doctor as doctor
    from tenon.plugins.management import explain as explain
    from tenon.plugins.management import forbid_overrides as forbid_overrides
    from tenon.plugins.management import list as list
    from tenon.plugins.management import load as load
    from tenon.plugins.management import load_plugin as load_plugin
    from tenon.plugins.management import sdk_path as sdk_path
    from tenon.plugins.management import unload as unload

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


# The host asks `entry_points` in here before the first tensor is made; the rest is imported when it is named.
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tenon.plugins' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module("tenon.plugins.management"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
