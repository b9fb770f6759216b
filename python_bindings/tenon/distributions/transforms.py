# SPDX-License-Identifier: Apache-2.0
"""Transforms: differentiable maps with the determinants of their Jacobians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional as F

from . import constraints
from ._sampling import inside_unit
from .constraints import Constraint
from .distribution import sum_rightmost


class Transform:
    """A map `y = transform(x)`; `transform.inv` is its inverse.

    Values have `domain.event_dim` axes before the map and `codomain.event_dim` after it. Subclasses
    define `_call`, `_inverse` and `log_abs_det_jacobian`.
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective: bool = True
    sign: int | Tensor | None = None  # of the derivative of a monotonic map of numbers

    def __call__(self, x: Tensor) -> Tensor:
        return self._call(x)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _call()")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx|, without the axes of an event."""
        raise NotImplementedError(
            f"{type(self).__name__} has no log_abs_det_jacobian: it is no bijection between spaces of "
            "one dimension"
        )

    @property
    def inv(self) -> Transform:
        """The inverse map; the inverse of an inverse is the map itself."""
        return _Inverse(self)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of `transform(x)` for `x` of `shape`."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of `transform.inv(y)` for `y` of `shape`."""
        return tuple(shape)

    def _settings(self) -> tuple[Any, ...]:
        """What makes a map differ from others of its class."""
        return ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            _same(mine, others)
            for mine, others in zip(self._settings(), other._settings(), strict=True)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self._settings()))})"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or tenon.array_equal(a, b)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return False
    return a == b


class _Inverse(Transform):
    def __init__(self, forward: Transform) -> None:
        self.forward = forward
        self.domain, self.codomain = forward.codomain, forward.domain
        self.bijective, self.sign = forward.bijective, forward.sign

    def _settings(self) -> tuple[Any, ...]:
        return (self.forward,)

    def _call(self, x: Tensor) -> Tensor:
        return self.forward._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.forward._call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.forward.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Transform:
        return self.forward

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.forward.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.forward.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self.forward!r}.inv"


