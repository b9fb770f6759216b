# SPDX-License-Identifier: Apache-2.0
"""Methods that write their result over the tensor: the values, gradients and refusals of the form that does not."""

import numpy as np
import pytest
import tenon

RNG = np.random.default_rng(3)
T = tenon.tensor
INDEX = T([2, 0])
ROWS = T(RNG.normal(size=(2, 3)))
MATRIX = T(RNG.normal(size=(3, 3)))
VECTOR = T(RNG.normal(size=3))
BATCH = T(RNG.normal(size=(2, 3, 3)))

# Name: arguments. x is a matrix of 3 x 3 unless "batch" says so.
FORMS = {
    "abs_": [],
    "addbmm_": [BATCH, BATCH],
    "addcdiv_": [MATRIX, MATRIX + 4.0],
    "addcmul_": [MATRIX, MATRIX],
    "addmm_": [MATRIX, MATRIX],
    "addr_": [VECTOR, VECTOR],
    "clip_": [-0.5, 0.5],
    "cumprod_": [0],
    "cumsum_": [1],
    "fill_diagonal_": [2.0],
    "float_power_": [2.0],
    "index_add_": [INDEX, ROWS],
    "index_copy_": [0, INDEX, ROWS],
    "index_fill_": [1, INDEX, 4.0],
    "index_put_": [[INDEX], ROWS],
    "masked_fill_": [MATRIX > 0, 2.0],
    "masked_scatter_": [MATRIX > 0, MATRIX],
    "nan_to_num_": [],
    "put_": [INDEX, VECTOR[:2]],
    "renorm_": [2.0, 0, 1.0],
    "scatter_": [T([[2, 0, 1]]), ROWS[:1], 0],
    "scatter_add_": [T([[2, 0, 1]]), ROWS[:1], 0],
    "selu_": [],
    "sgn_": [],
    "tril_": [],
    "triu_": [1],
}
KEYWORDS = {
    "scatter_reduce_": ([T([[2, 0, 1]]), ROWS[:1], 0], {"reduce": "amax"}),
    "index_reduce_": ([0, INDEX, ROWS], {"reduce": "mean"}),
    "put_along_axis_": ([T([[2, 0, 1]]), ROWS[:1], 0], {"reduce": "sum"}),
}
ALL = [(name, args, {}) for name, args in FORMS.items()] + [
    (name, *given) for name, given in KEYWORDS.items()
]


@pytest.mark.parametrize(("name", "args", "kwargs"), ALL, ids=[each[0] for each in ALL])
@pytest.mark.parametrize("strided", [False, True])
def test_the_form_equals_the_function(name, args, kwargs, strided):
    values = RNG.normal(size=(3, 6 if strided else 3))
    whole = T(values)
    x = whole[:, ::2] if strided else whole
    want = getattr(tenon, name[:-1])(x.clone(), *args, **kwargs)
    version = x.data_ptr()
    assert getattr(x, name)(*args, **kwargs) is x and x.data_ptr() == version
    np.testing.assert_allclose(x.numpy(), want.numpy())
    if strided:
        np.testing.assert_array_equal(whole.numpy()[:, 1::2], values[:, 1::2])


@pytest.mark.parametrize(("name", "args", "kwargs"), ALL, ids=[each[0] for each in ALL])
def test_gradients_are_those_of_the_function(name, args, kwargs):
    if name == "sgn_":
        pytest.skip("its gradient is zero, and it has no history")
    x = T(RNG.normal(size=(3, 3)), requires_grad=True)

    def in_place(x):
        return getattr(x * 1.5, name)(*args, **kwargs) ** 2

    def gradient(x):
        with tenon.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            return tenon.grad(in_place(x).sum(), x, create_graph=True)

    assert tenon.autograd.gradcheck(in_place, (x,))
    if name != "renorm_":
        assert tenon.autograd.gradcheck(gradient, (x,))


COMPARISONS = (
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
)


@pytest.mark.parametrize("name", COMPARISONS.split())
@pytest.mark.parametrize("dtype", ["float32", "int16", "bool"])
def test_truth_is_written_in_the_dtype(name, dtype):
    x, y = T([0.0, 1.0, 2.0, 0.0]).to(dtype), T([0.0, 1.0, 1.0, 3.0]).to(dtype)
    want = getattr(tenon, name)(x, y)
    got = getattr(x, f"{name}_")(y)
    assert got is x and x.dtype.name == dtype
    assert x.to("bool").tolist() == want.tolist()


def test_other_spellings():
    x = T([1.0, 5.0, -2.0])
    for short, long in (
        ("eq_", "equal"),
        ("lt_", "less"),
        ("ge_", "greater_equal"),
        ("ne_", "not_equal"),
    ):
        assert (
            getattr(x.clone(), short)(1.0).tolist()
            == getattr(tenon, long)(x, 1.0).to(x.dtype).tolist()
        )
    assert (
        x.clone().clamp_(0.0, 2.0).tolist() == x.clone().clip_(0.0, 2.0).tolist() == [1.0, 2.0, 0.0]
    )
    assert x.clone().clamp_min_(0.0).tolist() == [1.0, 5.0, 0.0]
    assert x.clone().clamp_max_(0.0).tolist() == [0.0, 0.0, -2.0]
    assert x.clone().true_divide_(2.0).tolist() == [0.5, 2.5, -1.0]
    rows = T([[1.0, 1.0]])
    for arguments in ((T([1]), rows, 0), (0, T([1]), rows)):  # PyTorch's order, too
        assert tenon.zeros([2, 2]).index_add_(*arguments).tolist() == [[0.0, 0.0], [1.0, 1.0]]
        assert tenon.zeros([2, 2]).scatter_add_(
            *[
                T([[1, 1]]) if isinstance(each, tenon.Tensor) and each.ndim == 1 else each
                for each in arguments
            ]
        ).tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_sums_of_narrow_integers_are_cut():
    x = T([100, 100, 100], dtype="int8")
    assert x.cumsum_().tolist() == [100, -56, 44] and x.dtype == tenon.int8


def test_refusals_leave_the_tensor():
    x = T([1.0, -2.0])
    z = T([3.0 + 4.0j])
    for call, error, message in (
        (lambda: z.abs_(), TypeError, r"abs_\(\): expected a real tensor, got a complex one"),
        (
            lambda: x.maximum_(tenon.ones([3, 2])),
            ValueError,
            r"an output of shape \(3, 2\), got \(2,\)",
        ),
        (
            lambda: T([True]).cumsum_(),
            TypeError,
            "the result is int64 and does not fit an output of dtype bool",
        ),
        (lambda: x.addcmul_(tenon.ones([3, 2]), x), ValueError, r"shape \(3, 2\)"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert x.tolist() == [1.0, -2.0] and z.tolist() == [3.0 + 4.0j]
    assert not hasattr(x, "sum_") and not hasattr(x, "sort_") and not hasattr(x, "clone_")


def test_writes_of_composites_keep_what_their_gradients_read():
    x = T([0.5, -3.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.clip_(-1.0, y.detach() + 1.0)
    (y * y).sum().backward()
    assert x.grad.tolist() == [4.0, 0.0, 16.0]
