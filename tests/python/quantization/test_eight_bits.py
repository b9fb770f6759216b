# SPDX-License-Identifier: Apache-2.0
"""Layers of 8 bits: observers, converting, and training with rounded numbers."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon import quantization as q
from tenon.quantization import layers
from tenon.quantization.observers import steps_of


def images(rows=32, seed=0):
    rng = np.random.default_rng(seed)
    return tenon.tensor(rng.standard_normal((rows, 1, 8, 8)).astype(np.float32))


def network():
    tenon.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding="same", groups=2, padding_mode="circular"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 64, 10),
    )


def converted(model, *recipe):
    seen = q.observe(model, *recipe)
    with tenon.no_grad():
        for seed in range(4):
            seen(images(seed=seed))
    return q.convert(seen)


def test_steps_have_zero_among_them():
    assert steps_of(-1.0, 1.55) == q.Steps(pytest.approx(0.01), 100)
    assert steps_of(2.0, 5.1) == q.Steps(pytest.approx(0.02), 0)
    assert steps_of(-5.1, -2.0) == q.Steps(pytest.approx(0.02), 255)
    assert steps_of(0.0, 0.0) == q.Steps(1.0, 0)


@pytest.mark.parametrize("activations", ["minmax", "moving_average", "percentile", "mse"])
def test_results_are_near_those_of_floats(activations):
    model = network()
    small = converted(model, q.Int8(activations))
    assert [type(layer).__name__ for layer in small][::5] == ["Int8Conv", "Int8Linear"]
    assert small[0].weight.dtype == tenon.int8
    result = q.report(model, small, [images(seed=9)])
    assert len(result.layers) == 3 and result.sqnr > 24 and result.cosine > 0.998
    lines = str(result).splitlines()
    assert lines[0].startswith("layer") and lines[-1].startswith("result")
    assert all(each.bytes < 0.4 * each.float_bytes for each in result.layers)


def test_integers_give_what_their_numbers_give():
    """The product of integers is exact: it is that of the numbers that codes stand for, in float64."""
    rng = np.random.default_rng(1)
    layer = nn.Linear(200, 30)
    x = tenon.tensor(rng.uniform(-1, 3, (5, 7, 200)).astype(np.float32))
    small = q.Int8Linear(layer, steps_of(-1.0, 3.0))
    codes = small.rounded(x).to("float64").numpy() - float(small.zero_point)
    numbers = codes * float(small.scale)
    wanted = numbers @ small.float_weight().to("float64").numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(small(x).numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "kind, settings",
    [
        (nn.Conv2d, {"padding": 1}),
        (nn.Conv2d, {"stride": 2, "groups": 2}),
        (nn.Conv2d, {"padding": "same", "padding_mode": "reflect", "dilation": 2}),
        (nn.Conv1d, {"padding": 1, "stride": 2}),
        (nn.Conv3d, {"padding": 1}),
    ],
    ids=str,
)
def test_convolutions_of_integers_give_what_their_numbers_give(kind, settings):
    rng = np.random.default_rng(2)
    layer = kind(4, 6, 3, **settings)
    x = tenon.tensor(rng.uniform(-1, 3, (2, 4, *[9] * kind.axes)).astype(np.float32))
    small = q.Int8Conv(layer, steps_of(-1.0, 3.0))
    assert small._integer == (kind.axes < 3)
    near = tenon.dequantize_linear(small.rounded(x), small.scale, small.zero_point)
    exact = kind(4, 6, 3, **settings)
    with tenon.no_grad():
        exact.weight.copy_(small.float_weight())
        exact.bias.copy_(layer.bias)
        wanted = exact.to("float64")(near.to("float64")).numpy()
        np.testing.assert_allclose(small(x).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_without_a_batch_and_without_a_bias():
    model = nn.Conv2d(1, 4, 3, bias=False)
    small = converted(model)
    x = images(1)
    assert small(x[0]).numpy().tobytes() == small(x)[0].numpy().tobytes()


def test_states_of_converted_layers():
    small, other = converted(network()), converted(nn.Sequential(*network()))
    with tenon.no_grad():
        other[5].weight.copy_(tenon.zeros(other[5].weight.shape, dtype="int8"))
    other.load_state_dict(small.state_dict())
    x = images()
    assert small(x).numpy().tobytes() == other(x).numpy().tobytes()


def test_a_histogram_grows():
    observer = q.Percentile(100)
    for largest in (1.0, 0.5, 7.0, 30.0):
        observer.see(tenon.tensor([-largest / 2, largest]))
    assert observer.counts.sum() == 8
    low, high = observer.range()
    assert low == pytest.approx(-15, abs=0.1) and high == pytest.approx(30, abs=0.1)


def test_clipping_observers_leave_outliers_out():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(100_000).astype(np.float32)
    x[0] = 100
    for observer, most in ((q.MinMax(), 101), (q.Percentile(99.9), 4), (q.MeanSquaredError(), 101)):
        observer.see(tenon.tensor(x))
        assert observer.range()[1] < most
    assert q.MinMax().count == 0
    few = q.MeanSquaredError()
    few.see(tenon.tensor(np.concatenate([x[1:], [8.0]]).astype(np.float32)))
    assert few.range()[1] < 7.9


def test_training_rounds_and_learns():
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = tenon.normal([256, 8])
    target = tenon.argmax(x[:, :4], 1)
    trained = q.prepare_training(model)
    optimizer = tenon.optim.Adam(trained.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss = nn.functional.cross_entropy(trained(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.3 * losses[0]
    trained.eval()
    small = q.convert(trained)
    with tenon.no_grad():
        wanted, got = trained(x), small(x)
    # Training rounds the same numbers, in float32.
    assert float((tenon.argmax(wanted, 1) == tenon.argmax(got, 1)).to("float32").mean()) > 0.99
    # A sum that another order of additions rounds across a step moves a logit by a few steps of 8 bits.
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), atol=0.2)


def test_what_is_refused():
    model = network()
    with pytest.raises(ValueError, match="convert: expected a module that observe.* made"):
        q.convert(model)
    with pytest.raises(ValueError, match="observer of '0': it has seen nothing; run the observed"):
        q.convert(q.observe(model))
    with pytest.raises(ValueError, match="expected an observer named 'minmax', .* got 'kl'"):
        q.observe(model, q.Int8("kl"))
    with pytest.raises(TypeError, match="expected a function that makes an Observer"):
        q.observe(model, q.Int8(dict))
    with pytest.raises(ValueError, match="observer of '0': expected finite numbers, got"):
        q.observe(model)(images() * float("inf"))
    with pytest.raises(ValueError, match="Percentile: expected a percentage above 0"):
        q.Percentile(0)
    with pytest.raises(TypeError, match="observe: expected a Module or a Program, got function"):
        q.observe(lambda x: x)
    kept = q.observe(model, q.Int8(keep=["5", "0"]))
    assert [isinstance(layer, q.Observed) for layer in kept] == [False, False, True] + [False] * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_beyond_sixteen_bits(dtype):
    linear, conv = nn.Linear(64, 3).to(dtype), nn.Conv2d(64, 3, 1).to(dtype)
    with tenon.no_grad():
        for layer in (linear, conv):
            layer.weight.fill_(1.0)
            layer.bias.fill_(2.0)
    steps = q.Steps(1 / 255, 0)
    x = tenon.ones([2, 64], dtype=dtype)
    for made, given in (
        (layers.Int8Linear(linear, steps), x),
        (layers.Int8Conv(conv, steps), x.reshape([2, 64, 1, 1])),
    ):
        out = made(given)
        assert str(out.dtype) == dtype and list(out.shape[:2]) == [2, 3]
        # Two steps of eight bits; an overflow would be infinite.
        np.testing.assert_allclose(out.to("float32").numpy(), 66.0, rtol=1e-2)


def test_convolutions_along_one_axis():
    tenon.manual_seed(0)
    layer = nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)
    x = tenon.randn([2, 4, 11])
    low, high = float(x.min()), float(x.max())
    made = layers.Int8Conv(layer, steps_of(low, high))
    # About one step of x times the magnitudes of six weights.
    np.testing.assert_allclose(made(x).numpy(), layer(x).detach().numpy(), atol=0.05)
