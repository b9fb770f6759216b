# SPDX-License-Identifier: Apache-2.0
"""Paddle's functions by PyTorch's names, and those that write over their first tensor."""

import numpy as np
import pytest
import tenon
from tenon.compat import paddle

M = [[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]]


@pytest.mark.parametrize(
    "call,wanted",
    [
        (lambda x: paddle.eq(x, 3.0), [[True, False, False], [False, False, False]]),
        (lambda x: paddle.lt(x, other=1.0), [[False, False, False], [True, True, False]]),
        (lambda x: paddle.sub(x, x, alpha=2), [[-3.0, -1.0, -2.0], [0.0, 1.0, -5.0]]),
        (lambda x: paddle.div(x, 2.0, rounding_mode="floor"), [[1, 0, 1], [0, -1, 2]]),
        (lambda x: paddle.true_divide(x, 2), [[1.5, 0.5, 1.0], [0.0, -0.5, 2.5]]),
        (lambda x: paddle.clamp(x, 0, max=2), [[2.0, 1.0, 2.0], [0.0, 0.0, 2.0]]),
        (lambda x: paddle.msort(x), [[0.0, -1.0, 2.0], [3.0, 1.0, 5.0]]),
        (lambda x: paddle.narrow(x, 1, tenon.tensor(1), 2), [[1.0, 2.0], [-1.0, 5.0]]),
        (lambda x: paddle.ravel(x), [3.0, 1.0, 2.0, 0.0, -1.0, 5.0]),
        (lambda x: paddle.argwhere(x > 2), [[0, 0], [1, 2]]),
        (lambda x: paddle.concatenate([x, x], axis=1)[0], [3.0, 1.0, 2.0] * 2),
        (lambda x: paddle.matrix_transpose(x), [[3.0, 0.0], [1.0, -1.0], [2.0, 5.0]]),
        (lambda x: paddle.softmax(x * 0), [[1 / 3] * 3] * 2),
        (lambda x: paddle.softmax(x * 0, 0, "float64"), [[0.5] * 3] * 2),
        (lambda x: paddle.softmax(paddle.unsqueeze(x, 0))[0], [[1.0] * 3] * 2),
        (lambda x: paddle.softmax(paddle.reshape(x, [1, 1, 2, 3]))[0, 0], [[1.0] * 3] * 2),
        (lambda x: paddle.softmax(x[0, 0]), 1.0),
        (
            lambda x: paddle.scatter_add(x, 1, tenon.tensor([[0], [2]]), x + 10),
            [[16.0, 1.0, 2.0], [0.0, -1.0, 15.0]],
        ),
        (
            lambda x: paddle.view_as_real(paddle.view_as_complex(x[:, :2])),
            [[3.0, 1.0], [0.0, -1.0]],
        ),
    ],
)
def test_names_of_pytorch(call, wanted):
    np.testing.assert_allclose(call(tenon.tensor(M)).numpy(), wanted, rtol=1e-6)


def test_constants_and_dtypes():
    assert paddle.half is tenon.float16 and paddle.cdouble is tenon.complex128
    assert paddle.e == np.e and paddle.uint64 is tenon.uint64


def test_what_tensors_are_made_of():
    x = tenon.tensor([1.0, 2.0])
    assert paddle.as_tensor(x) is x and paddle.asarray(x) is x
    assert (
        paddle.as_tensor(x, "float32") is x and paddle.asarray(x, dtype="float32", copy=False) is x
    )
    trained = tenon.tensor([1.0]).requires_grad_()
    assert paddle.as_tensor(trained * 2, "float64").requires_grad
    copied = paddle.asarray(x, copy=True)
    copied.fill_(0.0)
    assert x.tolist() == [1.0, 2.0]
    assert paddle.as_tensor([1, 2], "float64", requires_grad=True).requires_grad
    array = np.zeros(2)
    paddle.from_numpy(array).fill_(4.0)
    assert array.tolist() == [4.0, 4.0]
    assert paddle.rand_like(x, dtype="float64").dtype == tenon.float64
    assert list(paddle.randn_like(x).shape) == [2]
    with pytest.raises(
        ValueError, match="expected a tensor of that dtype and device beside copy=F"
    ):
        paddle.asarray([1.0], copy=False)


@pytest.mark.parametrize(
    "name,args,wanted",
    [
        ("cumsum_", (1,), [[3.0, 4.0, 6.0], [0.0, -1.0, 4.0]]),
        ("divide_", (2.0,), [[1.5, 0.5, 1.0], [0.0, -0.5, 2.5]]),
        ("sub_", (1.0,), [[2.0, 0.0, 1.0], [-1.0, -2.0, 4.0]]),
        (
            "masked_fill_",
            (tenon.tensor([True, False, True]), 9.0),
            [[9.0, 1.0, 9.0], [9.0, -1.0, 9.0]],
        ),
        ("index_fill_", (tenon.tensor([1]), 0, 7.0), [[3.0, 1.0, 2.0], [7.0] * 3]),
        ("reshape_", ([3, 2],), [[3.0, 1.0], [2.0, 0.0], [-1.0, 5.0]]),
        ("transpose_", ([1, 0],), [[3.0, 0.0], [1.0, -1.0], [2.0, 5.0]]),
        ("unsqueeze_", (0,), [M]),
        ("flatten_", (), [3.0, 1.0, 2.0, 0.0, -1.0, 5.0]),
        ("cast_", ("int32",), [[3, 1, 2], [0, -1, 5]]),
    ],
)
def test_written_over(name, args, wanted):
    x = tenon.tensor(M)
    assert getattr(paddle, name)(x, *args) is x
    np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-6)


def test_what_is_written_over_has_gradients():
    x = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    paddle.cumsum_(y)
    (y * tenon.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [222.0, 220.0, 200.0]
    z = tenon.ones([2])
    where = paddle.where_(tenon.tensor([True, False]), z, tenon.tensor([5.0, 6.0]))
    assert where is z and z.tolist() == [1.0, 6.0]
    with pytest.raises(
        NotImplementedError, match=r"reshape_\(\): expected a tensor that requires no"
    ):
        paddle.reshape_(x, [3, 1])


def test_results_of_another_kind_are_not_written():
    whole = tenon.tensor([1, 2])
    with pytest.raises(
        ValueError, match=r"divide_\(\): expected a result of dtype int64 and shape"
    ):
        paddle.divide_(whole, 2)
    with pytest.raises(
        ValueError, match=r"subtract_\(\): expected a result .* and shape \(2,\), as"
    ):
        paddle.subtract_(tenon.ones([2]), tenon.ones([3, 2]))
    assert whole.tolist() == [1, 2]
