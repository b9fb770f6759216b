# SPDX-License-Identifier: Apache-2.0
"""Boxes and regions of images: unusual numbers, many boxes, and what is refused."""

import numpy as np
import pytest
import tenon
from references.detection import nms
from running import to_tensor

NAN, INF = float("nan"), float("inf")


def many_boxes(count):
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 20, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(1, 8, (count, 2))], 1), rng.random(count)


@pytest.mark.parametrize("with_categories", [False, True])
def test_nms_of_many_boxes(with_categories, device):
    boxes, scores = many_boxes(90)
    categories = np.arange(90) % 3 if with_categories else None
    got = tenon.nms(
        to_tensor(boxes, device),
        to_tensor(scores, device),
        0.4,
        categories=None if categories is None else to_tensor(categories, device),
    )
    assert got.tolist() == nms(boxes, scores, 0.4, categories).tolist()


def test_nms_of_none_and_of_boxes_without_area(device):
    none = tenon.nms(to_tensor(np.ones((0, 4)), device), to_tensor(np.ones(0), device), 0.5)
    assert none.shape == (0,) and str(none.dtype) == "int64"
    points = to_tensor(np.array([[1.0, 1, 1, 1], [1, 1, 1, 1], [NAN, 0, 2, 2]]), device)
    scores = to_tensor(np.array([0.5, 0.7, 0.2]), device)
    assert tenon.nms(points, scores, 0.5).tolist() == [1, 0, 2]


def test_regions_that_are_not_finite_or_far_away_are_zeros(device):
    x = to_tensor(np.ones((1, 2, 4, 5), np.float32), device)
    boxes = np.array(
        [[NAN, 0, 2, 2], [0, 0, INF, 2], [-90, -90, -80, -80], [1e9, 1e9, 2e9, 2e9]], np.float32
    )
    index = to_tensor(np.zeros(4, np.int64), device)
    for ratio in (2, -1):
        if ratio < 0:
            boxes = boxes[:3]
            index = index[:3]
        got = tenon.roi_align(x, to_tensor(boxes, device), index, [2, 3], 1.0, ratio)
        np.testing.assert_array_equal(got.to("cpu").numpy(), 0.0)


def test_an_infinite_element_is_seen_where_it_has_weight(device):
    image = np.ones((1, 1, 4, 5), np.float32)
    image[0, 0, 3, 4] = INF
    boxes = to_tensor(np.array([[0, 0, 2, 2]], np.float32), device)
    index = to_tensor(np.array([0]), device)
    for pool in (tenon.roi_align, tenon.roi_pool):
        got = pool(to_tensor(image, device), boxes, index, 2)
        np.testing.assert_array_equal(got.to("cpu").numpy(), 1.0)


def test_roi_pool_of_nan_and_of_nothing(device):
    image = np.full((1, 1, 4, 5), -INF, np.float32)
    image[0, 0, 1, 1] = NAN
    boxes = to_tensor(np.array([[0, 0, 3, 3], [9, 9, 9, 9]], np.float32), device)
    got = tenon.roi_pool(to_tensor(image, device), boxes, to_tensor(np.array([0, 0]), device), 2)
    np.testing.assert_array_equal(
        got.to("cpu").numpy()[:, 0], [[[NAN, -INF], [-INF, -INF]], [[0, 0], [0, 0]]]
    )


def test_a_region_too_large_to_sample_one_by_one_is_quick():
    """Samples outside of the image are not visited."""
    x = tenon.ones((1, 1, 4, 5), dtype="float64")
    boxes = tenon.tensor([[-1e9, -1e9, 1e9, 1e9]], dtype="float64")
    got = tenon.roi_align(x, boxes, tenon.tensor([0]), 1).item()
    # A row and a column of samples at the border may round to either side of it.
    assert got == pytest.approx(30 / 4e18, rel=0.5)


