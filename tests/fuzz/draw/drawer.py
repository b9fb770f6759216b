# SPDX-License-Identifier: Apache-2.0
"""What the rules of operators draw with: one generator, dtype and kind of values for a call."""

from __future__ import annotations

import numpy as np

from ..arrays import LAYOUTS, Array, applicable, representable
from . import shapes, values

INTEGERS = ("int64", "int32", "uint8", "int16")
# Longer arrays repeat as many elements, so that a report stays short.
_PERIOD = 61


class Drawer:
    def __init__(self, rng, operator, dtype, kind, large=False, strided=True):
        self.rng, self.operator, self.dtype, self.kind = rng, operator, dtype, kind
        self.large, self.strided = large, strided

    # Choices
    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def choice(self, options):
        return options[int(self.rng.integers(0, len(options)))]

    def integer(self, low, high):
        """A whole number of low, ..., high."""
        return int(self.rng.integers(low, high + 1))

    # Shapes
    def shape(self, least=0, most=4):
        return shapes.draw_shape(self.rng, self.large, least, most)

    def extent(self):
        return shapes.draw_extent(self.rng, False)

    def broadcast(self, shape, count):
        return shapes.broadcast_shapes(self.rng, shape, count)

    def related(self, templates, **fixed):
        return shapes.from_templates(self.rng, templates, self.large, **fixed)

    def axis(self, ndim):
        return self.integer(-ndim, ndim - 1) if ndim else self.choice([0, -1])

    def axes(self, ndim):
        """Different axes, some of them negative."""
        chosen = self.rng.permutation(ndim)[: self.integer(0, ndim)]
        return [int(a) - ndim * self.chance(0.4) for a in chosen]

    # Tensors
    def tensor(self, shape, dtype=None, domain=None):
        dtype = dtype or self.dtype
        count = int(np.prod(shape, dtype=np.int64))
        period = None
        if count > _PERIOD:
            few = values.draw_values(self.rng, (_PERIOD,), dtype, self.kind, domain)
            few = representable(few, dtype)
            period, drawn = tuple(few.tolist()), np.resize(few, shape)
        else:
            drawn = values.draw_values(self.rng, shape, dtype, self.kind, domain)
            drawn = representable(np.asarray(drawn).reshape(shape), dtype)
        if self.strided and len(shape) and shape[0] > 1 and self.chance(0.07):
            few = np.ascontiguousarray(np.broadcast_to(drawn[:1], shape))
            return Array(few, dtype, "expanded")
        return Array(drawn, dtype, self._layout(drawn), period)

    def _layout(self, drawn):
        if not self.strided or self.chance(0.5):
            return "plain"
        layout = self.choice(LAYOUTS)
        return layout if applicable(layout, drawn) else "plain"

    def indices(self, shape, extent, dtype=None, negative=True):
        """Indices into an axis of `extent` elements; none exist into an empty one."""
        dtype = dtype or self.choice(INTEGERS)
        if extent == 0:
            shape = (*shape[:-1], 0) if shape else (0,)
            extent = 1
        low = -extent if negative and not dtype.startswith("uint") else 0
        extent = min(extent, 127)
        drawn = self.rng.integers(max(low, -128), extent, shape)
        return Array(np.asarray(drawn).astype(dtype), dtype, self._layout(np.asarray(drawn)))

    def booleans(self, shape):
        return self.tensor(shape, "bool")

    # Numbers
    def number(self):
        """A Python number where a tensor is possible, too."""
        if self.dtype.startswith("complex") and self.chance(0.4):
            return complex(self.integer(-2, 2), self.choice([0.5, -1.0]))
        if "float" in self.dtype or self.dtype.startswith("complex"):
            return self.choice([0.0, 1.0, -1.5, 2, 0.5, 3, float(np.round(self.rng.normal(), 3))])
        if self.dtype == "bool":
            return self.chance(0.5)
        return self.integer(0, 5)

    def optional(self, value, probability=0.5):
        """`value()` or None."""
        return value() if self.chance(probability) else None
