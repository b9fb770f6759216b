# SPDX-License-Identifier: Apache-2.0
"""Gradients that are checked once and as functions of their own."""

import tenon


def check_gradients_twice(function, inputs):
    """gradcheck of the function, and of its gradient."""
    assert tenon.autograd.gradcheck(function, inputs)

    def gradient(*given):
        with tenon.enable_grad():
            given = [x if x.requires_grad else x.detach().requires_grad_() for x in given]
            result = function(*given)
            weights = tenon.arange(1.0, result.numel() + 1, dtype=result.dtype)
            total = (result * weights.reshape(result.shape) / result.numel()).sum()
            found = tenon.grad(total, given, create_graph=True, allow_unused=True)
        return tuple(one for one in found if one is not None and one.requires_grad)

    if gradient(*inputs):  # else the function is linear in each
        assert tenon.autograd.gradcheck(gradient, inputs)
