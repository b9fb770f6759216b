# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling, padding and layout over 1 to 3 spatial axes against plain NumPy."""

import numpy as np
import pytest
import reference_nd
import tenon
from tenon import nn
from test_nn import With, check, random

F = nn.functional
SHAPES = {1: (2, 4, 7), 2: (2, 4, 5, 4), 3: (1, 2, 4, 3, 5)}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"stride": 2, "padding": 1, "groups": 2}, {"dilation": 2, "padding": 2}]
)
def test_convolutions(axes, settings):
    channels = SHAPES[axes][1]
    check(
        getattr(nn, f"Conv{axes}d")(channels, 2, 2, **settings),
        lambda x, w, b: reference_nd.conv(x, w, b, **settings),
        random(*SHAPES[axes]),
    )


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    "settings",
    [{}, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, {"dilation": 2}],
)
def test_transposed_convolutions(axes, settings):
    channels = SHAPES[axes][1]
    check(
        getattr(nn, f"ConvTranspose{axes}d")(channels, 2, 2, **settings),
        lambda x, w, b: reference_nd.conv_transpose(x, w, b, **settings),
        random(*SHAPES[axes]),
    )


NUMPY_MODES = {
    "Reflection": {"mode": "reflect"},
    "Replication": {"mode": "edge"},
    "Circular": {"mode": "wrap"},
    "Zero": {},
}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", NUMPY_MODES)
def test_padding(axes, kind):
    padding = [2, 1, 0, 2, 1, 2][: 2 * axes]
    pairs = [(0, 0), (0, 0), *[tuple(padding[i : i + 2]) for i in range(0, 2 * axes, 2)][::-1]]
    check(
        getattr(nn, f"{kind}Pad{axes}d")(padding),
        lambda x: np.pad(x, pairs, **NUMPY_MODES[kind]),
        random(*SHAPES[axes]),
    )


def test_padding_may_crop():
    x = random(1, 2, 5)
    assert nn.ConstantPad1d((-2, 1), 3.0)(tenon.tensor(x)).shape == (1, 2, 4)
    cropped = F.pad(tenon.tensor(x), [-1, -1], mode="reflect")
    np.testing.assert_array_equal(cropped.numpy(), x[:, :, 1:-1])
    with pytest.raises(ValueError, match="expected mode one of constant, reflect, replicate"):
        F.pad(tenon.tensor(x), [1, 1], mode="edge")
    with pytest.raises(ValueError, match="ZeroPad2d: expected padding of one number or 4"):
        nn.ZeroPad2d((1, 2))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_convolutions_with_padding_modes(mode):
    numpy_mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    check(
        nn.Conv1d(4, 2, 3, padding=2, padding_mode=mode),
        lambda x, w, b: reference_nd.conv(
            np.pad(x, [(0, 0), (0, 0), (2, 2)], mode=numpy_mode), w, b
        ),
        random(*SHAPES[1]),
    )


def test_same_padding_keeps_extents():
    x = tenon.tensor(random(*SHAPES[2]))
    for kernel in (2, 3, (4, 1)):
        assert nn.Conv2d(4, 3, kernel, padding="same")(x).shape == (2, 3, 5, 4)
    assert nn.Conv2d(4, 3, 2, padding="valid")(x).shape == (2, 3, 4, 3)
    with pytest.raises(ValueError, match="padding='same' needs stride 1"):
        nn.Conv2d(4, 3, 2, padding="same", stride=2)
    with pytest.raises(ValueError, match="expected padding to be sizes, 'same' or 'valid'"):
        nn.Conv2d(4, 3, 2, padding="full")
    with pytest.raises(ValueError, match="expected padding_mode one of zeros, reflect"):
        nn.Conv2d(4, 3, 2, padding_mode="edge")


def test_transposed_convolutions_reach_an_output_size():
    module = nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
    x = tenon.tensor(random(*SHAPES[2]))
    assert module(x).shape == (2, 2, 9, 7)
    assert module(x, output_size=[10, 8]).shape == (2, 2, 10, 8)
    with pytest.raises(ValueError, match=r"expected output_size from \[9, 7\] to \[10, 8\]"):
        module(x, output_size=[11, 8])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"stride": 1, "padding": 1}])
