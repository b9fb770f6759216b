# SPDX-License-Identifier: Apache-2.0
"""Jacobians and Hessians, with the function and all of its arguments at once: tenon.autograd.jacobian and hessian."""

from __future__ import annotations

from tenon._core import Tensor
from tenon.autograd.gradients import as_tuple
from tenon.func import transforms


def jacobian(function, inputs):
    """Derivatives of `function(*inputs)` by every element of every input: for one tensor and one
    result, of shapes A and R, a tensor of shape R + A; for tuples, tuples of such.
    tenon.func.jacrev with the arguments in another order."""
    argnums = 0 if isinstance(inputs, Tensor) else tuple(range(len(inputs)))
    return transforms.jacrev(function, argnums)(*as_tuple(inputs))


def hessian(function, inputs):
    """Second derivatives of `function(*inputs)`, one number: for one tensor of shape A a tensor of
    shape A + A; for a tuple, tuples of tuples of such."""
    argnums = 0 if isinstance(inputs, Tensor) else tuple(range(len(inputs)))
    return transforms.hessian(function, argnums)(*as_tuple(inputs))
