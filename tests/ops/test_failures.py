# SPDX-License-Identifier: Apache-2.0
"""An operator whose step fails in the middle raises that step's error, and nothing worse."""

import pytest
import tenon
from case import differentiable, differentiable_results
from running import arguments
from samples import CASES

STEPS = [
    "full",
    "clone",
    "cast",
    "arange",
    "add",
    "multiply",
    "divide",
    "sum",
    "mean",
    "max",
    "where",
    "equal",
    "not_equal",
    "matmul",
    "gather",
    "index_select",
    "log_softmax",
    "softmax",
    "exp",
    "concat",
    "pad_constant",
]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_is_denied_is_an_error(step, device):
    if device == "cpu":
        pytest.skip("nothing runs elsewhere")
    with tenon.fallback(f"allow,{device}:{step}=deny"):
        for case in CASES:
            try:
                args, kwargs = arguments(case, device)
                tensors = [
                    args[i] for i in differentiable(case) if isinstance(args[i], tenon.Tensor)
                ]
                for tensor in tensors:
                    tensor.requires_grad = True
                results = getattr(tenon, case.op)(*args, **kwargs)
                for result in differentiable_results(case, results):
                    if result.requires_grad:
                        tenon.grad(result.sum(), tensors, allow_unused=True, create_graph=True)
            except tenon.PolicyError as error:
                assert f"[{step}]" in str(error)
