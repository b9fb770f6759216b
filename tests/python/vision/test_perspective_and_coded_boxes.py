# SPDX-License-Identifier: Apache-2.0
"""Perspective and box_coder beside formulas, and beside torchvision and PaddlePaddle where they are there."""

import importlib

import numpy as np
import pytest
import tenon
from tenon.vision import datasets, ops, transforms
from tenon.vision.transforms import functional as F

STARTS = [[0, 0], [7, 0], [7, 5], [0, 5]]
ENDS = [[1, 2], [6, 1], [7, 5], [0, 4]]


def rng():
    return np.random.default_rng(3)


def boxes(count):
    low = rng().uniform(0, 5, (count, 2))
    return np.concatenate([low, low + rng().uniform(1, 4, (count, 2))], 1).astype(np.float32)


def test_points_that_stay_leave_the_image():
    image = rng().integers(0, 256, (3, 6, 8)).astype(np.uint8)
    same = F.perspective(tenon.tensor(image), STARTS, STARTS)
    np.testing.assert_array_equal(same.numpy(), image)
    mirrored = F.perspective(
        tenon.tensor(image), [[0, 0], [8, 0], [8, 6], [0, 6]], [[8, 0], [0, 0], [0, 6], [8, 6]]
    )
    np.testing.assert_array_equal(mirrored.numpy(), image[:, :, ::-1])


def test_what_was_outside_is_filled():
    image = tenon.full([1, 6, 8], 9.0)
    moved = F.perspective(image, STARTS, [[x + 20, y] for x, y in STARTS], fill=2.0)
    assert moved.tolist() == tenon.full([1, 6, 8], 2.0).tolist()


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_perspective_beside_torchvision(interpolation, dtype):
    torch = pytest.importorskip("torch")
    peer = pytest.importorskip("torchvision.transforms.functional")
    image = (rng().uniform(0, 255, (2, 3, 6, 8))).astype(dtype)
    modes = peer.InterpolationMode
    mode = modes.NEAREST if interpolation == "nearest" else modes.BILINEAR
    want = peer.perspective(torch.tensor(image), STARTS, ENDS, mode).numpy()
    got = F.perspective(tenon.tensor(image), STARTS, ENDS, interpolation)
    assert str(got.dtype).endswith(dtype)
    off = abs(got.numpy().astype(float) - want.astype(float)) > (1 if dtype == "uint8" else 2e-3)
    # A point in the middle between two pixels is that of either, by how the last bit is rounded.
    assert off.mean() <= (0.05 if interpolation == "nearest" else 0)


def test_points_of_a_line_are_refused():
    image = tenon.zeros([1, 6, 8])
    with pytest.raises(ValueError, match="expected endpoints of which no three are on a line, got"):
        F.perspective(image, STARTS, [[0, 0], [1, 1], [2, 2], [0, 5]])
    with pytest.raises(ValueError, match=r"expected startpoints of four \(x, y\), got"):
        F.perspective(image, STARTS[:3], ENDS)


def test_random_perspective_moves_corners_inwards():
    tenon.manual_seed(0)
    transform = transforms.RandomPerspective(0.6, p=1.0)
    for _ in range(5):
        starts, ends = transform.points(10, 20)
        assert starts == [[0, 0], [19, 0], [19, 9], [0, 9]]
        for (x, y), (u, v) in zip(starts, ends):
            assert abs(x - u) <= 6 and abs(y - v) <= 3 and 0 <= u < 20 and 0 <= v < 10
    image = tenon.normal([3, 10, 20])
    assert transform(image).shape == (3, 10, 20) and transform(image).tolist() != image.tolist()
    assert transforms.RandomPerspective(p=0.0)(image) is image
    with pytest.raises(ValueError, match="expected distortion_scale from 0 to below 1, got 1"):
        transforms.RandomPerspective(1)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_coded_boxes_are_decoded(normalized, axis):
    priors, targets = tenon.tensor(boxes(3)), tenon.tensor(boxes(5)[1:])
    variance = tenon.tensor(rng().uniform(0.1, 0.5, (3, 4)).astype(np.float32))
    coded = ops.box_coder(priors, variance, targets, box_normalized=normalized)
    coded = coded if axis == 0 else coded.transpose(0, 1)
    back = ops.box_coder(priors, variance, coded, "decode_center_size", normalized, axis).numpy()
    assert coded.shape == ((4, 3, 4) if axis == 0 else (3, 4, 4))
    want = np.broadcast_to(targets.numpy()[:, None], (4, 3, 4))
    want = want if axis == 0 else want.transpose(1, 0, 2)
    # A coded box has its centre between its corners, a decoded one has it half a side from the first pixel.
    np.testing.assert_allclose(back, want if normalized else want - 0.5, atol=1e-5)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("variance", ["rows", "four", "none"])
@pytest.mark.parametrize("code", ["encode", 0, 1])
def test_box_coder_beside_paddle(normalized, variance, code):
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    paddle = importlib.import_module("paddle")
    priors = boxes(3)
    given = {
        "rows": rng().uniform(0.1, 0.5, (3, 4)).astype(np.float32),
        "four": [0.1, 0.1, 0.2, 0.2],
        "none": None,
    }
    var = given[variance]
    shape = {"encode": (4, 4), 0: (2, 3, 4), 1: (3, 2, 4)}[code]
    target = boxes(4) if code == "encode" else rng().normal(size=shape).astype(np.float32)
    settings = {
        "code_type": f"{'encode' if code == 'encode' else 'decode'}_center_size",
        "box_normalized": normalized,
    }
    if code != "encode":
        settings["axis"] = code
    rows = isinstance(var, np.ndarray)
    want = paddle.vision.ops.box_coder(
        paddle.to_tensor(priors),
        paddle.to_tensor(var) if rows else var or [1.0] * 4,
        paddle.to_tensor(target),
        **settings,
    )
    got = ops.box_coder(
        tenon.tensor(priors), tenon.tensor(var) if rows else var, tenon.tensor(target), **settings
    )
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=1e-5)


def test_box_coder_names_what_it_expects():
    priors, targets = tenon.tensor(boxes(3)), tenon.zeros([2, 4, 4])
    with pytest.raises(ValueError, match="box_coder: expected a code_type 'encode_center_size' or"):
        ops.box_coder(priors, None, targets, "encode")
    with pytest.raises(
        ValueError, match=r"target_box of shape \[N, M, 4\] with 3 in axis 1, got \(2, 4, 4\)"
    ):
        ops.box_coder(priors, None, targets, "decode_center_size")
    with pytest.raises(ValueError, match="prior_box_var of four numbers or of shape"):
        ops.box_coder(priors, [1.0], targets[0])


def test_image_folders_are_those_of_data():
    assert datasets.ImageFolder is tenon.data.ImageFolder
