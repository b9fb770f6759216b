# SPDX-License-Identifier: Apache-2.0
"""Norms, tables and initial values beside their definitions in NumPy: modes, defaults, refusals."""

import math

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn import functional as F

T = tenon.tensor
rng = np.random.default_rng(0)


def random(*shape):
    return rng.standard_normal(shape)


def close(got, want, tolerance=1e-9):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


# -- normalisation and tables ----------------------------------------------------------------------


def normalized(x, axes, eps=1e-5):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def test_running_statistics_of_every_mode():
    x = random(4, 3, 5)
    options = {"dtype": tenon.float64}
    for layer, axes in (
        (nn.BatchNorm1d(3, **options), (0, 2)),
        (nn.InstanceNorm1d(3, track_running_stats=True, **options), (2,)),
    ):
        close(layer(T(x)), normalized(x, axes))
        mean = x.mean(axes).reshape(-1, 3).mean(0)
        var = x.var(axes, ddof=1).reshape(-1, 3).mean(0)
        close(layer.running_mean, 0.1 * mean)
        close(layer.running_var, 0.9 + 0.1 * var)
        before = (layer.running_mean.tolist(), layer.running_var.tolist())
        layer.eval()
        shape = (1, 3, 1)
        want = (x - 0.1 * mean.reshape(shape)) / np.sqrt(0.9 + 0.1 * var.reshape(shape) + 1e-5)
        close(layer(T(x)), want)
        assert (layer.running_mean.tolist(), layer.running_var.tolist()) == before
        layer.reset_running_stats()
        assert layer.running_mean.tolist() == [0.0] * 3 and layer.running_var.tolist() == [1.0] * 3
        assert layer.num_batches_tracked.item() == 0
    for layer, axes in (
        (nn.BatchNorm1d(3, track_running_stats=False), (0, 2)),
        (nn.InstanceNorm1d(3), (2,)),
    ):
        for _ in range(2):
            close(layer(T(x.astype("float32"))), normalized(x, axes), 1e-5)
            layer.eval()
        layer.reset_running_stats()
        assert layer.running_mean is None
    counted = nn.BatchNorm1d(3, momentum=None, **options)
    counted(T(x))
    counted(T(x + 3))
    close(counted.running_mean, x.mean((0, 2)) + 1.5)
    assert counted.num_batches_tracked.item() == 2
    with tenon.no_grad():
        counted.weight.fill_(3.0)
        counted.bias.fill_(3.0)
    counted.reset_parameters()
    assert counted.weight.tolist() == [1.0] * 3 and counted.bias.tolist() == [0.0] * 3
    assert counted.num_batches_tracked.item() == 0
    # Switched off later, they are neither used in training nor moved.
    for layer in (nn.InstanceNorm1d(3, track_running_stats=True), nn.BatchNorm1d(3)):
        layer.track_running_stats = False
        layer(T(x.astype("float32")))
        assert layer.running_mean.tolist() == [0.0] * 3 and layer.running_var.tolist() == [1.0] * 3
    single = nn.InstanceNorm2d(3)(T(random(3, 4, 4).astype("float32")))
    assert single.shape == (3, 4, 4)


