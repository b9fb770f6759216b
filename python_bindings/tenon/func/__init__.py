# SPDX-License-Identifier: Apache-2.0
"""Transformations of functions: derivatives of any order, and batches.

- grad, value_and_grad, grad_and_value: the gradient of a function that gives a number
- vjp, jvp: products of the Jacobian with a vector, from the left and from the right
- jacrev, jacfwd, hessian: whole Jacobians, row by row or column by column
- hvp, vhp: products of the Hessian with a vector
- vmap: a function of one sample, called for a batch
- functional_call: a module as a function of its parameters

They compose: `vmap(grad(loss), in_dims=(None, 0, 0))` gives the gradient of every sample.
Arguments and results may be tensors, or lists, tuples and dicts of tensors. docs/func.md explains
them.
"""

from tenon.func.batching import vmap
from tenon.func.transforms import (
    grad,
    grad_and_value,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    value_and_grad,
    vhp,
    vjp,
)
from tenon.nn.utils import functional_call

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]