def test_pooling(axes, settings):
    x = random(*SHAPES[axes])
    check(
        getattr(nn, f"MaxPool{axes}d")(2, **settings),
        lambda x: reference_nd.pool(x, np.max, 2, **settings, fill=-np.inf),
        x,
    )
    check(
        getattr(nn, f"AvgPool{axes}d")(2, **settings),
        lambda x: reference_nd.pool(x, np.mean, 2, **settings),
        x,
    )
    if not settings:
        check(
            getattr(nn, f"LPPool{axes}d")(2.0, 2),
            lambda x: np.sqrt(reference_nd.pool(x**2, np.sum, 2)),
            x,
        )


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_adaptive_pooling(axes, size):
    x = random(*SHAPES[axes])
    for name, reduce in (("Avg", np.mean), ("Max", np.max)):
        check(
            getattr(nn, f"Adaptive{name}Pool{axes}d")(size),
            lambda x, reduce=reduce: reference_nd.adaptive_pool(x, reduce, size),
            x,
        )


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_indices_of_maxima_and_unpooling(axes):
    x = random(*SHAPES[axes])
    pool = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)
    values, indices = pool(tenon.tensor(x))
    flat = x.reshape(*x.shape[:2], -1)
    picked = np.take_along_axis(flat, indices.numpy().reshape(*x.shape[:2], -1), 2)
    np.testing.assert_array_equal(picked.reshape(values.shape), values.numpy())
    unpool = getattr(nn, f"MaxUnpool{axes}d")(2)
    back = unpool(values, indices, output_size=x.shape).numpy()
    np.testing.assert_array_equal(back, np.where(np.isin(x, values.numpy()), x, 0.0))


def test_average_pooling_with_a_divisor():
    check(
        nn.AvgPool2d(2, divisor_override=3),
        lambda x: reference_nd.pool(x, np.sum, 2) / 3,
        random(*SHAPES[2]),
    )
    with pytest.raises(ValueError, match="AvgPool2d: expected divisor_override above 0"):
        nn.AvgPool2d(2, divisor_override=0)


def test_fractional_pooling_takes_maxima_of_windows():
    tenon.manual_seed(0)
    x = random(1, 2, 8, 8)
    out = nn.FractionalMaxPool2d(2, output_ratio=0.5)(tenon.tensor(x)).numpy()
    assert out.shape == (1, 2, 4, 4)
    assert np.isin(out, x).all() and out[0, 0, -1, -1] == x[0, 0, -2:, -2:].max()
    with pytest.raises(ValueError, match="expected one of output_size and output_ratio"):
        nn.FractionalMaxPool2d(2)(tenon.tensor(x))


def test_samples_without_a_batch():
    x = tenon.tensor(random(4, 5, 4))
    batch = x.unsqueeze(0)
    for module in (
        nn.Conv2d(4, 3, 2),
        nn.ConvTranspose2d(4, 3, 2),
        nn.MaxPool2d(2),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(2),
        nn.InstanceNorm2d(4),
        nn.PixelShuffle(2),
    ):
        np.testing.assert_allclose(
            module(x).detach().numpy(), module(batch)[0].detach().numpy(), rtol=1e-5, atol=1e-6
        )


def test_unfold_and_fold():
    x = random(2, 3, 5, 4)

    def columns(x):
        view = reference_nd.windows(x, (2, 3), (2, 1), (1, 1), (1, 1))
        return view.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, -1)

    check(nn.Unfold((2, 3), stride=(2, 1), padding=1), columns, x)
    counts = nn.Fold((5, 4), (2, 3), stride=(2, 1), padding=1)
    covered = counts(tenon.tensor(columns(np.ones_like(x)).astype(np.float32)))
    folded = counts(tenon.tensor(columns(x).astype(np.float32)))
    np.testing.assert_allclose((folded / covered).numpy(), x, rtol=1e-6)
    with pytest.raises(ValueError, match=r"fold: expected x of shape \[N, C \* 6, "):
        nn.Fold((5, 4), (2, 3))(tenon.zeros(2, 18, 5))