def test_windows_that_are_not_moved_are_those_of_a_convolution(device):
    rng = np.random.default_rng(5)
    x, weight = (to_tensor(rng.standard_normal(s), device) for s in ((2, 4, 6, 7), (6, 2, 3, 2)))
    geometry = {"stride": [2, 1], "padding": [1, 2], "dilation": [1, 2]}
    want = tenon.conv2d(x, weight, None, *geometry.values(), 2)
    offset = to_tensor(np.zeros((2, 24, *want.shape[2:])), device)
    got = tenon.deform_conv2d(x, offset, weight, **geometry)
    np.testing.assert_allclose(got.to("cpu").numpy(), want.to("cpu").numpy(), atol=1e-10)
    far = to_tensor(np.full(tuple(offset.shape), INF), device)
    assert not tenon.deform_conv2d(x, far, weight, **geometry).to("cpu").numpy().any()


BOXES = tenon.tensor([[0.0, 0.0, 1.0, 1.0]])
IMAGE, FIRST = tenon.ones((1, 1, 4, 5)), tenon.tensor([0])
REFUSED = {
    "nms of vectors": (
        lambda: tenon.nms(tenon.ones((4,)), tenon.ones((1,)), 0.5),
        r"\[nms\] expected boxes to have 2 axes, \[N, 4\], got shape \(4,\)",
    ),
    "nms of other scores": (
        lambda: tenon.nms(BOXES, tenon.ones((2,)), 0.5),
        "expected a number for each of 1 boxes, got scores of shape",
    ),
    "nms of fewer than none": (
        lambda: tenon.nms(BOXES, tenon.ones((1,)), 0.5, count=-1),
        "expected a count of at least 0, got -1",
    ),
    "format": (
        lambda: tenon.box_convert(BOXES, "xyxy", "yxyx"),
        "expected a format 'xyxy', 'xywh' or 'cxcywh', got 'yxyx'",
    ),
    "boxes of three": (
        lambda: tenon.box_convert(tenon.ones((2, 3)), "xyxy", "xywh"),
        r"expected boxes of shape \[..., 4\], got \(2, 3\)",
    ),
    "weights": (lambda: tenon.box_encode(BOXES, BOXES, [1.0]), "expected four weights, got 1"),
    "zero weight": (
        lambda: tenon.box_decode(BOXES, BOXES, [1.0, 0.0, 1.0, 1.0]),
        "expected weights that are finite and not 0, got 0",
    ),
    "ratio": (
        lambda: tenon.box_decode(BOXES, BOXES, max_ratio=0.0),
        "expected max_ratio above 0, got 0",
    ),
    "roi_align of a plane": (
        lambda: tenon.roi_align(tenon.ones((4, 5)), BOXES, FIRST, 2),
        r"\[roi_align\] expected images \[N, C, H, W\] with elements, got shape \(4, 5\)",
    ),
    "roi_pool without images": (
        lambda: tenon.roi_pool(IMAGE, BOXES, tenon.tensor([0, 0]), 2),
        r"\[roi_pool\] expected boxes \[K, 4\] and image_index \[K\], got shapes",
    ),
    "offsets": (
        lambda: tenon.deform_conv2d(IMAGE, IMAGE, tenon.ones((1, 1, 1, 1))),
        r"expected offset \[N, 2 \* parts \* 1, 4, 5\], with a number of parts that divides 1",
    ),
    "filters": (
        lambda: tenon.deform_conv2d(IMAGE, IMAGE, tenon.ones((1, 2, 1, 1))),
        r"expected a weight \[filters, channels / groups, height, width\] for x of shape",
    ),
    "no channels": (
        lambda: tenon.deform_conv2d(tenon.ones((1, 0, 4, 5)), IMAGE, tenon.ones((1, 2, 1, 1))),
        r"expected a weight \[filters, channels / groups, height, width\] for x of shape \(1, 0, 4, 5\)",
    ),
    "bins": (
        lambda: tenon.roi_align(IMAGE, BOXES, FIRST, 0),
        "expected output_size of at least 1, got",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_an_image_that_is_not_there():
    for pool in (tenon.roi_align, tenon.roi_pool):
        with pytest.raises(IndexError, match="1"):
            pool(IMAGE, BOXES, tenon.tensor([1]), 2)
