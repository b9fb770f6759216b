# SPDX-License-Identifier: Apache-2.0
"""How far a value is from what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenon._core import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


@dataclass(frozen=True)
class Difference:
    """Of one value. `differing` of its `size` elements are outside of the tolerance; `absolute` and `relative` are the
    largest errors of all, inf where one side alone is NaN or infinite; `first` is the index of the first differing element with
    what was expected and got. `problem` says what differs beside elements: a dtype or a shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int = 0
    differing: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    first: tuple[tuple[int, ...], float, float] | None = None
    problem: str = ""

    @property
    def passed(self) -> bool:
        return not self.problem and self.differing == 0

    def __str__(self) -> str:
        kind = f"{self.name}: {self.dtype}{list(self.shape)}"
        if self.problem:
            return f"{kind}: {self.problem}"
        errors = f"largest error {self.absolute:.3g}, relative {self.relative:.3g}"
        if self.first is None:
            return f"{kind}: {errors}"
        index, expected, got = self.first
        return (
            f"{kind}: {self.differing} of {self.size} elements differ, first at {list(index)}: "
            f"expected {expected:.8g}, got {got:.8g}; {errors}"
        )


def difference(
    name: str, got: Tensor, expected: np.ndarray, rtol: float, atol: float
) -> Difference:
    """As `numpy.isclose` says, with NaN equal to NaN; integers and bools have to be equal."""
    dtype, shape = got.dtype.name, tuple(got.shape)
    expected = np.asarray(expected)
    wanted = expected.dtype.name
    if wanted != dtype:
        return Difference(name, dtype, shape, problem=f"expected dtype {wanted}, got {dtype}")
    if expected.shape != shape:
        return Difference(
            name, dtype, shape, problem=f"expected shape {list(expected.shape)}, got {list(shape)}"
        )
    array = got.detach().cpu().numpy()
    if array.dtype.kind in "biu":
        rtol = atol = 0.0
        bad = array != expected
    else:
        bad = ~np.isclose(array, expected, rtol=rtol, atol=atol, equal_nan=True)
    absolute, relative = _errors(array, expected)
    count = int(bad.sum())
    first = None
    if count:
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        first = (at, float(np.real(expected[at])), float(np.real(array[at])))
    return Difference(name, dtype, shape, array.size, count, absolute, relative, first)


def _errors(got: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    if not got.size:
        return 0.0, 0.0
    kind = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        mine, theirs = got.astype(kind), expected.astype(kind)
        error = np.abs(mine - theirs)
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
        relative = np.where(error == 0, 0.0, error / np.abs(theirs))
    return float(error.max()), float(np.where(np.isnan(relative), np.inf, relative).max())