def test_shuffles_are_permutations():
    x = tenon.arange(2 * 8 * 4 * 6).cast(tenon.float32).reshape([2, 8, 4, 6])
    shuffled = nn.PixelShuffle(2)(x)
    assert shuffled.shape == (2, 2, 8, 12)
    assert shuffled[0, 0, 0, :2].tolist() == [0.0, 24.0]
    assert nn.PixelUnshuffle(2)(shuffled).tolist() == x.tolist()
    assert nn.ChannelShuffle(2)(x)[0, :, 0, 0].tolist() == [0, 96, 24, 120, 48, 144, 72, 168]
    assert nn.Unflatten(1, (2, -1))(x).shape == (2, 2, 4, 4, 6)
    assert nn.Flatten(1, 2)(x).shape == (2, 32, 6)
    moved = F.temporal_shift(x, 2)
    assert moved.shape == x.shape and moved[1, 0].tolist() == x[0, 0].tolist()


def linear_weights(extent, size, corners):
    """The matrix [size, extent] of linear interpolation."""
    at = np.linspace(0, extent - 1, size) if corners else (np.arange(size) + 0.5) * extent / size
    at = at if corners else np.clip(at - 0.5, 0, extent - 1)
    return np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(extent)))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_linear_interpolation(axes, corners):
    sizes = [6, 3, 7][:axes]

    def expected(x):
        for axis, size in enumerate(sizes, 2):
            matrix = linear_weights(x.shape[axis], size, corners)
            x = np.moveaxis(np.tensordot(matrix, x, ((1,), (axis,))), 0, axis)
        return x

    mode = ["linear", "bilinear", "trilinear"][axes - 1]
    check(nn.Upsample(sizes, mode=mode, align_corners=corners), expected, random(*SHAPES[axes]))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_nearest_and_area_interpolation(axes):
    x = random(*SHAPES[axes])

    def expected(x):
        for axis in range(2, x.ndim):
            x = np.repeat(x, 2, axis)
        return x

    check(nn.Upsample(scale_factor=2), expected, x)
    check(nn.Upsample(2, mode="area"), lambda x: reference_nd.adaptive_pool(x, np.mean, 2), x)
    with pytest.raises(ValueError, match=r"\[interpolate\] expected mode 'nearest'"):
        F.interpolate(tenon.tensor(x), 2, mode="cubic")
    with pytest.raises(ValueError, match="expected one of size and scale_factor"):
        F.interpolate(tenon.tensor(x))


def test_cubic_interpolation_is_exact_for_lines():
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8).repeat(8, 2)
    out = F.interpolate(tenon.tensor(x), [8, 15], mode="bicubic", align_corners=True).numpy()
    np.testing.assert_allclose(out[0, 0, 3, 4:11], np.arange(4, 11) / 2, rtol=1e-5)


def test_grid_sample_of_the_identity_returns_the_image():
    x = random(2, 3, 4, 5)
    theta = tenon.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]] * 2)
    for corners in (False, True):
        grid = F.affine_grid(theta, [2, 3, 4, 5], align_corners=corners)
        for mode in ("bilinear", "nearest"):
            out = F.grid_sample(tenon.tensor(x), grid, mode, align_corners=corners)
            np.testing.assert_allclose(out.numpy(), x, rtol=1e-4, atol=1e-5)
    module = With(Sample(), np.asarray(grid.numpy()) * 0.7)
    tensor = tenon.tensor(x.astype(np.float64), requires_grad=True)
    assert tenon.autograd.gradcheck(lambda t: module(t), [tensor])


class Sample(nn.Module):
    def forward(self, x, grid):
        return nn.functional.grid_sample(x, grid.cast(x.dtype), padding_mode="reflection")
