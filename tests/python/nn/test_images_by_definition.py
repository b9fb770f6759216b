# SPDX-License-Identifier: Apache-2.0
"""Layers of images and sequences beside their definitions in NumPy, and what they refuse and show."""

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


# -- convolutions ----------------------------------------------------------------------------------

MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_margins_of_convolutions_have_sizes_and_modes(axes, mode):
    kernel, pad = (3, 2, 4)[:axes], (1, 0, 2)[:axes]
    x = random(2, 2, *(5, 6, 7)[:axes])
    layer = getattr(nn, f"Conv{axes}d")(
        2, 3, kernel, padding=pad, padding_mode=mode, dtype=tenon.float64
    )
    around = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)], MODES[mode])
    function = getattr(F, f"conv{axes}d")
    want = function(T(around), layer.weight, layer.bias).detach().numpy()
    close(layer(T(x)), want)
    close(layer(T(x[0])), want[0])
    same = getattr(nn, f"Conv{axes}d")(2, 3, kernel, padding="same", padding_mode=mode, dilation=2,
                                       dtype=tenon.float64)  # fmt: skip
    totals = [2 * (k - 1) for k in kernel]
    around = np.pad(x, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in totals)], MODES[mode])
    want = function(T(around), same.weight, same.bias, dilation=2).detach().numpy()
    close(same(T(x)), want)
    assert same(T(x)).shape[2:] == x.shape[2:]
    if mode == "zeros" and axes != 2:  # the operator takes sizes alone
        close(function(T(x), same.weight, same.bias, padding="same", dilation=2), want)
    valid = getattr(nn, f"Conv{axes}d")(2, 3, kernel, padding="valid", dtype=tenon.float64)
    close(valid(T(x)), function(T(x), valid.weight, valid.bias).detach().numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_layers_reach_the_sizes_between_their_smallest_and_largest(axes):
    stride, pad, kernel = (2, 3, 4)[:axes], (1, 0, 1)[:axes], (3, 4, 5)[:axes]
    layer = getattr(nn, f"ConvTranspose{axes}d")(2, 3, kernel, stride, pad)
    x = tenon.ones(1, 2, *(4, 3, 2)[:axes])
    least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], stride, pad, kernel)]
    assert layer(x).shape == (1, 3, *least)
    for size in (least, [n + s - 1 for n, s in zip(least, stride)]):
        assert layer(x, size).shape == (1, 3, *size) == layer(x, [1, 3, *size]).shape
        assert layer(x[0], size).shape == (3, *size)
    for change in (-1, stride[0]):
        with pytest.raises(ValueError, match=r"expected output_size from \["):
            layer(x, [least[0] + change, *least[1:]])
    with pytest.raises(ValueError, match="expected padding_mode 'zeros', got 'reflect'"):
        type(layer)(2, 3, kernel, padding_mode="reflect")


