# SPDX-License-Identifier: Apache-2.0
"""Which functions of NumPy, PyTorch and Paddle tenon.compat has, and what each of them is."""

from __future__ import annotations

import importlib

from .library_names import NUMPY, PADDLE, TORCH

LIBRARIES = [
    ("numpy", "NumPy", NUMPY),
    ("torch", "PyTorch", TORCH),
    ("paddle", "Paddle", PADDLE),
]


def rows(library: str, names: list[str]) -> list[tuple[str, str]]:
    """Each function, and what answers to its name: an operator, a function of the namespace, or
    nothing."""
    module = importlib.import_module(f"tenon.compat.{library}")
    namespace = module._namespace
    result = []
    for name in names:
        if name in namespace.own:
            answer = "a function of the namespace"
        elif name in namespace.as_they_are:
            answer = f"`tenon.{namespace.as_they_are[name]}`"
        elif name in namespace.operators:
            answer = f"operator `{namespace.operators[name]}`"
        elif hasattr(module, name):
            answer = "there"
        else:
            answer = ""
        result.append((name, answer))
    return result


def pages() -> dict[str, str]:
    out = [
        "# Functions of NumPy, PyTorch and Paddle",
        "",
        "What the namespaces of `tenon.compat` answer to ([what they promise](../compat_namespaces.md)).",
        "",
    ]
    for library, title, names in LIBRARIES:
        table = rows(library, names)
        absent = [f"`{name}`" for name, answer in table if not answer]
        out += [f"## {title}", ""]
        out += [f"`tenon.compat.{library}` has {len(table) - len(absent)} of {len(table)}.", ""]
        out += [f"| {title} | Tenon |", "|---|---|"]
        out += [f"| `{name}` | {answer} |" for name, answer in table if answer]
        out += ["", f"Not there: {', '.join(absent)}.", ""]
    return {"reference/compat_namespaces.md": "\n".join(out)}
