# SPDX-License-Identifier: Apache-2.0
"""A mismatch, and how it is printed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mismatch:
    oracle: str
    op: str
    detail: str  # what differs: got, then expected
    script: str  # a Python program that shows it
    dtypes: tuple[str, ...] = ()
    case: tuple[int, ...] = ()  # seed and number of the case
    call: object = field(default=None, compare=False, repr=False)

    @property
    def group(self):
        """Mismatches of one cause are likely of one group; the first of each is reported."""
        return self.oracle, self.op

    def text(self):
        case = f" (--seed {self.case[0]} --case {self.case[1]})" if self.case else ""
        return (
            f"{self.op}, oracle {self.oracle}{case}: {self.detail}\n"
            f"    python -c {shlex.quote(self.script)}"
        )

    def record(self):
        """As JSON, from the process that found it."""
        return {
            "oracle": self.oracle,
            "op": self.op,
            "detail": self.detail,
            "script": self.script,
            "dtypes": list(self.dtypes),
            "case": list(self.case),
        }

    @staticmethod
    def from_record(record):
        return Mismatch(
            record["oracle"],
            record["op"],
            record["detail"],
            record["script"],
            tuple(record["dtypes"]),
            tuple(record["case"]),
        )


def mismatch(oracle, call, detail, script=None):
    dtypes = tuple(array.dtype for _, _, array in call.arrays())
    return Mismatch(oracle, call.op, detail, script or call.script(), dtypes, call=call)
