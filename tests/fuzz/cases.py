# SPDX-License-Identifier: Apache-2.0
"""One case: a seed and a number draw an operator, a call, and what is done with it."""

from __future__ import annotations

import numpy as np
import tenon

from .draw import draw_call
from .hostile import check_hostile, draw_hostile, script
from .operators import table
from .oracles import ORACLES, check, device, is_refusal
from .remote import isa
from .shrink import shrink

_HOSTILE = 0.35
# Minimising is slow: only the first mismatches of a group are made small.
_MINIMISED = 3


class Cases:
    """`only`: names of operators; `oracles`: names of oracles or `hostile`; empty is all."""

    def __init__(self, seed, only=(), oracles=(), devices=(), isas=()):
        operators = table()
        unknown = [name for name in only if name not in operators]
        if unknown:
            raise ValueError(f"expected names of operators, got {', '.join(unknown)}")
        self.seed = seed
        self.operators = [op for name, op in operators.items() if not only or name in only]
        known = ORACLES | {f"device {kind}": device(kind) for kind in devices}
        known |= {f"isa {name}": isa(name) for name in isas}
        unknown = [name for name in oracles if name not in (*known, "hostile", "refusal")]
        if unknown:
            raise ValueError(
                f"expected oracles among {', '.join([*known, 'hostile'])}, got {', '.join(unknown)}"
            )
        self.chosen = {n: f for n, f in known.items() if not oracles or n in oracles}
        self.hostile = _HOSTILE if not oracles else float("hostile" in oracles)
        if oracles and not self.chosen:
            self.hostile = 1.0
        elif oracles and self.hostile:
            self.hostile = 0.5
        self.groups = {}

    def draw(self, number):
        """(operator, Call or text of a hostile call, the generator)"""
        rng = np.random.default_rng([self.seed, number])
        operator = self.operators[int(rng.integers(0, len(self.operators)))]
        with np.errstate(all="ignore"):
            if rng.random() < self.hostile:
                return operator, draw_hostile(rng, operator), rng
            return operator, draw_call(rng, operator), rng

    @staticmethod
    def script(drawn):
        return script(drawn) if isinstance(drawn, str) else drawn.script()

    def run(self, number, minimise=True):
        """(served, mismatches) of one case."""
        operator, drawn, rng = self.draw(number)
        return self.examine(operator, drawn, rng, minimise)

    def examine(self, operator, drawn, rng, minimise=True):
        if isinstance(drawn, str):
            return None, check_hostile(drawn, operator, is_refusal)
        served, found = check(drawn, rng, self.chosen)
        return served, [self._small(m, minimise) for m in found]

    def _small(self, found, minimise):
        """The mismatch of a smaller call under the same oracle."""
        seen = self.groups[found.group] = self.groups.get(found.group, 0) + 1
        if not minimise or seen > _MINIMISED or found.oracle == "refusal" or found.call is None:
            return found
        oracle = {found.oracle: self.chosen[found.oracle]}

        def again(call):
            results = check(call, np.random.default_rng(1), {})
            if not results[0]:
                return None
            fixed = _Always(np.random.default_rng(1))
            mismatches = check(call, fixed, oracle)[1]
            return mismatches[0] if mismatches else None

        small = again(shrink(found.call, again))
        return small or found


class _Always:
    """A generator that never skips a slow oracle."""

    def __init__(self, rng):
        self._rng = rng

    def random(self, *shape):
        return self._rng.random(*shape) if shape else 0.0

    def __getattr__(self, name):
        return getattr(self._rng, name)


def load_plugins(paths):
    for path in paths:
        tenon.plugins.load(path)
