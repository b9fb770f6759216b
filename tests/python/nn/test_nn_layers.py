# SPDX-License-Identifier: Apache-2.0
"""Norms, activations, dropout, tables and bilinear maps against plain NumPy."""

import numpy as np
import pytest
import tenon
from tenon import nn
from test_nn import check, random

F = nn.functional


def standardized(x, axes, eps=1e-5):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def per_channel(x, weight, bias):
    shape = [1, -1, *[1] * (x.ndim - 2)]
    return x * weight.reshape(shape) + bias.reshape(shape)


SHAPES = {1: (3, 2, 4), 2: (2, 2, 3, 4), 3: (2, 2, 2, 3, 2)}


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_batch_and_instance_norms(axes):
    x = random(*SHAPES[axes])
    spatial = tuple(range(2, x.ndim))
    check(
        getattr(nn, f"BatchNorm{axes}d")(2),
        lambda x, w, b: per_channel(standardized(x, (0, *spatial)), w, b),
        x,
    )
    check(
        getattr(nn, f"InstanceNorm{axes}d")(2, affine=True),
        lambda x, w, b: per_channel(standardized(x, spatial), w, b),
        x,
    )
    assert list(getattr(nn, f"InstanceNorm{axes}d")(2).parameters()) == []


def test_running_statistics():
    x = random(3, 2, 4)
    norm = nn.BatchNorm1d(2, momentum=None)
    for scale in (1.0, 3.0):
        norm(tenon.tensor(x * scale))
    assert norm.num_batches_tracked.item() == 2
    mean = x.mean((0, 2))
    np.testing.assert_allclose(norm.running_mean.numpy(), 2 * mean, rtol=1e-4)
    norm.reset_running_stats()
    assert norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked.item() == 0

    instance = nn.InstanceNorm1d(2, momentum=1.0, track_running_stats=True)
    instance(tenon.tensor(x))
    np.testing.assert_allclose(instance.running_mean.numpy(), x.mean(2).mean(0), rtol=1e-4)
    var = x.var(2, ddof=1).mean(0)
    np.testing.assert_allclose(instance.running_var.numpy(), var, rtol=1e-4)
    got = instance.eval()(tenon.tensor(x)).numpy()
    want = (x - x.mean(2).mean(0)[:, None]) / np.sqrt(var[:, None] + 1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_local_response_norm():
    def expected(x, size=3, alpha=0.1, beta=0.75, k=2.0):
        squares = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0)])
        channels = range(x.shape[1])
        mean = np.stack([squares[:, c : c + size].mean(1) for c in channels], 1)
        return x / (k + alpha * mean) ** beta

    check(nn.LocalResponseNorm(3, 0.1, k=2.0), expected, random(2, 5, 4))


def test_root_mean_square_over_several_axes():
    check(
        nn.RMSNorm((3, 4), eps=1e-6),
        lambda x, w: x / np.sqrt((x**2).mean((1, 2), keepdims=True) + 1e-6) * w,
        random(2, 3, 4),
    )
    assert list(nn.RMSNorm(4, elementwise_affine=False).parameters()) == []
    assert [n for n, _ in nn.LayerNorm(4, bias=False).named_parameters()] == ["weight"]


ACTIVATIONS = [
    (nn.Hardshrink(0.3), lambda x: np.where(np.abs(x) > 0.3, x, 0)),
    (nn.Softshrink(lambd=0.3), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.3, 0)),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    (nn.Threshold(0.2, 7.0), lambda x: np.where(x > 0.2, x, 7.0)),
    (nn.Softmin(dim=1), lambda x: np.exp(-x) / np.exp(-x).sum(1, keepdims=True)),
    (nn.Softmax2d(), lambda x: np.exp(x) / np.exp(x).sum(-3, keepdims=True)),
    (nn.Maxout(2), lambda x: x.reshape(2, 2, 2, 3, 2).max(2)),
    (nn.RReLU(0.1, 0.3).eval(), lambda x: np.where(x > 0, x, 0.2 * x)),
]


@pytest.mark.parametrize("case", ACTIVATIONS, ids=lambda case: type(case[0]).__name__)
def test_activations(case):
    check(*case, random(2, 4, 3, 2))


def test_settings_of_activations_have_the_names_of_pytorch_too():
    x = tenon.tensor(random(2, 4))
    assert nn.Softmax(dim=0)(x).tolist() == tenon.softmax(x, axis=0).tolist()
    assert nn.GELU(approximate="tanh")(x).tolist() == tenon.gelu(x, True).tolist()
    assert nn.GELU(approximate="none")(x).tolist() == tenon.gelu(x).tolist()
    assert nn.ReLU(inplace=True)(x).tolist() == tenon.relu(x).tolist()
    with pytest.raises(TypeError, match="ReLU: expected settings"):
        nn.ReLU(dim=1)


