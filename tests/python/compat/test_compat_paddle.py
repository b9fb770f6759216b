# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.paddle means what Paddle means. Expected values are those of Paddle 3.3.1."""

import inspect

import numpy as np
import pytest
import tenon
from tenon.compat import paddle
from tenon.compat.paddle import _signatures
from tenon.compat.paddle.nn.functional import _signatures as functional

M = [[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]]
T = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]
# Calls, the values of their results to six digits, and dtypes.
CALLS = [
    ("cummax(t(M))", [[3.0, 3.0, 3.0, 3.0, 4.0, 4.0], [0, 0, 0, 0, 4, 4]], "float32 int64"),
    (
        'cummax(t(M), 1, "int32")',
        [[[3.0, 3.0, 3.0], [0.5, 4.0, 4.0]], [[0, 0, 0], [0, 1, 1]]],
        "float32 int32",
    ),
    ("cummin(t(M))", [[3.0, -1.0, -1.0, -1.0, -1.0, -2.0], [0, 1, 1, 1, 1, 5]], "float32 int64"),
    ("logcumsumexp(t(M))", [[3.0, 3.01815, 3.32656, 3.38409, 4.43188, 4.43349]], "float32"),
    ("diagonal(t(T), offset=1, axis1=1, axis2=2)", [[[2.0], [6.0]]], "float32"),
    ("trace(t(T), 0, 1, 2)", [[5.0, 13.0]], "float32"),
    ("norm(t(M), p=1, axis=[0, 1])", [5.0], "float32"),
    ('norm(t(M), "fro")', [5.85235], "float32"),
    ("norm(t(M), 1)", [12.5], "float32"),
    ("norm(t(T), 2, [1, 2], True)", [[[[5.46499]], [[13.19]]]], "float32"),
    ('linalg.norm(t(M), float("inf"), 1)', [[3.0, 4.0]], "float32"),
    ('linalg.norm(t(M), "nuc", [0, 1])', [8.08174], "float32"),
    ("put_along_axis(t(M), t([[0]]), 1.0, 0)", [[[1.0, 1.0, 1.0], [0.5, 4.0, -2.0]]], "float32"),
    (
        'put_along_axis(t(M), t([[0, 1, 0]]), 2.0, 0, "mul")',
        [[[6.0, -1.0, 4.0], [0.5, 8.0, -2.0]]],
        "float32",
    ),
    (
        'put_along_axis(t(M), t([[0, 1, 0]]), 2.0, 0, "mean", False)',
        [[[2.0, -1.0, 2.0], [0.5, 2.0, -2.0]]],
        "float32",
    ),
    ("take_along_axis(t(M), t([[0]]), 1)", [[[3.0], [0.5]]], "float32"),
    ("reshape(t(T), [0, -1])", [[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]], "float32"),
    ("reshape(t(M), [-1, 0])", [[[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]]], "float32"),
    (
        "unique(t([[3, 1], [1, 2]]), True, True, True)",
        [[1, 2, 3], [1, 3, 0], [2, 0, 0, 1], [2, 1, 1]],
        "int64 int64 int64 int64",
    ),
    (
        'unique(t([[3, 1], [1, 2]]), dtype="int32", return_inverse=True)',
        [[1, 2, 3], [2, 0, 0, 1]],
        "int64 int32",
    ),
    (
        'unique_consecutive(t([1, 1, 2, 1]), True, True, None, "int32")',
        [[1, 2, 1], [0, 0, 1, 2], [2, 1, 1]],
        "int64 int32 int32",
    ),
    ("diag(t([1.0, 2.0]), 1, 9)", [[[9.0, 1.0, 9.0], [9.0, 9.0, 2.0], [9.0, 9.0, 9.0]]], "float32"),
    ("diff(t(M), 1, 1, t([[0.0], [0.0]]))", [[[3.0, -4.0, 3.0], [0.5, 3.5, -6.0]]], "float32"),
    ("diff(t([1.0, 4.0, 9.0, 16.0]), n=2)", [[2.0, 2.0]], "float32"),
    ("quantile(t(M), [0.25, 0.5], 1)", [[[0.5, -0.75], [2.0, 0.5]]], "float32"),
    ("nanquantile(t(M), 0.5)", [1.25], "float32"),
    ("median(t(M), 1, True)", [[[2.0], [0.5]]], "float32"),
    ("view(t(M), [3, 2])", [[[3.0, -1.0], [2.0, 0.5], [4.0, -2.0]]], "float32"),
    ('view(t([1.0]), "int32")', [[1065353216]], "int32"),
    ("unstack(t(M), 1)", [[3.0, 0.5], [-1.0, 4.0], [2.0, -2.0]], "float32 float32 float32"),
    ("rot90(t(M), 1, [1, 0])", [[[0.5, 3.0], [4.0, -1.0], [-2.0, 2.0]]], "float32"),
    (
        "moveaxis(t(T), source=0, destination=2)",
        [[[[1.0, 5.0], [2.0, 6.0]], [[3.0, 7.0], [4.0, 8.0]]]],
        "float32",
    ),
    (
        "renorm(t(M), 2.0, 0, max_norm=1.0)",
        [[[0.801784, -0.267261, 0.534522], [0.111111, 0.888889, -0.444444]]],
        "float32",
    ),
    ("shard_index(t([[1], [12]]), 20, 2, 1, ignore_value=-1)", [[[-1], [2]]], "int64"),
    ("kthvalue(t(M), 2)", [[2.0, 0.5], [2, 0]], "float32 int64"),
    ("cross(t([[1.0, 2.0, 3.0]]), t([[0.0, 1.0, 0.0]]))", [[[-3.0, 0.0, 1.0]]], "float32"),
    ("trapezoid(t(M), dx=2.0)", [[3.0, 6.5]], "float32"),
    ("bucketize(t(M), t([-1.0, 1.0]), True)", [[[2, 0, 2], [1, 2, 0]]], "int32"),
    ("std(t(M), 1, False)", [[1.69967, 2.4608]], "float32"),
    ("var(t(M), 1, correction=0)", [[2.88889, 6.05556]], "float32"),
    ("full([2], 3)", [[3.0, 3.0]], "float32"),
    ("full([2], True)", [[True, True]], "bool"),
    ("shape(t(T))", [[2, 2, 2]], "int64"),
    (
        "slice_scatter(t(M), t([[9.0], [9.0]]), [1], [1], [2], [1])",
        [[[3.0, 9.0, 2.0], [0.5, 9.0, -2.0]]],
        "float32",
    ),
    ("index_fill(t(M), t([0]), 1, 5.0)", [[[5.0, -1.0, 2.0], [5.0, 4.0, -2.0]]], "float32"),
    ('tril_indices(2, 2, 0, "int32")', [[[0, 1, 1], [0, 0, 1]]], "int32"),
    ("round(t([1.25, 2.345]), 1)", [[1.2, 2.3]], "float32"),
    ('divide(t([7, -7]), t([2, 2]), rounding_mode="trunc")', [[3, -3]], "int64"),
    ("add(t([1.0]), t([2.0]), alpha=3)", [[7.0]], "float32"),
    ("linalg.slogdet(t([[2.0, 0.0], [0.0, 3.0]]))", [[1.0, 1.79176]], "float32"),
    (
        "linalg.solve(t([[2.0, 0.0], [1.0, 3.0]]), t([[2.0, 4.0]]), False)",
        [[[0.333333, 1.33333]]],
        "float32",
    ),
    (
        "linalg.lu(t([[1.0, 2.0], [3.0, 4.0]]))",
        [[[3.0, 4.0], [0.333333, 0.666667]], [2, 2]],
        "float32 int32",
    ),
    ("linalg.matrix_rank(t([[1.0, 2.0], [2.0, 4.0]]))", [1], "int64"),
    (
        "linalg.cov(t(M), False)",
        [[[3.125, -6.25, 5.0], [-6.25, 12.5, -10.0], [5.0, -10.0, 8.0]]],
        "float32",
    ),
    (
        'fft.fft(t([1.0, 2.0, 3.0]), norm="ortho")',
        [[(3.4641 + 0j), (-0.86603 + 0.5j), (-0.86603 - 0.5j)]],
        "complex64",
    ),
    (
        "nn.functional.linear(t(M), t([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]), t([0.5, 1.0]))",
        [[[1.5, 7.0], [9.0, -5.0]]],
        "float32",
    ),
    (
        "nn.functional.linear(t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 2.0], [3.0, 4.0]]))",
        [[[7.0, 10.0], [15.0, 22.0]]],
        "float32",
    ),
    (
        "nn.functional.avg_pool2d(t([[[[1.0, 1.0], [1.0, 1.0]]]]), 3, 1, 1)",
        [[[[[1.0, 1.0], [1.0, 1.0]]]]],
        "float32",
    ),
    (
        "nn.functional.avg_pool2d(t([[[[1.0, 1.0], [1.0, 1.0]]]]), 3, 1, 1, exclusive=False)",
        [[[[[0.444444, 0.444444], [0.444444, 0.444444]]]]],
        "float32",
    ),
    (
        "nn.functional.avg_pool1d(t([[[1.0, 2.0, 3.0]]]), 2, 2, 0, True, True)",
        [[[[1.5, 3.0]]]],
        "float32",
    ),
    (
        "nn.functional.max_pool2d(t([[[[1.0, 4.0], [3.0, 2.0]]]]), 2, return_mask=True)",
        [[[[[4.0]]]], [[[[1]]]]],
        "float32 int32",
    ),
    (
        "nn.functional.batch_norm(t([[1.0], [3.0]]), t([0.0]), t([1.0]), training=True)",
        [[[-0.999995], [0.999995]]],
        "float32",
    ),
    ("nn.functional.smooth_l1_loss(t([0.0, 3.0]), t([0.5, 0.0]), delta=2.0)", [2.0625], "float32"),
    (
        'nn.functional.smooth_l1_loss(t([0.0, 3.0]), t([0.5, 0.0]), "sum", 2.0, False)',
        [2.0625],
        "float32",
    ),
    (
        "nn.functional.layer_norm(t(M), 3)",
        [[[0.980579, -1.37281, 0.392232], [-0.135457, 1.28684, -1.15138]]],
        "float32",
    ),
    (
        'nn.functional.conv2d(t([[[[1.0, 2.0], [3.0, 4.0]]]]), t([[[[1.0, 1.0], [1.0, 1.0]]]]), padding="SAME")',
        [[[[[10.0, 6.0], [7.0, 4.0]]]]],
        "float32",
    ),
    (
        'nn.functional.conv2d(t([[[[1.0], [2.0]], [[3.0], [4.0]]]]), t([[[[1.0]]]]), padding=[1, 0, 0, 0], data_format="NHWC")',
        [[[[[0.0], [0.0]], [[1.0], [2.0]], [[3.0], [4.0]]]]],
        "float32",
    ),
    (
        "nn.functional.conv2d_transpose(t([[[[1.0, 2.0]]]]), t([[[[1.0, 1.0]]]]), stride=2, output_size=[1, 4])",
        [[[[[1.0, 1.0, 2.0, 2.0]]]]],
        "float32",
    ),
    ("nn.functional.cross_entropy(t(M), t([[2], [0]]))", [2.42936], "float32"),
    (
        'nn.functional.cross_entropy(t(M), t([[2], [0]]), reduction="none")',
        [[[1.32656], [3.53215]]],
        "float32",
    ),
    ("nn.functional.cross_entropy(t(M), t([2, 0]), t([1.0, 2.0, 3.0]), 0)", [1.32656], "float32"),
    ("nn.functional.cross_entropy(t(M), t([2, 0]), label_smoothing=0.1)", [2.44602], "float32"),
    ("nn.functional.softplus(t([1.0, 3.0]), 2, 4)", [[1.06346, 3.0]], "float32"),
    (
        "nn.functional.prelu(t([[[-1.0, -1.0], [-2.0, 2.0]]]), t([0.5, 0.1]))",
        [[[[-0.5, -0.5], [-0.2, 2.0]]]],
        "float32",
    ),
    (
        'nn.functional.prelu(t([[[-1.0, -1.0], [-2.0, 2.0]]]), t([0.5, 0.1]), "NLC")',
        [[[[-0.5, -0.1], [-1.0, 2.0]]]],
        "float32",
    ),
    (
        "nn.functional.embedding(t([0, 1]), t([[1.0, 2.0], [3.0, 4.0]]), padding_idx=-1)",
        [[[1.0, 2.0], [0.0, 0.0]]],
        "float32",
    ),
    ("nn.functional.one_hot(t([0, 2]), 3)", [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]], "float32"),
    ("nn.functional.hardshrink(t([0.5, -0.5, 0.4]))", [[0.5, -0.5, 0.0]], "float32"),
    ("nn.functional.hardsigmoid(t([1.0]), 0.2, 0.5)", [[0.7]], "float32"),
    (
        "nn.functional.pad(t([[1.0, 2.0]]), [1, 0, 0, 2])",
        [[[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]]],
        "float32",
    ),
    (
        'nn.functional.pad(t([[[1.0, 2.0, 3.0]]]), [1, 2], "reflect")',
        [[[[2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]]],
        "float32",
    ),
    ("nn.functional.normalize(t([[3.0, 4.0]]))", [[[0.6, 0.8]]], "float32"),
    (
        'nn.functional.ctc_loss(t([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]]), t([[1]], "int32"), t([2]), t([1]))',
        [1.24089],
        "float32",
    ),
    (
        "nn.functional.scaled_dot_product_attention(t([[[[1.0]], [[2.0]]]]), t([[[[1.0]], [[0.0]]]]), t([[[[5.0]], [[7.0]]]]))",
        [[[[[5.53788]], [[5.23841]]]]],
        "float32",
    ),
    (
        "nn.functional.grid_sample(t([[[[1.0, 2.0], [3.0, 4.0]]]]), t([[[[-1.0, -1.0], [1.0, 0.0]]]]))",
        [[[[[1.0, 3.0]]]]],
        "float32",
    ),
    (
        'nn.functional.kl_div(t([[0.0, -1.0]]), t([[0.5, 0.5]]), "batchmean")',
        [-0.193147],
        "float32",
    ),
]


