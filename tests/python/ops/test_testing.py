# SPDX-License-Identifier: Apache-2.0
"""tenon.testing finds what is wrong with an operator."""

import pytest
import tenon
from tenon.testing import check_operator


class Wrong:
    """tenon.exp, called by a function that may get it wrong."""

    full_name = "tenon::exp"
    schema = "tenon::exp(Tensor x) -> Tensor"

    def __init__(self, function):
        self.function = function

    def __call__(self, x, out=None):
        result = self.function(x)
        if out is None:
            return result
        out[...] = result
        return out


class HalfGradient(tenon.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tenon.exp(x)

    @staticmethod
    def backward(ctx, grad):
        return 0.5 * grad * tenon.exp(ctx.saved_tensors[0])


def is_meta(x):
    return str(x.device).startswith("meta")


SAMPLES = [(tenon.linspace(-1.0, 1.0, 6).reshape(2, 3),)]


def test_a_right_operator_passes():
    check_operator(tenon.exp, SAMPLES)
    check_operator(Wrong(tenon.exp), SAMPLES)
    check_operator(tenon.matmul, [(tenon.ones((2, 3)), tenon.ones((3, 2)))])
    check_operator(tenon.split, [(tenon.ones((4, 2)), 2)])


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda x: tenon.exp(x) + (x.dtype == tenon.bfloat16), "bfloat16: expected"),
        (lambda x: tenon.exp(x) + (not x.is_contiguous()), "transposed: expected"),
        (
            lambda x: tenon.exp(x)[None] if x.ndim == 0 and not is_meta(x) else tenon.exp(x),
            "0-d: expected shapes",
        ),
        (lambda x: tenon.exp(x).to("float32"), "they differ by"),
        (lambda x: tenon.exp(x)[:1] if is_meta(x) else tenon.exp(x), "meta: the shape rule says"),
        (lambda x: HalfGradient.apply(x), "gradients: gradcheck: input 0, element 0: expected"),
    ],
)
def test_a_wrong_operator_does_not(function, text):
    with pytest.raises(AssertionError, match=text):
        check_operator(Wrong(function), SAMPLES)