def test_random_activations():
    tenon.manual_seed(0)
    x = tenon.full([1000], -1.0)
    slopes = -nn.RReLU(0.1, 0.3)(x).numpy()
    assert 0.1 <= slopes.min() < 0.12 and 0.28 < slopes.max() <= 0.3
    samples = F.gumbel_softmax(tenon.zeros([4000, 4]), hard=True)
    assert (samples.sum(axis=1) == 1.0).all().item()
    np.testing.assert_allclose(samples.mean(axis=0).numpy(), np.full(4, 0.25), atol=0.03)
    check(SwiGLU(), lambda x: x[:, :2] / (1 + np.exp(-x[:, :2])) * x[:, 2:], random(3, 4))


class SwiGLU(nn.Module):
    def forward(self, x):
        return F.swiglu(x)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_channel_dropout(axes):
    tenon.manual_seed(0)
    module = getattr(nn, f"Dropout{axes}d")(0.25)
    x = tenon.ones([20, 50, *[2] * axes])
    y = module(x).numpy().reshape(1000, -1)
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.05
    assert module.eval()(x) is x
    with pytest.raises(ValueError, match=f"dropout{axes}d: expected {axes + 1} or {axes + 2} axes"):
        module.train()(tenon.ones([2, 2, *[2] * axes, 2, 2]))


def test_alpha_dropout_keeps_mean_and_variance():
    tenon.manual_seed(0)
    x = tenon.normal([400, 100, 4])
    for module in (nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2)):
        y = module(x).numpy()
        assert abs(y.mean()) < 0.02 and abs(y.std() - 1.0) < 0.02
        assert module.eval()(x) is x
    whole = y.reshape(40000, 4)  # of FeatureAlphaDropout
    limit = -1.7580993  # of SELU
    scale = 1.0 / np.sqrt(0.8 * (1.0 + 0.2 * limit**2))
    dropped = np.isclose(whole, 0.8 * scale * limit, atol=1e-5)
    assert 0.17 < dropped.all(1).mean() < 0.23


def test_bilinear():
    check(
        nn.Bilinear(3, 4, 2),
        lambda a, b, w, bias: np.einsum("ni,oij,nj->no", a, w, b) + bias,
        random(5, 3),
        random(5, 4, seed=1),
        differentiable=(0, 1),
    )


BAGS = [[1, 0, 3], [2, 2], [], [4]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bags(mode):
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]

    def expected(indices, offsets, weight):
        rows = [reduce(weight[bag], axis=0) if bag else np.zeros(3) for bag in BAGS]
        return np.stack(rows)

    flat, starts = np.array(sum(BAGS, [])), np.array([0, 3, 5, 5])
    check(nn.EmbeddingBag(5, 3, mode=mode), expected, flat, starts, differentiable=())
    module = nn.EmbeddingBag(5, 3, mode=mode, padding_idx=2)
    two = module(tenon.tensor([[1, 2, 3], [2, 2, 0]]))
    weight = module.weight.detach().numpy()
    want = [reduce(weight[[1, 3]], axis=0), weight[0]]
    np.testing.assert_allclose(two.detach().numpy(), want, rtol=1e-6)


def test_embedding_bags_with_weights_of_samples():
    module = nn.EmbeddingBag(5, 3, mode="sum", include_last_offset=True)
    x, weights = tenon.tensor([1, 0, 3]), tenon.tensor([0.5, 2.0, 3.0])
    out = module(x, tenon.tensor([0, 2, 3]), weights).detach().numpy()
    rows = module.weight.detach().numpy()
    np.testing.assert_allclose(out, [0.5 * rows[1] + 2 * rows[0], 3 * rows[3]], rtol=1e-6)
    with pytest.raises(ValueError, match="per_sample_weights need mode 'sum', got 'mean'"):
        nn.EmbeddingBag(5, 3)(x, tenon.tensor([0]), weights)
    with pytest.raises(ValueError, match="expected offsets with indices of one axis"):
        module(x)
    with pytest.raises(ValueError, match=r"EmbeddingBag: expected padding_idx in \[0, 5\), got 7"):
        nn.EmbeddingBag(5, 3, padding_idx=7)


def test_embedding_rows_are_limited():
    module = nn.Embedding(5, 3, max_norm=1.0)
    tenon.nn.init.constant_(module.weight, 2.0)
    module(tenon.tensor([1, 3]))
    norms = np.linalg.norm(module.weight.detach().numpy(), axis=1)
    np.testing.assert_allclose(norms[[1, 3]], [1, 1], rtol=1e-5)
    np.testing.assert_allclose(norms[[0, 2, 4]], np.full(3, np.sqrt(12)), rtol=1e-5)
    table = nn.Embedding.from_pretrained(tenon.tensor(random(4, 2)))
    assert not table.weight.requires_grad and table(tenon.tensor([2])).shape == (1, 2)


def test_functions_of_sequences_and_distances():
    mask = F.sequence_mask(tenon.tensor([1, 3]), 4)
    assert mask.tolist() == [[1, 0, 0, 0], [1, 1, 1, 0]]
    x = random(4, 3)
    want = [np.linalg.norm(x[i] - x[j]) for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(F.pdist(tenon.tensor(x)).numpy(), want, rtol=1e-5)
