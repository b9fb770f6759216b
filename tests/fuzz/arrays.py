# SPDX-License-Identifier: Apache-2.0
"""One tensor argument: its values, dtype and layout, and the Python text that makes it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import tenon

LAYOUTS = ("plain", "transposed", "flipped", "strided", "offset", "expanded", "channels_last")
FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
COMPLEXES = ("complex64", "complex128")
# Arrays of more elements are written as a repeated list.
_LITERAL = 64


def carrier(dtype):
    """The NumPy dtype that holds every value of a dtype exactly."""
    if dtype in FLOATS:
        return np.float64
    return np.complex128 if dtype in COMPLEXES else np.dtype(dtype).type


def representable(values, dtype):
    """`values` rounded to a dtype, in its carrier."""
    values = np.asarray(values)
    if dtype == "float32":
        with np.errstate(all="ignore"):
            return values.astype(np.float32).astype(np.float64)
    if dtype in FLOATS and dtype != "float64":
        return numpy_of(tenon.tensor(values.astype(np.float64)).to(getattr(tenon, dtype)))
    if dtype == "complex64":
        with np.errstate(all="ignore"):
            return values.astype(np.complex64).astype(np.complex128)
    return values.astype(carrier(dtype))


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("tenon.")


def numpy_of(tensor):
    """The values of a tensor in the carrier of its dtype."""
    name = dtype_name(tensor)
    tensor = tensor.detach().to("cpu")
    if name in FLOATS:
        tensor = tensor.to(tenon.float64)
    return tensor.numpy().astype(carrier(name))


@dataclass(frozen=True, eq=False)
class Array:
    """`period` is set where the values are its elements, repeated."""

    values: np.ndarray
    dtype: str
    layout: str = "plain"
    period: tuple | None = None

    @property
    def shape(self):
        return self.values.shape

    def with_layout(self, layout):
        return replace(self, layout=layout)

    def with_values(self, values):
        """Other values in the same layout, or in a plain one where they cannot have it."""
        values = np.asarray(values)
        layout = self.layout if applicable(self.layout, values) else "plain"
        return replace(self, values=values, layout=layout, period=None)

    def with_dtype(self, dtype):
        if dtype == self.dtype:  # the largest integers do not survive a conversion through floats
            return self
        values = representable(self.values, dtype)
        period = None if self.period is None else tuple(representable(self.period, dtype).tolist())
        return replace(self, values=values, dtype=dtype, period=period)

    def text(self, device=None):
        """Python text whose value is the tensor; `np`, `inf` and `nan` are names in it."""
        values, suffix = _laid_out(self)
        if self.period is not None and self.values.size > _LITERAL:
            base, suffix = _repeated(self)
        elif values.size == 0:
            base = f"np.zeros({values.shape})"
        else:
            base = literal(values.tolist())
        where = f", device={device!r}" if device else ""
        return f"tenon.tensor({base}, dtype={self.dtype!r}{where}){suffix}"


@dataclass(frozen=True, eq=False)
class Written:
    """Stands for an Array in a call whose text is to have something else in its place."""

    array: Array
    written: str

    def text(self, device=None):
        return self.written


def literal(value):
    """Text of numbers in nested lists that Python reads back to the same numbers."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return repr(value)


def applicable(layout, values):
    """Whether an array of these values can have a layout."""
    if layout in ("transposed", "flipped", "strided") and values.ndim < 1:
        return False
    if values.size == 0:
        return layout in ("plain", "transposed")
    if layout == "channels_last":
        return values.ndim == 4
    if layout == "expanded":
        return values.ndim > 0 and bool(_same(values, np.broadcast_to(values[:1], values.shape)))
    return True


def _same(x, y):
    return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def _junk(values):
    """What lies between the elements of a strided array: it must never be seen."""
    return {"f": np.nan, "c": np.nan, "b": True}.get(values.dtype.kind, 77)


def _laid_out(array):
    """(values of the base, text that makes the view)"""
    values, layout = array.values, array.layout
    if layout == "transposed":
        return values.transpose(), ".permute()"
    if layout == "flipped":
        return values[(slice(None, None, -1),) * values.ndim], ".flip()"
    if layout == "strided":
        filled = np.full(values.shape, _junk(values), values.dtype)
        return np.stack([values, filled], -1).reshape(*values.shape[:-1], -1), "[..., ::2]"
    if layout == "offset":
        return np.stack([np.full(values.shape, _junk(values), values.dtype), values]), "[1]"
    if layout == "expanded":
        return values[:1], f".expand({values.shape})"
    if layout == "channels_last":
        return values.transpose(0, 2, 3, 1), ".permute((0, 3, 1, 2))"
    return values, ""


def _repeated(array):
    """The same for a repeated list; NumPy rearranges it."""
    numbers = (
        f"np.array({literal(list(array.period))}, {carrier(array.dtype).__name__.rstrip('_')!r})"
    )
    base = f"np.resize({numbers}, {array.shape})"
    return {
        "transposed": (f"{base}.T", ".permute()"),
        "flipped": (f"np.flip({base})", ".flip()"),
        "strided": (f"{base}.repeat(2, -1)", "[..., ::2]"),
        "offset": (f"np.stack([{base}, {base}])", "[1]"),
        "expanded": (f"{base}[:1]", f".expand({array.shape})"),
        "channels_last": (f"{base}.transpose(0, 2, 3, 1)", ".permute((0, 3, 1, 2))"),
    }.get(array.layout, (base, ""))
