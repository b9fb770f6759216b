# SPDX-License-Identifier: Apache-2.0
"""What happens when a device has no kernel for an operator, and how often it did."""

from __future__ import annotations

import json
import warnings

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


# Communication that went through the host: (device kind, operation) -> [calls, bytes copied].
_staged: dict[tuple[str, str], list[int]] = {}
_warned: set[tuple[str, str, str]] = set()


def policy_of(kind, op):
    """The policy in force for one operation of a device kind: "deny", "warn_once" or "allow"."""
    best, weight = "warn_once", -1
    for part in _core.fallback_policy().split(","):
        target, _, word = part.rpartition("=")
        entry_kind, _, entry_op = target.partition(":")
        matches = entry_kind in ("", kind) and entry_op in ("", op)
        entry_weight = (entry_kind != "") + 2 * (entry_op != "")
        if matches and entry_weight >= weight:
            best, weight = word, entry_weight
    return best


def count_staged(kind, op, nbytes, missing):
    """Permit and count an operation that goes through the host because the device lacks the group
    `missing`. Raises PolicyError if the policy denies it."""
    policy = policy_of(kind, op)
    if policy == "deny":
        raise _core.PolicyError(
            f"[{op}] {kind} has no `{missing}` group, and going through the host is denied by fallback "
            f"policy '{_core.fallback_policy()}'; allow it with {kind}:{op}=allow"
        )
    key = (kind, op, _core.fallback_policy())
    if policy == "warn_once" and key not in _warned:
        _warned.add(key)
        warnings.warn(
            f"[{op}] {kind} has no `{missing}` group and goes through the host, with copies "
            "(said once; see fallback_report)",
            RuntimeWarning,
            stacklevel=4,
        )
    entry = _staged.setdefault((kind, op), [0, 0])
    entry[0] += 1
    entry[1] += nbytes


def fallback_report(device=None, reset=False):
    """How many calls of each operator ran native, lowered (decomposed) or on the host, since the last
    reset. Communication that went through the host is listed too."""
    rows = json.loads(_core.fallback_report(reset))
    for (kind, op), (calls, nbytes) in _staged.items():
        row = {"device": kind, "op": op, "native": 0, "lowered": 0}
        rows.append({**row, "host": calls, "host_bytes": nbytes})
    if reset:
        _staged.clear()
    if device is not None:
        kind = str(device).partition(":")[0]
        rows = [row for row in rows if row["device"] == kind]
    return FallbackReport(rows)