def t(values, dtype=None):
    return paddle.to_tensor(values, dtype=dtype)


class Names(dict):
    def __missing__(self, name):
        if name in ("t", "M", "T"):
            return globals()[name]
        if name == "float":
            raise KeyError(name)
        return getattr(paddle, name)


@pytest.mark.parametrize("call, values, dtypes", CALLS, ids=[each[0] for each in CALLS])
def test_call(call, values, dtypes):
    found = eval(call, {"float": float}, Names())
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    assert [each.dtype.name for each in found] == dtypes.split()
    for got, want in zip(found, values, strict=True):
        assert got.numpy().shape == np.shape(want)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)  # six digits


def test_keywords_of_all_and_labels():
    x = t(M)
    assert paddle.sum(input=x, dim=1, keepdim=True, name="label").shape == (2, 1)
    with pytest.raises(TypeError, match="expected one value for 'x', got two; 'input' is another"):
        paddle.sum(x=x, input=x)
    out = paddle.zeros([2])
    assert paddle.sum(x, 1, out=out) is out and out.tolist() == [4.0, 2.5]


def test_running_statistics_keep_momentum():
    mean, variance = t([0.0]), t([1.0])
    paddle.nn.functional.batch_norm(t([[1.0], [3.0]]), mean, variance, training=True)
    np.testing.assert_allclose([mean.item(), variance.item()], [0.2, 1.0], rtol=1e-6)
    layer = paddle.nn.BatchNorm1D(1, momentum=0.5)
    layer(t([[1.0], [3.0]]))
    assert layer._mean.tolist() == [1.0] and layer._variance.tolist() == [1.0]
    layer.eval()
    assert sorted(layer.state_dict()) == ["_mean", "_variance", "bias", "weight"]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: paddle.pdist(t(M), compute_mode="bogus"), "unknown keyword"),
        (lambda: paddle.cdist(t(M), t(M), compute_mode="bogus"), "expected compute_mode of"),
        (lambda: paddle.shard_index(t([1, 2]), 20, 2, 0), "expected indices of shape \\[..., 1\\]"),
        (lambda: paddle.shard_index(t([[1]] * 2), 20, 2, 2), "expected a shard_id from 0 to 1"),
        (lambda: paddle.median(t(M), mode="min"), "expected mode 'avg', got 'min'"),
        (lambda: paddle.unique(t([1]), dtype="int8"), "expected dtype int32 or int64"),
        (lambda: paddle.cummax(t(M), 0, "float32"), "expected dtype int32 or int64"),
        (lambda: paddle.var(t([1, 2])), "expected a tensor of floats, got int64"),
        (lambda: paddle.crop(t(M), [3, 3]), "expected a part of shape"),
        (lambda: paddle.reshape(t([1.0]), [1, 0]), "expected 0 for an axis of x"),
        (lambda: paddle.sort(t(M), stable="yes"), "expected True or False for 'stable', got 'yes'"),
        (lambda: paddle.uniform([2], seed=3), "expected seed=0"),
        (lambda: paddle.linalg.lstsq(t(M), t(M), driver="bogus"), "expected driver 'gels'"),
        (lambda: paddle.linalg.lu(t(M), False), "expected pivot=True"),
        (lambda: paddle.nn.functional.layer_norm(t(M), 2), "expected the last axes of x"),
        (lambda: paddle.nn.functional.relu(t(M), inplace=True), "unknown keyword"),
        (lambda: paddle.nn.functional.kl_div(t(M), t(M), "bogus"), "expected reduction 'mean'"),
        (
            lambda: paddle.nn.functional.cross_entropy(t(M), t([3, 0])),
            "expected labels from 0 to 2, or -100",
        ),
        (
            lambda: paddle.nn.functional.conv2d(t([[T[0]]]), t([[T[0]]]), padding="bogus"),
            "'SAME' or 'VALID', got 'bogus'",
        ),
        (
            lambda: paddle.nn.functional.interpolate(t([[T[0]]]), 4, mode="bilinear", align_mode=1),
            "expected align_mode=0, got 1",
        ),
        (lambda: paddle.nn.functional.embedding(t([0]), t(M), 2), "expected padding_idx from -2"),
        (
            lambda: paddle.nn.Linear(2, 3, weight_attr="x"),
            "expected attr None, False, a ParamAttr or a function",
        ),
    ],
)
def test_what_is_refused(call, text):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=text):
        call()