def test_norms_refuse_other_shapes():
    for make, shape, text in (
        (
            lambda: nn.BatchNorm1d(3),
            (4, 2),
            "BatchNorm1d: expected 2 or 3 axes with 3 channels in the",
        ),
        (lambda: nn.BatchNorm1d(3), (4, 3, 2, 2), r"got shape \(4, 3, 2, 2\)"),
        (lambda: nn.BatchNorm2d(3), (4, 3, 2), "BatchNorm2d: expected 4 axes with 3 channels"),
        (lambda: nn.BatchNorm3d(3), (4, 3, 2, 2), "BatchNorm3d: expected 5 axes"),
        (lambda: nn.BatchNorm1d(3), (1, 3), "expected more than one value per channel in training"),
        (
            lambda: nn.InstanceNorm1d(3),
            (4, 3, 2, 2),
            "InstanceNorm1d: expected 2 or 3 axes, got shape",
        ),
        (
            lambda: nn.InstanceNorm1d(3),
            (4, 2, 5),
            r"InstanceNorm1d: expected 3 channels, got shape",
        ),
        (lambda: nn.InstanceNorm1d(3), (4, 3, 1), "expected more than one value per channel of a"),
        (lambda: nn.LayerNorm(3), (4, 2), r"layer_norm: expected the last axes of x to be \(3,\)"),
        (lambda: nn.RMSNorm(3), (4, 2), r"RMSNorm: expected the last axes to be \(3,\), got shape"),
        (
            lambda: nn.GroupNorm(2, 3),
            (1, 3),
            "expected num_channels divisible by num_groups 2, got 3",
        ),
        (
            lambda: nn.LocalResponseNorm(2),
            (4, 3),
            "local_response_norm: expected three axes or more",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            make()(tenon.ones(*shape))
    with pytest.raises(ValueError, match="expected running statistics if use_input_stats=False"):
        F.instance_norm(tenon.ones(1, 2, 3), use_input_stats=False)


def test_norms_of_last_axes_and_neighbours():
    x = random(2, 5, 3, 4)
    for shape in (4, (4,), (3, 4)):
        axes = (3,) if shape != (3, 4) else (2, 3)
        layer = nn.LayerNorm(shape, dtype=tenon.float64)
        assert layer.weight.shape == (shape if isinstance(shape, tuple) else (shape,))
        close(layer(T(x)), normalized(x, axes))
        root = nn.RMSNorm(shape, 1e-3, dtype=tenon.float64)
        close(root(T(x)), x / np.sqrt((x**2).mean(axes, keepdims=True) + 1e-3))
    for size in (1, 2, 3, 4):
        before, after = size // 2, (size - 1) // 2
        squares = np.pad(x**2, [(0, 0), (before, after), (0, 0), (0, 0)])
        mean = sum(squares[:, i : i + 5] for i in range(size)) / size
        close(F.local_response_norm(T(x), size, 0.5, 0.6, 2.0), x / (mean * 0.5 + 2.0) ** 0.6)
        close(F.local_response_norm(T(x), size), x / (mean * 1e-4 + 1.0) ** 0.75)
    groups = normalized(x.reshape(2, 5, -1), (2,)).reshape(x.shape)
    close(nn.GroupNorm(5, 5, dtype=tenon.float64)(T(x)), groups)


def test_tables_of_vectors():
    with pytest.raises(
        ValueError, match="EmbeddingBag: expected mode 'sum', 'mean' or 'max', got 'm"
    ):
        nn.EmbeddingBag(3, 2, mode="min")
    for make in (nn.Embedding, nn.EmbeddingBag):
        layer = make(5, 3, padding_idx=-2)
        assert layer.padding_idx == 3 and layer.weight[3].tolist() == [0.0] * 3
        assert (layer.weight[:3] != 0).all().item()
        with tenon.no_grad():
            layer.weight.fill_(7.0)
        layer.reset_parameters()
        assert layer.weight[3].tolist() == [0.0] * 3 and layer.weight[0, 0].item() != 7
        for wrong in (5, -6):
            with pytest.raises(ValueError, match=rf"expected padding_idx in \[0, 5\), got {wrong}"):
                make(5, 3, padding_idx=wrong)
        with pytest.raises(ValueError, match=r"expected _weight of shape \[5, 3\], got \[5, 2\]"):
            make(5, 3, _weight=tenon.ones(5, 2))
        limited = make(
            4, 2, max_norm=1.0, _weight=T([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0], [0.0, 0.0]])
        )
        limited(T([[0, 1], [3, 3]]))
        close(limited.weight, [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0], [0.0, 0.0]], 1e-6)
        by_sum = make(2, 2, max_norm=1.0, norm_type=1.0, _weight=T([[3.0, 1.0], [1.0, 1.0]]))
        by_sum(T([[0, 0]]))
        close(by_sum.weight, [[0.75, 0.25], [1.0, 1.0]], 1e-6)
        unlimited = make(2, 2, _weight=T([[3.0, 4.0], [1.0, 1.0]]))
        unlimited(T([[0, 1]]))
        assert unlimited.weight.tolist() == [[3.0, 4.0], [1.0, 1.0]]
    frozen = nn.Embedding.from_pretrained(tenon.ones(3, 2))
    assert not frozen.weight.requires_grad and frozen.num_embeddings == 3
    assert nn.Embedding.from_pretrained(tenon.ones(3, 2), freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match="expected scale_grad_by_freq with mode 'sum' or 'mean'"):
        nn.EmbeddingBag(3, 2, mode="max", scale_grad_by_freq=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_beside_a_loop(mode):
    weight = random(6, 3)
    indices = np.array([0, 2, 2, 5, 1, 1, 4])
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    zero = np.zeros(3)

    def bags(bounds, skip=None):
        parts = [[i for i in indices[a:b] if i != skip] for a, b in bounds]
        return [reduce(weight[part], 0) if len(part) else zero for part in parts]

    call = lambda offsets, **more: F.embedding_bag(T(indices), T(weight), T(offsets), mode, **more)
    close(call([0, 3, 3, 5]), bags([(0, 3), (3, 3), (3, 5), (5, 7)]))
    close(call([0, 3, 5], include_last_offset=True), bags([(0, 3), (3, 5)]))
    for skip in (0, 1, 2, 5):
        close(call([0, 3], padding_idx=skip), bags([(0, 3), (3, 7)], skip))
    close(call([0, 3], padding_idx=-4), bags([(0, 3), (3, 7)], 2))
    rows = F.embedding_bag(T(indices[:6].reshape(2, 3)), T(weight), mode=mode)
    close(rows, bags([(0, 3), (3, 6)]))
    if mode == "mean":
        close(F.embedding_bag(T(indices[:6].reshape(2, 3)), T(weight)), rows.numpy())
    for options, text in (
        ((T(indices), T(weight), None, mode), "expected offsets with indices of one axis"),
        ((T([[1]]), T(weight), T([0]), mode), "expected no offsets with indices of two axes"),
        ((T(indices), T(weight), T([0]), "min"), "expected mode 'sum', 'mean' or 'max', got 'min'"),
        (
            (T(indices), T(weight), T([[0]]), mode),
            r"expected offsets of one axis, got shape \(1, 1\)",
        ),
        (
            (T(indices), T(weight), T([1, 2]), mode),
            "expected ascending offsets from 0 to at most the 7",
        ),
        ((T(indices), T(weight), T([0, 8]), mode), "expected ascending offsets from 0"),
        ((T(indices), T(weight), T([0, 3, 2]), mode), "got 2 at position 2"),
    ):
        with pytest.raises(ValueError, match=text):
            F.embedding_bag(*options)
    with pytest.raises(
        IndexError, match="embedding_bag: expected padding_idx within 6 rows, got 6"
    ):
        call([0], padding_idx=6)
    with pytest.raises(ValueError, match="expected at least one offset of one axis, got shape"):
        F.embedding_bag(
            T(indices), T(weight), tenon.zeros([0], dtype=tenon.int64), mode, None, True
        )
    scale = random(7)
    if mode == "sum":
        got = call([0, 3], per_sample_weights=T(scale))
        scaled = weight[indices] * scale[:, None]
        close(got, [scaled[:3].sum(0), scaled[3:].sum(0)])
        with pytest.raises(
            ValueError, match=r"per_sample_weights of the shape \(7,\) of the indices"
        ):
            call([0], per_sample_weights=T(scale[:3]))
    else:
        with pytest.raises(ValueError, match=f"per_sample_weights need mode 'sum', got '{mode}'"):
            call([0], per_sample_weights=T(scale))


# -- initial values --------------------------------------------------------------------------------


def test_initial_values_have_their_bounds():
    tenon.manual_seed(0)
    weight = tenon.empty(200, 300)
    for fill, bound in (
        (nn.init.xavier_uniform_, math.sqrt(6 / 500)),
        (lambda w: nn.init.xavier_uniform_(w, 2.0), 2 * math.sqrt(6 / 500)),
        (nn.init.kaiming_uniform_, math.sqrt(6 / 300)),
        (lambda w: nn.init.kaiming_uniform_(w, 1.0), math.sqrt(3 / 300)),
        (lambda w: nn.init.kaiming_uniform_(w, mode="fan_out"), math.sqrt(6 / 200)),
        (lambda w: nn.init.kaiming_uniform_(w, nonlinearity="linear"), math.sqrt(3 / 300)),
        (lambda w: nn.init.uniform_(w, -3.0, 3.0), 3.0),
    ):
        assert fill(weight) is weight
        largest = abs(weight).max().item()
        assert 0.99 * bound < largest <= bound and weight.min().item() < -0.98 * bound
    for fill, std in (
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (nn.init.kaiming_normal_, math.sqrt(2 / 300)),
        (lambda w: nn.init.kaiming_normal_(w, mode="fan_out"), math.sqrt(2 / 200)),
        (lambda w: nn.init.normal_(w, 0.0, 2.0), 2.0),
    ):
        assert fill(weight) is weight and abs(weight.std().item() / std - 1) < 0.02
        assert abs(weight.mean().item()) < 0.05 * std
    assert abs(nn.init.normal_(weight, 5.0).mean().item() - 5) < 0.05
    cut = nn.init.trunc_normal_(weight, 1.0, 2.0, 0.5, 1.5)
    assert cut.min().item() >= 0.5 and cut.max().item() <= 1.5 and cut.std().item() < 0.3
    assert tenon.unique_values(weight).shape[0] > 50000  # none was moved to a bound


def test_layers_begin_within_their_bounds():
    tenon.manual_seed(0)
    for layer, bound in (
        (nn.Linear(100, 50), 0.1),
        (nn.Bilinear(25, 4, 50), 0.2),
        (nn.Conv1d(25, 50, 4), 0.1),
    ):
        for each in (layer.weight, layer.bias):
            assert 0.9 * bound < abs(each).max().item() <= bound and each.min().item() < 0
            with tenon.no_grad():
                each.fill_(9.0)
        layer.reset_parameters()
        assert abs(layer.weight).max().item() <= bound and abs(layer.bias).max().item() <= bound
    assert nn.Linear(3, 2, bias=False).bias is None is nn.Bilinear(3, 3, 2, bias=False).bias
    assert nn.Linear(0, 2).bias.tolist() == [0.0, 0.0]


LAYERS = [
    lambda **o: nn.Linear(2, 3, **o),
    lambda **o: nn.Bilinear(2, 3, 2, **o),
    lambda **o: nn.Conv1d(2, 2, 1, **o),
    lambda **o: nn.Conv2d(2, 2, 1, **o),
    lambda **o: nn.Conv3d(2, 2, 1, **o),
    lambda **o: nn.ConvTranspose1d(2, 2, 1, **o),
    lambda **o: nn.ConvTranspose2d(2, 2, 1, **o),
    lambda **o: nn.ConvTranspose3d(2, 2, 1, **o),
    lambda **o: nn.BatchNorm1d(2, **o),
    lambda **o: nn.BatchNorm2d(2, **o),
    lambda **o: nn.InstanceNorm1d(2, affine=True, track_running_stats=True, **o),
    lambda **o: nn.LayerNorm(2, **o),
    lambda **o: nn.GroupNorm(1, 2, **o),
    lambda **o: nn.RMSNorm(2, **o),
    lambda **o: nn.PReLU(2, **o),
    lambda **o: nn.Embedding(2, 3, **o),
    lambda **o: nn.EmbeddingBag(2, 3, **o),
    lambda **o: nn.RNN(2, 3, **o),
    lambda **o: nn.GRU(2, 3, **o),
    lambda **o: nn.LSTM(2, 3, **o),
    lambda **o: nn.RNNCell(2, 3, **o),
    lambda **o: nn.GRUCell(2, 3, **o),
    lambda **o: nn.LSTMCell(2, 3, **o),
    lambda **o: nn.MultiheadAttention(4, 2, kdim=3, vdim=2, add_bias_kv=True, **o),
    lambda **o: nn.TransformerEncoderLayer(4, 2, 3, **o),
    lambda **o: nn.TransformerDecoderLayer(4, 2, 3, **o),
]


@pytest.mark.parametrize("make", LAYERS, ids=lambda make: type(make()).__name__)
def test_parameters_are_of_the_dtype_that_is_asked_for(make):
    for dtype in (tenon.float64, tenon.bfloat16):
        layer = make(dtype=dtype, device="cpu")
        tensors = [*layer.parameters(), *layer.buffers()]
        assert {t.dtype for t in tensors if t.dtype.is_floating_point} == {dtype}
        assert {t.device.type for t in tensors} == {"cpu"}
    tensors = [*make().parameters(), *make().buffers()]
    assert {t.dtype for t in tensors if t.dtype.is_floating_point} == {tenon.float32}
    assert {t.device.type for t in make(device="meta").parameters()} == {"meta"}


def test_matrices_of_initial_values():
    for shape in ((40, 70), (70, 40), (3, 2, 2), (1, 1)):
        weight = nn.init.orthogonal_(tenon.empty(*shape, dtype=tenon.float64), 2.0)
        matrix = weight.numpy().reshape(shape[0], -1)
        product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
        np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)
    assert nn.init.orthogonal_(tenon.empty(0, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match=r"orthogonal_: expected two axes or more, got \(3,\)"):
        nn.init.orthogonal_(tenon.empty(3))
    assert nn.init.eye_(tenon.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    for fill in (nn.init.eye_, lambda w: nn.init.sparse_(w, 0.5)):
        for shape in ((3,), (2, 2, 2)):
            with pytest.raises(ValueError, match=r"_: expected two axes, got shape"):
                fill(tenon.empty(*shape))
    sparse = nn.init.sparse_(tenon.empty(10, 7), 0.25, 3.0)
    assert (sparse == 0).sum(0).tolist() == [3] * 7 and sparse.std().item() > 1
    for text, use in (
        ("dirac_: expected a weight of 3 to 5 axes", lambda: nn.init.dirac_(tenon.empty(2, 2))),
        ("divisible by groups 3", lambda: nn.init.dirac_(tenon.empty(4, 2, 3), 3)),
        ("trunc_normal_: expected a < b, got 1.0 and 1.0", lambda: nn.init.trunc_normal_(tenon.empty(2), a=1.0, b=1.0)),
        ("expected .* to hold a part of a normal", lambda: nn.init.trunc_normal_(tenon.empty(2), a=9.0, b=10.0)),
        ("expected a weight of two axes or more", lambda: nn.init.xavier_normal_(tenon.empty(2))),
        ("kaiming: expected mode 'fan_in' or 'fan_out', got 'fan'", lambda: nn.init.kaiming_normal_(tenon.empty(2, 2), mode="fan")),
        ("calculate_gain: expected one of .*, got 'gelu'", lambda: nn.init.calculate_gain("gelu")),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            use()
    gains = {"leaky_relu": math.sqrt(2 / 1.0001), "selu": 0.75, "relu": math.sqrt(2), "tanh": 5 / 3,
             "conv_transpose2d": 1.0, "sigmoid": 1.0}  # fmt: skip
    assert {name: nn.init.calculate_gain(name) for name in gains} == pytest.approx(gains)
    assert nn.init.calculate_gain("leaky_relu", 1.0) == 1.0
