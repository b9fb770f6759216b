# SPDX-License-Identifier: Apache-2.0
"""The table of dtypes, as sdk/include/tenon/dtypes.h has it: what Python knows of a dtype, it asks here."""

from typing import NamedTuple

from tenon import _core


class Limits(NamedTuple):
    """Of a floating dtype."""

    eps: float
    max: float
    min: float
    smallest_normal: float


class DtypeRow(NamedTuple):
    """What there is to know of a dtype."""

    dtype: _core.dtype
    kind: str  # bool, unsigned, signed, floating, complex; storage: no operator computes with it
    bits: int  # of a number
    numbers: int  # in an element
    safetensors: str  # what files of that format call it; "": they do not have it
    alias: str  # of NumPy, ml_dtypes or PyTorch where it is another name; "": it is not
    limits: Limits | None  # of floating numbers


# By name, in the order of their numbers in the ABI.
DTYPES = {
    row[0].name: DtypeRow(*row[:-1], Limits(*row[-1]) if row[-1] else None)
    for row in _core._dtype_table()
}
NAMES = tuple(DTYPES)


def names_of(*kinds: str) -> tuple[str, ...]:
    """The names of the dtypes of these kinds."""
    return tuple(name for name, row in DTYPES.items() if row.kind in kinds)


STORAGE = frozenset(names_of("storage"))
PACKED = frozenset(name for name, row in DTYPES.items() if row.numbers > 1)