def test_what_is_not_there_names_what_tenon_has():
    with pytest.raises(AttributeError, match="tenon.nn.MultiheadAttention has Tenon's meaning"):
        paddle.nn.MultiHeadAttention
    with pytest.raises(AttributeError, match="tenon.nn.functional.embedding_bag has Tenon's"):
        paddle.nn.functional.embedding_bag
    with pytest.raises(AttributeError, match="does not cover paddle.distribution"):
        paddle.distribution
    for name in ("linalg", "fft", "nn", "signal"):
        assert getattr(paddle, name) is not getattr(tenon, name)


def test_every_function_has_a_signature():
    spaces = {
        "": (_signatures.FUNCTIONS, OF_TENON),
        "linalg": (_signatures.LINALG, ()),
        "fft": (_signatures.FFT, ()),
        "signal": (_signatures.SIGNAL, ()),
        "nn.functional": (functional.FUNCTIONS, ()),
    }
    for space, (table, others) in spaces.items():
        place = paddle
        for part in filter(None, space.split(".")):
            place = getattr(place, part)
        for name in dir(place):
            if inspect.isfunction(getattr(place, name)) and name not in others:
                assert name in table, (space, name)


# Functions about dtypes, devices and recording that are Tenon's own, and `permute`, which takes its axes
# one by one or as a list.
OF_TENON = set(
    """broadcast_shapes finfo iinfo get_default_dtype set_default_dtype set_grad_enabled is_grad_enabled
    enable_grad no_grad get_rng_state set_rng_state device_plugins get_include get_lib kernel_table load_all
    load_device_plugin permute""".split()
)


