# SPDX-License-Identifier: Apache-2.0
"""Pools and convolutions beside their definitions in NumPy: sizes that differ by axis, defaults, edges."""

import itertools
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


EXTENTS, KERNELS, STRIDES, PADS = (7, 6, 5), (3, 2, 3), (2, 1, 2), (1, 1, 0)


def windows(x, kernel, stride, pad, fill):
    """Every window of the axes behind the first two, with its place in the result."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)], constant_values=fill)
    counts = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], kernel, stride)]
    for place in itertools.product(*map(range, counts)):
        part = [slice(i * s, i * s + k) for i, s, k in zip(place, stride, kernel)]
        yield place, counts, x[(slice(None), slice(None), *part)]


def pooled(x, reduce, kernel, stride, pad, fill=0.0):
    result = None
    for place, counts, part in windows(x, kernel, stride, pad, fill):
        if result is None:
            result = np.zeros((*x.shape[:2], *counts))
        result[(slice(None), slice(None), *place)] = reduce(part.reshape(*x.shape[:2], -1))
    return result


def largest(part):
    return part.max(-1)


def mean(part):
    return part.mean(-1)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pools_of_unlike_axes(axes):
    x = random(2, 3, *EXTENTS[:axes])
    kernel, stride, pad = (each[:axes] for each in (KERNELS, STRIDES, PADS))
    maximum, average = (getattr(F, f"{kind}_pool{axes}d") for kind in ("max", "avg"))
    none = (0,) * axes
    close(maximum(T(x), kernel, stride, pad), pooled(x, largest, kernel, stride, pad, -np.inf))
    close(average(T(x), kernel, stride, pad), pooled(x, mean, kernel, stride, pad))
    close(maximum(T(x), kernel), pooled(x, largest, kernel, kernel, none))
    close(average(T(x), kernel), pooled(x, mean, kernel, kernel, none))
    counted = pooled(np.ones_like(x), mean, kernel, stride, pad)
    wanted = pooled(x, mean, kernel, stride, pad) / counted
    close(average(T(x), kernel, stride, pad, count_include_pad=False), wanted)
    indexed = getattr(F, f"max_pool{axes}d_with_indices")
    for options in ((kernel, stride, pad), (kernel,)):
        values, index = indexed(T(x), *options)
        close(values, maximum(T(x), *options).numpy())
        chosen = np.take_along_axis(x.reshape(2, 3, -1), index.numpy().reshape(2, 3, -1), -1)
        close(values.reshape([2, 3, -1]), chosen)
    for layer in (
        getattr(nn, f"MaxPool{axes}d")(kernel, stride, pad),
        getattr(nn, f"MaxPool{axes}d")(kernel),
        getattr(nn, f"AvgPool{axes}d")(kernel, stride, pad),
        getattr(nn, f"AvgPool{axes}d")(kernel),
    ):
        function = maximum if "Max" in type(layer).__name__ else average
        close(layer(T(x)), function(T(x), kernel, layer.stride, layer.padding).numpy())
        close(layer(T(x[0])), layer(T(x)).numpy()[0])
    values, index = getattr(nn, f"MaxPool{axes}d")(kernel, return_indices=True)(T(x[1]))
    close(values, maximum(T(x), kernel).numpy()[1])
    assert index.tolist() == indexed(T(x), kernel)[1][1].tolist()


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_pools_of_powers(axes, p):
    x = random(2, 3, *EXTENTS[:axes])
    kernel, stride, none = KERNELS[:axes], STRIDES[:axes], (0,) * axes

    def root(part):
        return np.maximum((part**p).sum(-1), 0) ** (1 / p)

    function = getattr(F, f"lp_pool{axes}d")
    close(function(T(x), p, kernel, stride), pooled(x, root, kernel, stride, none))
    close(function(T(x), p, kernel), pooled(x, root, kernel, kernel, none))
    close(function(T(x), p, 2), pooled(x, root, (2,) * axes, (2,) * axes, none))
    close(
        getattr(nn, f"LPPool{axes}d")(p, 2, 1)(T(x)),
        pooled(x, root, (2,) * axes, (1,) * axes, none),
    )


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_adaptive_pools_of_unlike_axes(axes):
    x, size = random(2, 3, *EXTENTS[:axes]), (3, 2, 4)[:axes]
    for kind, reduce in (("max", largest), ("avg", mean)):
        want = np.zeros((2, 3, *size))
        for place in itertools.product(*map(range, size)):
            part = [
                slice(i * n // count, -(-(i + 1) * n // count))
                for i, n, count in zip(place, x.shape[2:], size)
            ]
            every = slice(None)
            part = x[(every, every, *part)].reshape(2, 3, -1)
            want[(every, every, *place)] = reduce(part)
        close(getattr(F, f"adaptive_{kind}_pool{axes}d")(T(x), size), want)
        name = f"Adaptive{kind.capitalize()}Pool{axes}d"
        close(getattr(nn, name)(size)(T(x)), want)
        close(getattr(nn, name)(size)(T(x[0])), want[0])
        close(getattr(nn, name)((None,) * axes)(T(x)), x)
        assert getattr(nn, name)(1)(T(x)).shape == (2, 3, *[1] * axes)
        with pytest.raises(ValueError, match=f"expected output_size of {axes} numbers, got"):
            getattr(nn, name)((1,) * (axes + 1))
    with pytest.raises(NotImplementedError, match=f"AdaptiveMaxPool{axes}d: maxima come without"):
        getattr(nn, f"AdaptiveMaxPool{axes}d")(2, return_indices=True)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_of_unlike_axes(axes):
    x = random(2, 3, *(2 * n for n in EXTENTS[:axes]))
    kernel, stride, pad = (3, 2, 4)[:axes], (3, 2, 4)[:axes], (1, 0, 2)[:axes]
    values, index = getattr(F, f"max_pool{axes}d_with_indices")(T(x), kernel, stride, pad)
    unpool = getattr(F, f"max_unpool{axes}d")
    size = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(values.shape[2:], stride, pad, kernel)]
    for given, got in (
        (x.shape[2:], unpool(values, index, kernel, stride, pad, x.shape[2:])),
        (x.shape[2:], unpool(values, index, kernel, output_size=x.shape)),
        (x.shape[2:], getattr(nn, f"MaxUnpool{axes}d")(kernel)(values, index, x.shape[2:])),
    ):
        flat = np.zeros((2, 3, math.prod(given)))
        np.put_along_axis(
            flat, index.numpy().reshape(2, 3, -1), values.numpy().reshape(2, 3, -1), -1
        )
        close(got, flat.reshape(2, 3, *given))
    few = T(np.zeros((1, 1, *values.shape[2:]), dtype=np.int64))
    assert unpool(values[:1, :1], few, kernel, stride, pad).shape == (1, 1, *size)
    with pytest.raises(NotImplementedError, match="maxima come without their indices"):
        nn.FractionalMaxPool2d(2, 3, return_indices=True)


@pytest.mark.parametrize("axes", [2, 3])
def test_random_pools_by_size_and_by_ratio(axes):
    x = T(random(1, 2, *(8, 9, 10)[:axes]))
    function = getattr(F, f"fractional_max_pool{axes}d")
    samples = T(rng.random((1, 2, axes)))
    kernel = (2, 3, 2)[:axes]
    assert function(x, kernel, (4, 5, 6)[:axes]).shape == (1, 2, *(4, 5, 6)[:axes])
    assert function(x, kernel, output_ratio=0.5).shape == (1, 2, *(4, 4, 5)[:axes])
    ratios = (0.5, 0.6, 0.4)[:axes]
    assert function(x, kernel, output_ratio=ratios).shape == (1, 2, *(4, 5, 4)[:axes])
    one = function(x, (8, 9, 10)[:axes], 1, _random_samples=samples)
    close(one.reshape([1, 2]), x.numpy().reshape(1, 2, -1).max(-1))
    layer = getattr(nn, f"FractionalMaxPool{axes}d")
    close(
        layer(kernel, 3, _random_samples=samples)(x), function(x, kernel, 3, None, samples).numpy()
    )
    for options in ({}, {"output_size": 3, "output_ratio": 0.5}):
        with pytest.raises(
            ValueError, match=f"fractional_max_pool{axes}d: expected one of output_size"
        ):
            function(x, kernel, **options)
    with pytest.raises(ValueError, match=r"expected output_size 8 \+ kernel_size 2 - 1 <= 8"):
        function(x, 2, 8)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolutions_are_adjoint_to_convolutions(axes):
    """<conv(x), y> = <x, conv_transpose(y)> for every x and y."""
    for kernel, stride, pad, dilation, groups in (
        ((3, 2, 4), (2, 3, 1), (1, 0, 2), (1, 2, 1), 2),
        ((2, 3, 2), (1, 2, 3), (0, 1, 1), (2, 1, 3), 1),
    ):
        kernel, stride, pad, dilation = (e[:axes] for e in (kernel, stride, pad, dilation))
        x = random(2, 4, *(9, 8, 10)[:axes])
        weight = random(6, 4 // groups, *kernel)
        forward, back = getattr(F, f"conv{axes}d"), getattr(F, f"conv_transpose{axes}d")
        out = forward(T(x), T(weight), None, stride, pad, dilation, groups)
        y = random(*out.shape)
        lost = [
            n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
            for n, m, s, p, d, k in zip(x.shape[2:], out.shape[2:], stride, pad, dilation, kernel)
        ]
        got = back(T(y), T(weight), None, stride, pad, lost, groups=groups, dilation=dilation)
        assert got.shape == x.shape
        np.testing.assert_allclose((out.numpy() * y).sum(), (got.numpy() * x).sum())
        bias = random(4)
        moved = back(T(y), T(weight), T(bias), stride, pad, lost, groups=groups, dilation=dilation)
        close(moved - got, np.broadcast_to(bias.reshape(4, *[1] * axes), x.shape))
    weight = random(4, 3, *[2] * axes)
    plain = back(T(random(1, 4, *[3] * axes)), T(weight))
    assert plain.shape == (1, 3, *[4] * axes)
    with pytest.raises(ValueError, match=f"conv_transpose{axes}d|expected"):
        back(T(random(4, *[3] * axes)), T(weight))


@pytest.mark.parametrize("axes", [1, 3])
def test_margins_of_convolutions_by_name(axes):
    function = getattr(F, f"conv{axes}d")
    x, weight = T(random(1, 2, *EXTENTS[:axes])), T(random(3, 2, *KERNELS[:axes]))
    close(function(x, weight, padding="valid"), function(x, weight).numpy())
    same = function(x, weight, padding="same", dilation=2)
    assert same.shape == (1, 3, *EXTENTS[:axes])
    totals = [2 * (k - 1) for k in KERNELS[:axes]]
    around = F.pad(x, [n for t in reversed(totals) for n in (t // 2, t - t // 2)])
    close(same, function(around, weight, dilation=2).numpy())


def test_margins_of_layers():
    x = T(np.arange(24.0).reshape(1, 2, 3, 4))
    assert nn.ZeroPad2d((1, 2, 0, 1))(x).shape == (1, 2, 4, 7)
    for axes, layer in ((1, nn.ReflectionPad1d), (2, nn.ReplicationPad2d), (3, nn.CircularPad3d)):
        assert layer(1).padding == (1,) * (2 * axes)
        with pytest.raises(ValueError) as error:
            layer((1,) * (2 * axes + 1))
        assert f"{layer.__name__}: expected padding of one number or {2 * axes}, got (1," in str(
            error.value
        )
    filled = nn.ConstantPad2d((1, 0, 0, 0), 7.0)(x)
    assert filled[..., 0].tolist() == [[[7.0] * 3] * 2]
    close(F.pad(x, (1, 1), "replicate"), np.pad(x.numpy(), [(0, 0)] * 3 + [(1, 1)], "edge"))
    close(
        F.pad(x, (-1, 1), "replicate")[0, 0],
        np.pad(x.numpy()[0, 0, :, 1:], [(0, 0), (0, 1)], "edge"),
    )
    close(
        F.pad(x, (-1, 2), "circular")[0, 0],
        np.pad(x.numpy()[0, 0, :, 1:], [(0, 0), (0, 2)], "wrap"),
    )
    with pytest.raises(ValueError, match="expected two numbers for each of at most 4 axes, got 3"):
        F.pad(x, (1, 1, 1))
    with pytest.raises(ValueError, match="at most 4 axes, got 10"):
        F.pad(x, (1,) * 10)
    with pytest.raises(
        ValueError, match="pad: expected mode one of constant, reflect, .* got 'edge'"
    ):
        F.pad(x, (1, 1), "edge")
    close(F.zeropad2d(x, (1, 0, 0, 2)), np.pad(x.numpy(), [(0, 0), (0, 0), (0, 2), (1, 0)]))
