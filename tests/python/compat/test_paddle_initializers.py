# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.initializer, ParamAttr and regularizer."""

import math

import numpy as np
import pytest
import tenon
from tenon.compat import paddle

I = paddle.nn.initializer  # noqa: E741


def deviation(initializer, shape):
    tenon.manual_seed(1)
    return float(initializer(tenon.empty(shape)).numpy().std())


@pytest.mark.parametrize(
    "initializer,shape,expected",
    [
        (I.Normal(0.0, 0.3), [200, 300], 0.3),
        (I.Uniform(-0.6, 0.6), [200, 300], 1.2 / math.sqrt(12)),
        (I.XavierNormal(), [200, 300], math.sqrt(2 / 500)),
        (I.XavierUniform(gain=2.0), [200, 300], 2 * math.sqrt(2 / 500)),
        (I.XavierNormal(), [20, 30, 5, 5], math.sqrt(2 / (50 * 25))),
        (I.XavierUniform(fan_in=100, fan_out=20), [200, 300], math.sqrt(2 / 120)),
        (I.KaimingNormal(), [200, 300], math.sqrt(2 / 200)),
        (I.KaimingUniform(), [20, 30, 5, 5], math.sqrt(2 / (30 * 25))),
        (I.KaimingUniform(mode="fan_out"), [200, 300], math.sqrt(2 / 300)),
        (
            I.KaimingNormal(negative_slope=1.0, nonlinearity="leaky_relu"),
            [400, 99],
            math.sqrt(1 / 400),
        ),
        (I.Orthogonal(), [200, 200], 1 / math.sqrt(200)),
    ],
)
def test_deviations(initializer, shape, expected):
    assert deviation(initializer, shape) == pytest.approx(expected, rel=0.02)


def test_values():
    assert I.Constant(3.0)(tenon.empty([2])).tolist() == [3.0, 3.0]
    assert I.Assign([[1.0, 2.0]])(tenon.empty([1, 2])).tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="Assign: expected values of shape \\(3,\\), got \\(2,\\)"):
        I.Assign([1.0, 2.0])(tenon.empty([3]))
    x = tenon.normal([1, 3, 5, 5])
    weight = I.Dirac()(tenon.empty([3, 3, 3, 3]))
    assert np.allclose(paddle.nn.functional.conv2d(x, weight, padding=1).numpy(), x.numpy())
    window = I.Bilinear()(tenon.empty([2, 2, 4, 4]))[0, 1].tolist()
    assert window[0] == [0.0625, 0.1875, 0.1875, 0.0625] and window[1][1] == 0.5625
    inside = I.TruncatedNormal(0.0, 1.0, -0.5, 0.25)(tenon.empty([1000])).numpy()
    assert -0.5 <= inside.min() < -0.45 and 0.2 < inside.max() <= 0.25
    assert repr(I.Constant(2.0)) == "Constant(value=2.0)"
    assert I.calculate_gain("conv2d_transpose") == 1.0


def test_layers_take_them():
    attr = paddle.ParamAttr(initializer=I.Constant(2.0), trainable=False)
    layer = paddle.nn.Linear(2, 3, weight_attr=attr, bias_attr=I.Constant(1.0))
    assert layer.weight.tolist() == [[2.0] * 3] * 2 and not layer.weight.requires_grad
    assert layer.bias.tolist() == [1.0] * 3 and layer.bias.requires_grad
    I.set_global_initializer(I.Constant(4.0), I.Constant(5.0))
    try:
        layer = paddle.nn.Linear(2, 1)
        own = paddle.nn.Linear(2, 1, weight_attr=attr)
    finally:
        I.set_global_initializer(None)
    assert layer.weight.tolist() == [[4.0], [4.0]] and layer.bias.tolist() == [5.0]
    assert own.weight.tolist() == [[2.0], [2.0]]
    assert paddle.nn.Linear(2, 1).bias.tolist() == [0.0]


def test_what_an_optimizer_would_read_is_refused():
    with pytest.raises(NotImplementedError, match="a group of parameters with its own `lr`"):
        paddle.ParamAttr(learning_rate=0.5)
    with pytest.raises(
        NotImplementedError, match="a group of parameters with its own `weight_decay`"
    ):
        paddle.ParamAttr(regularizer=paddle.regularizer.L2Decay(0.1))
    with pytest.raises(NotImplementedError, match="expected need_clip=True"):
        paddle.ParamAttr(need_clip=False)
    with pytest.raises(TypeError, match="expected an initialiser, got 3"):
        paddle.ParamAttr(initializer=3)
    with pytest.raises(NotImplementedError, match="expected L2Decay, got L1Decay\\(0.1\\)"):
        paddle.regularizer.L1Decay(0.1)
    with pytest.raises(ValueError, match="mode 'fan_in' or 'fan_out', got 'fan'"):
        I.KaimingNormal(mode="fan")
    with pytest.raises(TypeError, match="expected initialisers or None, got 1.0"):
        I.set_global_initializer(1.0)
    with pytest.raises(TypeError, match="a ParamAttr or a function that fills a tensor, got 7"):
        paddle.nn.Linear(2, 1, weight_attr=7)


def test_decay():
    p = tenon.nn.Parameter(tenon.ones([1]))
    optimizer = tenon.optim.SGD([p], lr=1.0, weight_decay=paddle.regularizer.L2Decay(0.25))
    (p * 0.0).sum().backward()
    optimizer.step()
    assert p.tolist() == [0.75] and repr(paddle.regularizer.L2Decay(0.5)) == "L2Decay(0.5)"


def test_as_paddle():
    pytest.importorskip("paddle.nn")
    import paddle as theirs

    kinds = theirs.nn.initializer
    for name, settings, shape in [
        ("XavierNormal", {}, [200, 300]),
        ("KaimingUniform", {}, [20, 30, 5, 5]),
        ("KaimingNormal", {"mode": "fan_out"}, [200, 300]),
        ("TruncatedNormal", {"mean": 0.5, "std": 0.5, "a": -1.0, "b": 0.25}, [200, 300]),
        # Not Bilinear: Paddle 3.3.1 gives rows that are no multiples of each other.
    ]:
        parameter = theirs.create_parameter(shape, "float32")
        getattr(kinds, name)(**settings)(parameter)
        other = parameter.numpy()
        ours = getattr(I, name)(**settings)(tenon.empty(shape)).numpy()
        for share in (0.01, 0.25, 0.5, 0.99):
            expected = pytest.approx(np.quantile(other, share), rel=0.05, abs=0.01)
            assert np.quantile(ours, share) == expected, (name, share)