def test_refusals_and_texts_of_convolutions():
    for make, text in (
        (
            lambda: nn.Conv2d(3, 4, 2, groups=2),
            "channels divisible by groups 2, got 3 in and 4 out",
        ),
        (
            lambda: nn.Conv2d(4, 3, 2, groups=2),
            "channels divisible by groups 2, got 4 in and 3 out",
        ),
        (
            lambda: nn.Conv1d(2, 2, 2, padding_mode="wrap"),
            "padding_mode one of zeros, reflect, .*'wrap'",
        ),
        (lambda: nn.Conv1d(2, 2, 2, padding="full"), "sizes, 'same' or 'valid', got 'full'"),
        (lambda: nn.Conv1d(2, 2, 2, 2, "same"), r"padding='same' needs stride 1, got \(2,\)"),
        (
            lambda: nn.Conv2d(2, 2, (1, 2, 3)),
            r"expected kernel_size to be one number or 2, got \(1, 2, 3\)",
        ),
        (lambda: nn.Conv2d(2, 2, 1, (1, 2, 3)), "expected stride to be one number or 2"),
        (lambda: nn.MaxPool3d((1, 2)), r"expected kernel_size to be one number or 3, got \(1, 2\)"),
        (
            lambda: F.conv1d(T(random(1, 1, 4)), T(random(1, 1, 2)), padding="full"),
            "'same' or 'valid'",
        ),
        (
            lambda: F.conv1d(T(random(1, 1, 4)), T(random(1, 1, 2)), None, 2, "same"),
            "needs stride 1",
        ),
        (
            lambda: F.conv3d(T(random(1, 1, 4)), T(random(1, 1, 2))),
            r"conv3d: expected x of shape \[N, C",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    assert repr(nn.Conv2d(4, 6, 3)) == "Conv2d(4, 6, (3, 3), stride=(1, 1))"
    full = nn.Conv2d(4, 6, (3, 2), 2, 1, 3, 2, False, "reflect")
    assert repr(full) == (
        "Conv2d(4, 6, (3, 2), stride=(2, 2), padding=(1, 1), dilation=(3, 3), groups=2, "
        "padding_mode=reflect, bias=False)"
    )
    assert "output_padding=(1,)" in repr(nn.ConvTranspose1d(2, 2, 3, 2, 0, 1))
    grouped = nn.ConvTranspose2d(4, 6, (3, 2), groups=2)
    assert grouped.weight.shape == (4, 3, 3, 2) and nn.Conv2d(4, 6, 3, groups=2).weight.shape == (
        6,
        2,
        3,
        3,
    )
    for layer, fan in ((nn.Conv2d(8, 200, 2), 32), (nn.ConvTranspose1d(50, 100, 4), 400)):
        with tenon.no_grad():
            layer.weight.fill_(9.0)
            layer.bias.fill_(9.0)
        layer.reset_parameters()
        for each in (layer.weight, layer.bias):
            assert 0.8 * fan**-0.5 < abs(each).max().item() <= fan**-0.5 and each.min().item() < 0


# -- layouts ---------------------------------------------------------------------------------------


def test_pixels_and_channels_change_places():
    x = random(2, 3, 8, 2, 5)
    want = x.reshape(2, 3, 2, 2, 2, 2, 5).transpose(0, 1, 2, 5, 3, 6, 4).reshape(2, 3, 2, 4, 10)
    for up in (nn.PixelShuffle(2), lambda t: F.pixel_shuffle(t, 2)):
        close(up(T(x)), want)
        close(up(T(x[0])), want[0])
        close(up(T(x[0, 0])), want[0, 0])
    for down in (nn.PixelUnshuffle(2), lambda t: F.pixel_unshuffle(t, 2)):
        close(down(T(want)), x)
        close(down(T(want[0, 0])), x[0, 0])
    for function in (F.pixel_shuffle, F.pixel_unshuffle):
        with pytest.raises(ValueError) as error:
            function(T(x[0, 0, 0]), 2)
        assert f"{function.__name__}: expected x of shape [..., C, H, W], got (2, 5)" in str(
            error.value
        )
    y = random(2, 6, 3)
    close(nn.ChannelShuffle(2)(T(y)), y.reshape(2, 2, 3, 3).transpose(0, 2, 1, 3).reshape(2, 6, 3))
    close(nn.Flatten()(T(x)), x.reshape(2, -1))
    close(nn.Flatten(0, 2)(T(x)), x.reshape(48, 2, 5))
    for axis in (2, -3):
        close(nn.Unflatten(axis, (2, -1))(T(x)), x.reshape(2, 3, 2, 4, 2, 5))
    assert nn.Identity(3, size=4)(T(y)) is not None


@pytest.mark.parametrize(
    "kernel, dilation, padding, stride",
    [(2, 1, 0, 1), ((3, 2), (1, 2), (1, 0), (2, 1)), ((2, 3), 2, (0, 2), 3), (1, 1, 1, (1, 2))],
)
def test_windows_as_columns(kernel, dilation, padding, stride):
    both = lambda size: (size, size) if isinstance(size, int) else size
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(both, (kernel, dilation, padding, stride))
    x = random(2, 3, 7, 8)
    around = np.pad(x, [(0, 0), (0, 0), (ph, ph), (pw, pw)])
    rows = range(0, 7 + 2 * ph - dh * (kh - 1), sh)
    columns = range(0, 8 + 2 * pw - dw * (kw - 1), sw)
    parts = [around[:, :, i : i + dh * (kh - 1) + 1 : dh, j : j + dw * (kw - 1) + 1 : dw]
             for i in rows for j in columns]  # fmt: skip
    want = np.stack([part.reshape(2, -1) for part in parts], -1)
    settings = (kernel, dilation, padding, stride)
    close(F.unfold(T(x), *settings), want)
    close(nn.Unfold(*settings)(T(x)), want)
    y = random(*want.shape)
    back = F.fold(T(y), (7, 8), *settings)
    close(nn.Fold((7, 8), *settings)(T(y)), back.numpy())
    np.testing.assert_allclose((want * y).sum(), (x * back.numpy()).sum())
    # Where a window has one element, its columns are channels, of any number.
    for wrong in (y[:, :, :-1], *([y[:, :-1]] if kh * kw > 1 else [])):
        with pytest.raises(ValueError) as error:
            F.fold(T(wrong), (7, 8), *settings)
        assert f"[N, C * {kh * kw}, {want.shape[2]}] for an output of 7 x 8" in str(error.value)
    with pytest.raises(ValueError, match=r"unfold: expected x of shape \[N, C, H, W\], got"):
        F.unfold(T(x[0]), kernel)


def test_channels_that_move_in_time():
    x = random(6, 8, 2, 2)
    parts = x.reshape(2, 3, 8, 2, 2)
    for ratio, first, second in ((0.25, 2, 4), (0.125, 1, 2)):
        want = parts.copy()
        want[:, 0, :first], want[:, 1:, :first] = 0, parts[:, :-1, :first]
        want[:, -1, first:second], want[:, :-1, first:second] = 0, parts[:, 1:, first:second]
        close(F.temporal_shift(T(x), 3, ratio), want.reshape(x.shape))


def test_masks_of_lengths():
    lengths = T([[0, 2], [3, 1]])
    want = np.arange(3) < lengths.numpy()[..., None]
    for mask, dtype in (
        (F.sequence_mask(lengths), tenon.int64),
        (F.sequence_mask(lengths, dtype=tenon.bool), tenon.bool),
        (F.sequence_mask(lengths, 3, tenon.float32), tenon.float32),
    ):
        assert mask.dtype == dtype and mask.tolist() == want.astype(int).tolist()
    assert F.sequence_mask(lengths, 5).shape == (2, 2, 5)


def test_sizes_of_resized_images():
    x = T(random(1, 2, 5, 6))
    assert F.interpolate(x, 3).shape == (1, 2, 3, 3) and F.interpolate(x, (3, 4)).shape[2:] == (
        3,
        4,
    )
    assert F.interpolate(x, scale_factor=1.5).shape[2:] == (7, 9)
    assert F.upsample(x, scale_factor=(2.0, 0.5)).shape[2:] == (10, 3)
    for mode in ("bilinear", "bicubic"):
        by_size = F.interpolate(x, (7, 9), mode=mode)
        again = F.interpolate(x, scale_factor=1.5, mode=mode, recompute_scale_factor=True)
        close(again, by_size.numpy())
        pair = F.interpolate(x, scale_factor=(1.5, 1.5), mode=mode, recompute_scale_factor=True)
        close(pair, by_size.numpy())
        grid = F.interpolate(x, scale_factor=1.5, mode=mode)
        assert abs(grid - by_size).max().item() > 1e-3
    near = nn.UpsamplingNearest2d(scale_factor=2)(x)
    close(near, x.numpy().repeat(2, 2).repeat(2, 3))
    corners = nn.UpsamplingBilinear2d(size=(9, 11))(x)
    close(corners[:, :, ::2, ::2], x.numpy())
    close(nn.Upsample((9, 11), mode="bilinear", align_corners=True)(x), corners.numpy())
    plain = nn.Upsample((9, 11), mode="bilinear")(x)
    assert abs(plain - corners).max().item() > 1e-3
    assert repr(nn.Upsample(scale_factor=2.0)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert repr(nn.Upsample(3)) == "Upsample(size=3, mode='nearest')"


def test_dropout_layers_and_switches():
    x = tenon.ones(4, 3, 5)
    for layer in (nn.Dropout(), nn.Dropout1d(), nn.AlphaDropout(), nn.FeatureAlphaDropout()):
        assert layer.p == 0.5 and repr(layer) == f"{type(layer).__name__}(0.5)"
        tenon.manual_seed(0)
        assert layer(x).tolist() != x.tolist()
        assert layer.eval()(x).tolist() == x.tolist()
        for p in (-0.1, 1.1):
            with pytest.raises(ValueError, match=f"{type(layer).__name__}: expected a probability"):
                type(layer)(p)
    assert nn.Dropout(0.0)(x).tolist() == x.tolist() and nn.Dropout(1.0)(x).sum().item() == 0
    for make, text in (
        (
            lambda: nn.Linear(2, 3, 4),
            "Linear: expected bias to be True or False, got 4; pass settings",
        ),
        (lambda: nn.Linear(2, 3, bias="no"), "expected bias to be True or False, got 'no'"),
        (lambda: nn.Linear(2, 3, None), "expected bias to be True or False, got None"),
        (
            lambda: nn.Upsample(2, None, "bilinear", 3),
            "align_corners to be True, False or None, got 3",
        ),
    ):
        with pytest.raises(TypeError, match=text):
            make()
    assert nn.Linear(2, 3, 0).bias is None and nn.Linear(2, 3, np.bool_(False)).bias is None
    assert nn.Upsample(2, None, "nearest", None).align_corners is None


def test_similarities_as_layers():
    a, b = random(4, 3), random(4, 3)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    close(nn.CosineSimilarity()(T(a), T(b)), cosine)
    close(nn.CosineSimilarity(0)(T(a), T(b)), F.cosine_similarity(T(a), T(b), 0).numpy())
    close(nn.CosineSimilarity(eps=100.0)(T(a), T(b)), (a * b).sum(1) / 1e4)
    close(nn.PairwiseDistance(1.0, 0.5, True)(T(a), T(b)), abs(a - b + 0.5).sum(1, keepdims=True))
    close(nn.PairwiseDistance()(T(a), T(b)), np.linalg.norm(a - b + 1e-6, axis=1))
    one = random(1, 3)
    wide = np.broadcast_to(one, (4, 3))
    close(
        F.cosine_similarity(T(a), T(one), 0), F.cosine_similarity(T(a), T(wide.copy()), 0).numpy()
    )
