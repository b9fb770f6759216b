# SPDX-License-Identifier: Apache-2.0
"""Signatures of other libraries' functions, from lines of text."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from tenon._spellings import SIGNATURES


class _LeftOut:
    """The default of a parameter that has no value when it is left out."""

    def __repr__(self) -> str:
        return "<left out>"


LEFT_OUT = _LeftOut()
_KNOWN = {"__builtins__": {}, "no": LEFT_OUT, "int": int, "float": float}


@functools.cache
def parse(text: str) -> inspect.Signature:
    """The signature "(input, dim=None, *, out=None)". The default `no` is LEFT_OUT."""
    return _parsed(text, _KNOWN)


def _parsed(text: str, known: dict[str, Any]) -> inspect.Signature:
    return inspect.signature(eval(f"lambda {text[1:-1]}: None", known))


def table(text: str, **constants: Any) -> dict[str, inspect.Signature]:
    """Signatures by name, of lines `name name(x, axis=None, out=no)`: names that share one stand
    before the parenthesis. `constants` are other names of defaults."""
    found = {}
    known = {**_KNOWN, **constants}
    for line in filter(None, map(str.strip, text.splitlines())):
        names, _, parameters = line.partition("(")
        found.update(dict.fromkeys(names.split(), _parsed(f"({parameters}", known)))
    return found


def of_operators(library: str) -> dict[str, inspect.Signature]:
    """Those that the operator files give: by them operators are called."""
    names = SIGNATURES.get(library, {}).items()
    return {name: parse(text) for name, text in names if "." not in name}