class AffineTransform(Transform):
    """`loc + scale * x`; `event_dim` last axes belong to one value."""

    def __init__(self, loc: float | Tensor, scale: float | Tensor, event_dim: int = 0) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        if event_dim:
            self.domain = self.codomain = constraints.Independent(constraints.real, event_dim)
        elif isinstance(scale, Tensor):
            self.sign = tenon.sign(scale.detach())
        else:
            self.sign = (scale > 0) - (scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            size = tenon.log(tenon.abs(self.scale))
            size = tenon.expand(size, tenon.broadcast_shapes(x.shape, size.shape))
        else:
            size = tenon.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(size, self.event_dim)

    def _settings(self) -> tuple[Any, ...]:
        return self.loc, self.scale, self.event_dim


class ExpTransform(Transform):
    """`exp(x)`."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return tenon.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return tenon.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """`x ** exponent` of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: float | Tensor) -> None:
        self.exponent = exponent
        if isinstance(exponent, Tensor):
            self.sign = tenon.sign(exponent.detach())
        else:
            self.sign = (exponent > 0) - (exponent < 0)

    def _settings(self) -> tuple[Any, ...]:
        return (self.exponent,)

    def _call(self, x: Tensor) -> Tensor:
        return tenon.pow(x, self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return tenon.pow(y, 1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return tenon.log(tenon.abs(self.exponent * y / x))


class SigmoidTransform(Transform):
    """`1 / (1 + exp(-x))`; where that rounds to 0 or 1, the nearest number between, which has an
    inverse."""

    codomain = constraints.unit_interval
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return inside_unit(tenon.sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = inside_unit(y)
        return tenon.log(y) - tenon.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -tenon.softplus(-x) - tenon.softplus(x)


class TanhTransform(Transform):
    """`tanh(x)`; where that rounds to -1 or 1, the nearest number between, which has an inverse."""

    codomain = constraints.Interval(-1.0, 1.0)
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return self._inside(tenon.tanh(x))

    def _inverse(self, y: Tensor) -> Tensor:
        return tenon.atanh(self._inside(y))

    @staticmethod
    def _inside(y: Tensor) -> Tensor:
        largest = 1 - tenon.finfo(y.dtype).eps / 2
        return tenon.clip(y, -largest, largest)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)**2) without cancellation.
        return 2 * (math.log(2.0) - x - tenon.softplus(-2 * x))


class SoftplusTransform(Transform):
    """`log(1 + exp(x))`."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return tenon.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + tenon.log(-tenon.expm1(-y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -tenon.softplus(-x)


class AbsTransform(Transform):
    """`abs(x)`, which is no bijection; the inverse is the value itself."""

    codomain = constraints.nonnegative
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return tenon.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """softmax of vectors, which is no bijection; the inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return F.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return tenon.log(y)


class StickBreakingTransform(Transform):
    """Vectors of n numbers to n + 1 that are positive and sum to 1: each takes the sigmoid's share
    of what those before it left."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _shares(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms of the share that each takes and of the one it leaves."""
        count = x.shape[-1]
        left = tenon.log((count - tenon.arange(count, device=x.device)).to(x.dtype))
        shifted = x - left
        return -tenon.softplus(-shifted), -tenon.softplus(shifted)

    def _call(self, x: Tensor) -> Tensor:
        taken, left = self._shares(x)
        ones = [0, 0] * (x.ndim - 1)
        before = tenon.pad(tenon.cumsum(left, -1), [*ones, 1, 0])
        return tenon.exp(before + tenon.pad(taken, [*ones, 0, 1]))

    def _inverse(self, y: Tensor) -> Tensor:
        count = y.shape[-1] - 1
        head = y[..., :-1]
        rest = tenon.cumsum(y, -1, reverse=True)[..., 1:]  # without subtraction from 1
        offsets = tenon.log((count - tenon.arange(count, device=y.device)).to(y.dtype))
        return tenon.log(head) - tenon.log(rest) + offsets

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        _, left = self._shares(x)
        return (left + tenon.log(y[..., :-1])).sum(axis=-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones: exp of the diagonal, and what is below it as it
    is."""

    domain = constraints.Independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        diagonal = tenon.exp(tenon.diagonal(x, 0, -2, -1))
        return tenon.tril(x, -1) + tenon.diag_embed(diagonal)

    def _inverse(self, y: Tensor) -> Tensor:
        diagonal = tenon.log(tenon.diagonal(y, 0, -2, -1))
        return tenon.tril(y, -1) + tenon.diag_embed(diagonal)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return tenon.diagonal(x, 0, -2, -1).sum(axis=-1)


class IndependentTransform(Transform):
    """`base` on each element of an event: the determinants of the last axes are summed."""

    def __init__(self, base: Transform, reinterpreted_batch_ndims: int) -> None:
        self.base, self.reinterpreted_batch_ndims = base, reinterpreted_batch_ndims
        self.domain = constraints.Independent(base.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.Independent(base.codomain, reinterpreted_batch_ndims)
        self.bijective = base.bijective

    def _settings(self) -> tuple[Any, ...]:
        return self.base, self.reinterpreted_batch_ndims

    def _call(self, x: Tensor) -> Tensor:
        return self.base._call(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base._inverse(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        size = self.base.log_abs_det_jacobian(x, y)
        return sum_rightmost(size, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of shape `in_shape` as events of shape `out_shape`."""

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int]) -> None:
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"ReshapeTransform: expected shapes of equal size, got {self.in_shape} and "
                f"{self.out_shape}"
            )
        self.domain = constraints.Independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.Independent(constraints.real, len(self.out_shape))

    def _settings(self) -> tuple[Any, ...]:
        return self.in_shape, self.out_shape

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        batch = x.shape[: x.ndim - len(self.in_shape)]
        return tenon.zeros(batch, dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    def _exchanged(
        self, shape: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]
    ) -> tuple[int, ...]:
        cut = len(shape) - len(old)
        if cut < 0 or tuple(shape[cut:]) != old:
            raise ValueError(
                f"ReshapeTransform: expected the last axes to be {old}, got shape {tuple(shape)}"
            )
        return (*shape[:cut], *new)


class ComposeTransform(Transform):
    """The maps of `parts` one after another."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        self.sign = 1
        for part in self.parts:
            known = self.sign is not None and part.sign is not None
            self.sign = self.sign * part.sign if known else None  # type: ignore[operator]
        event_dim = before = 0
        for part in reversed(self.parts):  # axes that the value must have at the start
            before = max(before, part.codomain.event_dim)
            before += part.domain.event_dim - part.codomain.event_dim
        event_dim = before
        first = self.parts[0].domain if self.parts else constraints.real
        self.domain = _with_event_dim(first, event_dim)
        for part in self.parts:
            event_dim = max(event_dim, part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        last = self.parts[-1].codomain if self.parts else constraints.real
        self.codomain = _with_event_dim(last, event_dim)

    def _settings(self) -> tuple[Any, ...]:
        return (self.parts,)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim = self.domain.event_dim
        total: Tensor | None = None
        for part, before, after in zip(self.parts, values, values[1:]):
            size = part.log_abs_det_jacobian(before, after)
            size = sum_rightmost(size, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            total = size if total is None else total + size
        return sum_rightmost(tenon.zeros_like(x), event_dim) if total is None else total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)


def _with_event_dim(constraint: Constraint, event_dim: int) -> Constraint:
    more = event_dim - constraint.event_dim
    return constraints.Independent(constraint, more) if more > 0 else constraint


identity_transform = ComposeTransform([])