def test_a_model_trains():
    tenon.manual_seed(0)
    nn = paddle.nn
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    assert tuple(model[0].weight.shape) == (2, 8) and model[0].bias.tolist() == [0.0] * 8
    assert nn.Linear(2, 3, bias_attr=False).bias is None
    optimizer = tenon.optim.Adam(model.parameters(), lr=0.05)
    x = paddle.randn([64, 2])
    first = None
    for _ in range(60):
        loss = nn.MSELoss()(model(x), x.sum(axis=1, keepdim=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        first = loss.item() if first is None else first
    assert loss.item() < first / 20
    assert [name for name, _ in model.named_sublayers()] == ["0", "1", "2"]
    assert len(nn.LayerList([nn.Linear(1, 1)] * 2)) == 2


def test_gradients():
    x = paddle.to_tensor([[1.0, 2.0]], stop_gradient=False)
    weight = paddle.to_tensor([[1.0], [3.0]], stop_gradient=False)
    loss = paddle.nn.functional.linear(x, weight).sum()
    found = paddle.grad(loss, [x, weight])
    assert isinstance(found, list)
    assert [each.tolist() for each in found] == [[[1.0, 3.0]], [[1.0], [2.0]]]


def test_negative_log_likelihood():
    x, labels = t([[-1.0, -2.0], [-3.0, -0.5]]), t([1, 0])
    loss = paddle.nn.functional.nll_loss
    assert loss(x, labels).item() == 2.5
    assert loss(x, labels, ignore_index=0).item() == 2.0
    assert loss(x, labels, t([1.0, 3.0])).item() == 2.25
    assert loss(x, labels, reduction="none").tolist() == [2.0, 3.0]


def test_factors_of_lu():
    a = t([[1.0, 2.0], [3.0, 4.0]])
    p, lower, upper = paddle.linalg.lu_unpack(*paddle.linalg.lu(a))
    np.testing.assert_allclose((p @ lower @ upper).numpy(), a.numpy(), rtol=1e-6)


def test_functions_in_place():
    x = t([-1.0, 2.0])
    assert paddle.nn.functional.relu_(x) is x and x.tolist() == [0.0, 2.0]
    with pytest.raises(TypeError, match="expected dtype float32, got float64"):
        paddle.nn.functional.softmax_(x, dtype="float64")


def test_dropout_of_axes():
    tenon.manual_seed(0)
    x = paddle.ones([200, 3])
    made = paddle.nn.functional.dropout(x, 0.5, axis=0).numpy()
    assert set(np.unique(made)) == {0.0, 2.0} and (made == made[:, :1]).all()
    kept = paddle.nn.functional.dropout(x, 0.5, mode="downscale_in_infer").numpy()
    assert set(np.unique(kept)) == {0.0, 1.0}
