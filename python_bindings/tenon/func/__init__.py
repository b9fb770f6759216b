# SPDX-License-Identifier: Apache-2.0
"""Transformations of functions: derivatives of any order, and batches.

- grad, value_and_grad, grad_and_value: the gradient of a function that gives a number
- vjp, jvp: products of the Jacobian with a vector, from the left and from the right
- linearize: a function and its product with the Jacobian from the right, for many vectors
- jacrev, jacfwd, hessian: whole Jacobians, row by row or column by column
- hvp, vhp: products of the Hessian with a vector
- vmap: a function of one sample, called for a batch
- functional_call: a module as a function of its parameters; stack_module_state: those of an ensemble

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
    linearize,
    value_and_grad,
    vhp,
    vjp,
)
from tenon.nn.utils import functional_call
from tenon.nn.utils.stateless import replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]
