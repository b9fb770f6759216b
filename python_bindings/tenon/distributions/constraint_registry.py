# SPDX-License-Identifier: Apache-2.0
"""Transforms of numbers without bounds to the values that a constraint allows, so that an optimizer
may train what is constrained."""

from __future__ import annotations

from collections.abc import Callable

from . import constraints, joined_transforms, transforms
from .constraints import Constraint
from .transforms import Transform


def biject_to(constraint: Constraint) -> Transform:
    """A bijection from real numbers to the values of `constraint`."""
    if constraint is constraints.simplex:
        return transforms.StickBreakingTransform()
    return _transform(constraint, biject_to)


def transform_to(constraint: Constraint) -> Transform:
    """A map, maybe no bijection, from real numbers to the values of `constraint` that is easy to
    optimise: softmax for shares, and otherwise that of biject_to()."""
    if constraint is constraints.simplex:
        return transforms.SoftmaxTransform()
    return _transform(constraint, transform_to)


def _transform(constraint: Constraint, of_base: Callable[[Constraint], Transform]) -> Transform:
    if isinstance(constraint, constraints.Independent):
        base = of_base(constraint.base)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)
    if constraint.is_discrete:
        raise NotImplementedError(
            f"expected a constraint of real numbers, got {constraint.description}: no smooth map leads there"
        )
    if constraint is constraints.real or constraint is constraints.real_vector:
        return transforms.identity_transform
    if constraint is constraints.positive or constraint is constraints.nonnegative:
        return transforms.ExpTransform()
    if isinstance(constraint, (constraints.GreaterThan, constraints.GreaterThanEq)):
        moved = transforms.AffineTransform(constraint.lower_bound, 1.0)
        return transforms.ComposeTransform([transforms.ExpTransform(), moved])
    if isinstance(constraint, constraints.LessThan):
        moved = transforms.AffineTransform(constraint.upper_bound, -1.0)
        return transforms.ComposeTransform([transforms.ExpTransform(), moved])
    if constraint is constraints.unit_interval:
        return transforms.SigmoidTransform()
    if isinstance(constraint, constraints.Interval):
        low, high = constraint.lower_bound, constraint.upper_bound
        moved = transforms.AffineTransform(low, high - low)
        return transforms.ComposeTransform([transforms.SigmoidTransform(), moved])
    if constraint is constraints.lower_cholesky:
        return transforms.LowerCholeskyTransform()
    if constraint is constraints.corr_cholesky:
        return joined_transforms.CorrCholeskyTransform()
    if constraint is constraints.positive_definite:
        return joined_transforms.PositiveDefiniteTransform()
    raise NotImplementedError(
        f"expected a constraint for which there is a transform, got {constraint.description}"
    )
