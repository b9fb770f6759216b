# SPDX-License-Identifier: Apache-2.0
"""Layers of Paddle's that pad and resize images with one mode, beside the functions and, where it is installed, PaddlePaddle."""

import importlib

import numpy as np
import pytest
import tenon
from tenon.compat import paddle

RNG = np.random.default_rng(6)
SHAPES = {1: (2, 3, 5), 2: (2, 3, 5, 4), 3: (1, 2, 4, 5, 3)}
PADS = {1: [2, 1], 2: [1, 2, 0, 3], 3: [1, 0, 2, 1, 0, 1]}
CASES = [
    (f"{kind}Pad{axes}{letter}", axes, pad)
    for kind in ("Constant", "Reflection", "Replication", "Circular", "Zero")
    for axes in (1, 2, 3)
    for letter in ("D", "d")
    for pad in (1, PADS[axes])
    if (letter == "D" or kind != "Zero")
]
MODES = {
    "Constant": "constant",
    "Zero": "constant",
    "Reflection": "reflect",
    "Circular": "wrap",
    "Replication": "edge",
}


@pytest.mark.parametrize("name,axes,pad", CASES)
def test_pads(name, axes, pad):
    x = RNG.standard_normal(SHAPES[axes], np.float32)
    pad = [min(each, 2) for each in pad] if isinstance(pad, list) else pad
    more = (2.5,) if "Constant" in name else ()
    layer = getattr(paddle.nn, name)(pad, *more)
    got = layer(tenon.tensor(x)).numpy()
    pairs = [pad] * (2 * axes) if isinstance(pad, int) else pad
    widths = [(0, 0), (0, 0), *reversed([*zip(pairs[::2], pairs[1::2], strict=True)])]
    mode = MODES[name[: name.index("Pad")]]
    options = {"constant_values": more[0] if more else 0.0} if mode == "constant" else {}
    np.testing.assert_array_equal(got, np.pad(x, widths, mode, **options))


def test_pads_of_channels_last():
    x = RNG.standard_normal((2, 4, 5, 3), np.float32)
    got = paddle.nn.ReflectionPad2D([1, 1, 2, 0], "NHWC")(tenon.tensor(x)).numpy()
    np.testing.assert_array_equal(got, np.pad(x, [(0, 0), (2, 0), (1, 1), (0, 0)], "reflect"))


def test_layers_beside_paddle():
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    theirs = importlib.import_module("paddle")
    if not hasattr(theirs, "to_tensor"):
        pytest.skip("paddle is Tenon's own package of headers")
    x = RNG.standard_normal((2, 3, 4, 5), np.float32)
    for name, settings in (
        ("UpsamplingNearest2D", {"scale_factor": 2}),
        ("UpsamplingNearest2D", {"size": [7, 6]}),
        ("UpsamplingBilinear2D", {"scale_factor": 3}),
        ("UpsamplingBilinear2D", {"size": [2, 9]}),
        ("ConstantPad2D", {"padding": [1, 0, 2, 3], "value": -1.0}),
        ("ReflectionPad2D", {"padding": 2}),
        ("ReplicationPad2D", {"padding": [0, 3, 1, 0]}),
        ("CircularPad2D", {"padding": 1}),
    ):
        want = getattr(theirs.nn, name)(**settings)(theirs.to_tensor(x)).numpy()
        got = getattr(paddle.nn, name)(**settings)(tenon.tensor(x)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_random_slopes():
    layer = paddle.nn.RReLU(0.1, 0.3)
    x = tenon.full([1000], -1.0)
    drawn = -layer(x)
    assert 0.1 <= drawn.min().item() < 0.12 and 0.28 < drawn.max().item() <= 0.3
    layer.eval()
    assert layer(tenon.tensor([-1.0, 2.0])).tolist() == pytest.approx([-0.2, 2.0])
    for bounds in ((-0.5, 0.2), (0.3, 0.2), (0.1, 1.5)):
        with pytest.raises(ValueError, match="expected 0 <= lower <= upper <= 1, got"):
            paddle.nn.functional.rrelu(x, *bounds, training=False)
    with pytest.raises(NotImplementedError, match="expected is_sparse=False, got True"):
        paddle.nn.functional.hsigmoid_loss(
            tenon.ones([1, 2]), tenon.tensor([[0]]), 2, tenon.ones([1, 2]), is_sparse=True
        )
