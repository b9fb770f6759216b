# SPDX-License-Identifier: Apache-2.0
"""What happens when a device has no kernel for an operator, and how often it did."""

from __future__ import annotations

import json

from tenon import _core


class fallback:
    """Set the policy for running operators on the host: for good as a call, for a block with `with`.

    `policy` is "deny", "warn_once" or "allow", and may add exceptions for a device or an operator of
    it: "deny,acme:sort=allow". Decompositions into other operators of the device are no fallback.
    """

    def __init__(self, policy):
        self._policy = policy
        self._previous = _core.fallback_policy()
        _core.set_fallback_policy(policy)

    def __enter__(self):
        _core.set_fallback_policy(self._policy)
        return self

    def __exit__(self, *exception):
        _core.set_fallback_policy(self._previous)


class FallbackReport:
    """Calls per device and operator; prints as a table. `rows` holds the numbers."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def __str__(self):
        if not self.rows:
            return "no operator has run yet"
        header = ("device", "operator", "native", "lowered", "host", "bytes copied")
        cells = [tuple(str(row[key]) for key in _KEYS) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (header, *cells)
        ]
        return "\n".join(lines)

    __repr__ = __str__


_KEYS = ("device", "op", "native", "lowered", "host", "host_bytes")


def fallback_report(device=None, reset=False):
    """How many calls of each operator ran native, lowered (decomposed) or on the host, since the last
    reset."""
    rows = json.loads(_core.fallback_report(reset))
    if device is not None:
        kind = str(device).partition(":")[0]
        rows = [row for row in rows if row["device"] == kind]
    return FallbackReport(rows)
