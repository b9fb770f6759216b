# SPDX-License-Identifier: Apache-2.0
"""A drawn call of an operator. Its text is what runs, and what a report prints."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import tenon

from .arrays import Array, Written, literal

NAMES = {"tenon": tenon, "np": np, "inf": float("inf"), "nan": float("nan")}
PRELUDE = "import tenon, numpy as np; from math import inf, nan"
# The global generator of random numbers begins every run at the same number.
SEED = 17


def evaluate(text, names=None):
    """The value of Python text in the names that reports import."""
    return eval(text, {**NAMES, **(names or {})})


def map_arrays(function, value):
    """`value` with `function` applied to every Array in it."""
    if isinstance(value, Array):
        return function(value)
    if isinstance(value, list):
        return [map_arrays(function, item) for item in value]
    return value


def value_text(value, device=None):
    """Python text of an argument."""
    if isinstance(value, (Array, Written)):
        return value.text(device)
    if isinstance(value, list):
        return f"[{', '.join(value_text(item, device) for item in value)}]"
    if isinstance(value, (float, complex)):
        return literal(value)
    return repr(value)


@dataclass(frozen=True, eq=False)
class Call:
    """`arguments` are by name, in the order of the signature; the others have their defaults."""

    operator: object
    arguments: dict

    @property
    def op(self):
        return self.operator.name

    def arrays(self):
        """(argument's name, index in its list or None, Array) of every tensor."""
        for name, value in self.arguments.items():
            if isinstance(value, Array):
                yield name, None, value
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, Array):
                        yield name, i, item

    def map(self, function):
        """The call with every Array replaced by what `function` makes of it."""
        return replace(
            self,
            arguments={name: map_arrays(function, value) for name, value in self.arguments.items()},
        )

    def with_array(self, name, index, array):
        """The call with one Array replaced."""
        arguments = dict(self.arguments)
        if index is None:
            arguments[name] = array
        else:
            arguments[name] = [array if i == index else x for i, x in enumerate(arguments[name])]
        return replace(self, arguments=arguments)

    def items(self, device=None):
        """(name, text) of every argument; one without tensors gets the device as a keyword."""
        named = [(name, value_text(value, device)) for name, value in self.arguments.items()]
        if device:
            named = [(name, text) for name, text in named if name != "device"]
        if device and not any(True for _ in self.arrays()):
            named.append(("device", repr(device)))
        return named

    def text(self, device=None, function=None, extra=""):
        """Python text of the call."""
        by_name = {p.name for p in self.operator.parameters if p.keyword_only} | {"device"}
        parts, positional = [], True
        skipped = [p.name for p in self.operator.parameters]
        for name, text in self.items(device):
            expected = skipped.pop(0) if skipped else None
            positional = positional and name == expected and name not in by_name
            parts.append(text if positional else f"{name}={text}")
        return f"{function or 'tenon.' + self.op}({', '.join(parts)}{extra})"

    def script(self, device=None):
        """A program that prints what the call gives."""
        return f"{PRELUDE}; {self.seeding()}print({self.text(device)})"

    def seeding(self):
        return f"tenon.manual_seed({SEED}); " if self.operator.is_random else ""

    def run(self, device=None, extra="", names=None):
        """Its results, as a tuple."""
        if self.operator.is_random:
            tenon.manual_seed(SEED)
        return results_of(evaluate(self.text(device, extra=extra), names))


def results_of(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
