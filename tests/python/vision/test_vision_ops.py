# SPDX-License-Identifier: Apache-2.0
"""tenon.vision.ops against loops over boxes, bins and cells."""

import math

import numpy as np
import pytest
import tenon
from tenon.vision import ops

rng = np.random.default_rng(5)


def T(array, dtype="float32"):
    return tenon.tensor(np.asarray(array, dtype))


def random_boxes(count, size=20.0):
    low = rng.uniform(0, size, (count, 2))
    return np.concatenate([low, low + rng.uniform(1, size / 2, (count, 2))], 1).astype(np.float32)


def iou(a, b, pixel=0.0):
    sides = [min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + pixel for k in (0, 1)]
    shared = max(sides[0], 0) * max(sides[1], 0)
    area = [(box[2] - box[0] + pixel) * (box[3] - box[1] + pixel) for box in (a, b)]
    return shared / (area[0] + area[1] - shared)


def greedy(boxes, scores, threshold, pixel=0.0, eta=1.0):
    kept = []
    for place in np.argsort(-scores, kind="stable"):
        if all(iou(boxes[place], boxes[other], pixel) <= threshold for other in kept):
            kept.append(int(place))
            threshold *= eta if threshold > 0.5 else 1
    return kept


def test_regions_have_channels_for_each_bin():
    x = rng.normal(size=(2, 12, 9, 8)).astype(np.float32)
    boxes = np.array([[1, 2, 9, 12], [3.4, 0, 15, 7.6], [-4, -6, 40, 40]], np.float32)
    counts, scale, (height, width) = [1, 2], 0.5, (3, 2)
    got = ops.psroi_pool(T(x), T(boxes), T(counts, "int32"), (height, width), scale).numpy()
    want = np.zeros((3, 2, height, width))
    for k, image in enumerate([0, 1, 1]):
        x0, y0 = np.round(boxes[k, :2]) * scale
        x1, y1 = (np.round(boxes[k, 2:]) + 1) * scale
        across, down = max(x1 - x0, 0.1) / width, max(y1 - y0, 0.1) / height
        for c, i, j in np.ndindex(2, height, width):
            rows = slice(
                max(math.floor(y0 + i * down), 0), max(min(math.ceil(y0 + (i + 1) * down), 9), 0)
            )
            columns = slice(
                max(math.floor(x0 + j * across), 0),
                max(min(math.ceil(x0 + (j + 1) * across), 8), 0),
            )
            part = x[image, (c * height + i) * width + j, rows, columns]
            want[k, c, i, j] = part.mean() if part.size else 0
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert ops.psroi_pool(T(x), T(np.zeros((0, 4))), T([0, 0], "int32"), 2).shape == (0, 3, 2, 2)


def test_gradients_of_regions():
    x = tenon.tensor(rng.normal(size=(1, 4, 5, 5)), requires_grad=True)
    boxes, counts = tenon.tensor([[0.0, 1.0, 3.0, 4.0]], dtype="float64"), T([1], "int32")
    tenon.autograd.gradcheck(lambda x: ops.psroi_pool(x, boxes, counts, 2), [x])


@pytest.mark.parametrize("max_first", [False, True])
def test_prior_boxes(max_first):
    boxes, variances = ops.prior_box(
        tenon.zeros([1, 3, 2, 3]),
        tenon.zeros([1, 3, 40, 60]),
        min_sizes=[8.0, 12.0],
        max_sizes=[16.0, 20.0],
        aspect_ratios=[1.0, 2.0],
        flip=True,
        steps=[0.0, 10.0],
        min_max_aspect_ratios_order=max_first,
    )
    assert boxes.shape == variances.shape == (2, 3, 8, 4)
    np.testing.assert_allclose(variances.numpy()[1, 2, 3], [0.1, 0.1, 0.2, 0.2])
    root = math.sqrt(2)
    own, between = [(8 * root, 8 / root), (8 / root, 8 * root)], [(math.sqrt(128),) * 2]
    shapes = [(8, 8)] + (between + own if max_first else own + between)
    for prior, (width, height) in enumerate(shapes):
        x, y = (2 + 0.5) * 20, (1 + 0.5) * 10
        want = [
            (x - width / 2) / 60,
            (y - height / 2) / 40,
            (x + width / 2) / 60,
            (y + height / 2) / 40,
        ]
        np.testing.assert_allclose(boxes.numpy()[1, 2, prior], want, rtol=1e-5)
    clipped, _ = ops.prior_box(
        tenon.zeros([1, 1, 1, 1]), tenon.zeros([1, 1, 4, 4]), [9.0], clip=True
    )
    assert clipped.tolist() == [[[[0.0, 0.0, 1.0, 1.0]]]]


def test_matches_of_rows_and_columns():
    distances = T([[0.1, 0.9, 0.3, 0.0], [0.8, 0.7, 0.4, 0.0]])
    match, found = ops.bipartite_match(distances)
    assert match.tolist() == [[1, 0, -1, -1]]
    np.testing.assert_allclose(found.numpy(), [[0.8, 0.9, 0, 0]], rtol=1e-6)
    match, found = ops.bipartite_match(distances, "per_prediction", 0.35)
    assert match.tolist() == [[1, 0, 1, -1]]
    np.testing.assert_allclose(found.numpy(), [[0.8, 0.9, 0.4, 0]], rtol=1e-6)


@pytest.mark.parametrize("normalized, eta", [(True, 1.0), (False, 1.0), (True, 0.8)])
def test_suppression_of_classes(normalized, eta):
    boxes = np.stack([random_boxes(30), random_boxes(30)])
    scores = rng.uniform(0, 1, (2, 3, 30)).astype(np.float32)
    out, index, counts = ops.multiclass_nms(
        T(boxes),
        T(scores),
        0.3,
        12,
        10,
        nms_threshold=0.6,
        normalized=normalized,
        nms_eta=eta,
        background_label=1,
        return_index=True,
    )
    at = 0
    for image in range(2):
        rows = []
        for label in (0, 2):
            score = scores[image, label]
            order = [k for k in np.argsort(-score, kind="stable") if score[k] > 0.3][:12]
            chosen = greedy(boxes[image][order], score[order], 0.6, 1 - normalized, eta)
            rows += [(label, score[order[k]], order[k]) for k in chosen]
        rows = sorted(rows, key=lambda row: -row[1])[:10]
        assert counts.tolist()[image] == len(rows)
        for label, score, k in rows:
            np.testing.assert_allclose(out.numpy()[at], [label, score, *boxes[image, k]], rtol=1e-6)
            assert index.tolist()[at] == [image * 30 + k]
            at += 1
    assert out.shape == (at, 6)


@pytest.mark.parametrize("gaussian", [False, True])
def test_suppression_by_lower_scores(gaussian):
    boxes, scores = (
        random_boxes(12, 8.0)[None],
        rng.uniform(0.1, 1, (1, 2, 12)).astype(np.float32),
    )
    out, index, counts = ops.matrix_nms(
        T(boxes), T(scores), 0.2, 0.25, 9, -1, gaussian, 2.0, return_index=True
    )
    score = scores[0, 1]
    order = [k for k in np.argsort(-score) if score[k] > 0.2][:9]
    most, want = [], {}
    for n, k in enumerate(order):
        shared = [iou(boxes[0, k], boxes[0, j]) for j in order[:n]]
        decay = [
            math.exp((most[m] ** 2 - each**2) * 2) if gaussian else (1 - each) / (1 - most[m])
            for m, each in enumerate(shared)
        ]
        most.append(max(shared, default=0.0))
        lowered = score[k] * min([1.0, *decay])
        if lowered > 0.25:
            want[int(k)] = lowered
    assert counts.tolist() == [len(want)]
    assert sorted(index[:, 0].tolist()) == sorted(want)
    got = out.numpy()
    np.testing.assert_allclose(got[:, 1], [want[k] for k in index[:, 0].tolist()], rtol=1e-4)
    assert (np.diff(got[:, 1]) <= 0).all() and (got[:, 0] == 1).all()


def test_nothing_is_left_to_suppress():
    out, index, counts = ops.multiclass_nms(
        T(np.zeros((1, 3, 4))), T(np.zeros((1, 2, 3))), 0.5, -1, -1
    )
    assert out.shape == (0, 6) and index is None and counts.tolist() == [0]
    out, _, counts = ops.matrix_nms(
        T(np.zeros((2, 0, 4))), T(np.zeros((2, 3, 0))), 0.5, 0.1, -1, -1
    )
    assert out.shape == (0, 6) and counts.tolist() == [0, 0]


@pytest.mark.parametrize("pixel", [False, True])
def test_proposals(pixel):
    height, width, per_place = 3, 4, 2
    anchors = random_boxes(height * width * per_place, 30.0).reshape(height, width, per_place, 4)
    variances = np.full_like(anchors, 0.5)
    scores = rng.uniform(0, 1, (2, per_place, height, width)).astype(np.float32)
    deltas = rng.normal(size=(2, 4 * per_place, height, width)).astype(np.float32)
    sizes = np.array([[28, 35], [40, 30]], np.float32)
    rois, probs, counts = ops.generate_proposals(
        *map(T, (scores, deltas, sizes, anchors, variances)),
        pre_nms_top_n=18,
        post_nms_top_n=6,
        nms_thresh=0.4,
        min_size=3.0,
        pixel_offset=pixel,
        return_rois_num=True,
    )
    one, at = float(pixel), 0
    for image in range(2):
        found = []
        for a, h, w in np.ndindex(per_place, height, width):
            x0, y0, x1, y1 = anchors[h, w, a]
            dx, dy, dw, dh = deltas[image, 4 * a : 4 * a + 4, h, w] * 0.5
            side = np.array([x1 - x0 + one, y1 - y0 + one])
            centre = np.array([x0, y0]) + side / 2 + np.array([dx, dy]) * side
            half = np.exp(np.minimum([dw, dh], math.log(1000 / 16))) * side / 2
            limit = sizes[image][::-1] - one
            low = np.clip(centre - half, 0, limit)
            high = np.clip(centre + half - one, 0, limit)
            found.append((scores[image, a, h, w], *low, *high))
        found = np.array(sorted(found, reverse=True)[:18])
        found = found[((found[:, 3:] - found[:, 1:3] + one) >= 3).all(1)]
        kept = greedy(found[:, 1:], found[:, 0], 0.4, one)[:6]
        assert counts.tolist()[image] == len(kept)
        part = slice(at, at + len(kept))
        np.testing.assert_allclose(rois.numpy()[part], found[kept, 1:], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(probs.numpy()[part, 0], found[kept, 0], rtol=1e-6)
        at += len(kept)
    assert rois.shape[0] == at


def test_levels_of_a_pyramid():
    sizes = np.array([10, 56, 112, 113, 224, 500, 2000, 30.0])
    rois = np.stack([0 * sizes, 0 * sizes, sizes, sizes], 1)
    parts, restore, counts = ops.distribute_fpn_proposals(
        T(rois), 2, 5, 4, 224, rois_num=T([3, 5], "int32")
    )
    assert [part[:, 2].tolist() for part in parts] == [[10, 56, 30], [112, 113], [224], [500, 2000]]
    joined = tenon.concat(parts, axis=0)
    np.testing.assert_array_equal(joined[restore[:, 0].to("int64")].numpy(), rois)
    assert [each.tolist() for each in counts] == [[2, 1], [1, 1], [0, 1], [0, 2]]
    scores = [T(np.arange(len(part)) + 0.5 * level) for level, part in enumerate(parts)]
    best, numbers = ops.collect_fpn_proposals(parts, scores, 2, 5, 4, counts)
    # Scores: 0, 1, 2 and 0.5, 1.5 and 1 and 1.5, 2.5, of which images 0, 0, 1; 0, 1; 1; 1, 1.
    assert best[:, 2].tolist() == [2000, 30, 113, 500] and numbers.tolist() == [0, 4]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("clip", [False, True])
def test_boxes_of_yolo(aware, clip):
    anchors, classes, height, width, scale = [10, 13, 33, 23], 3, 2, 3, 1.1
    x = rng.normal(size=(2, 2 * (8 + aware), height, width))
    sizes = np.array([[60, 80], [64, 96]])
    boxes, scores = ops.yolo_box(
        T(x, "float64"), T(sizes, "int32"), anchors, classes, 0.4, 16, clip, scale, aware, 0.3
    )
    assert boxes.shape == (2, 12, 4) and scores.shape == (2, 12, 3)
    for n, a, h, w in np.ndindex(2, 2, height, width):
        v = x[n, 2 * aware :].reshape(2, 8, height, width)[a, :, h, w]
        cx = (sigmoid(v[0]) * scale - (scale - 1) / 2 + w) / width
        cy = (sigmoid(v[1]) * scale - (scale - 1) / 2 + h) / height
        bw = math.exp(v[2]) * anchors[2 * a] / (16 * width)
        bh = math.exp(v[3]) * anchors[2 * a + 1] / (16 * height)
        confidence = sigmoid(v[4])
        if aware:
            confidence = confidence**0.7 * sigmoid(x[n, a, h, w]) ** 0.3
        H, W = sizes[n]
        box = np.array([cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2]) * [W, H, W, H]
        if clip:
            box = [max(box[0], 0), max(box[1], 0), min(box[2], W - 1), min(box[3], H - 1)]
        sure = confidence >= 0.4
        at = (a * height + h) * width + w
        np.testing.assert_allclose(boxes.numpy()[n, at], np.array(box) * sure, rtol=1e-9, atol=1e-9)
        want = confidence * sigmoid(v[5:]) * sure
        np.testing.assert_allclose(scores.numpy()[n, at], want, rtol=1e-9)


def yolo_loss_by_loops(
    x, truth, labels, weights, anchors, mask, classes, threshold, stride, smooth
):
    batch, _, height, width = x.shape
    pairs = np.reshape(anchors, (-1, 2))
    values = x.reshape(batch, len(mask), 5 + classes, height, width)
    low = 1 / classes if smooth else 0

    def entropy(logit, target):
        return np.log1p(np.exp(-abs(logit))) + max(logit, 0) - logit * target

    losses = []
    for n in range(batch):
        loss, target = 0.0, np.zeros((len(mask), height, width))
        ignored = np.zeros(target.shape, bool)
        for a, h, w in np.ndindex(*target.shape):
            v = values[n, a, :, h, w]
            size = np.exp(v[2:4]) * pairs[mask[a]] / [stride * width, stride * height]
            centre = (sigmoid(v[:2]) + [w, h]) / [width, height]
            for box in truth[n]:
                if (box[2:] > 0).all():
                    corners = [*(centre - size / 2), *(centre + size / 2)]
                    true = [*(box[:2] - box[2:] / 2), *(box[:2] + box[2:] / 2)]
                    ignored[a, h, w] |= iou(corners, true) > threshold
        for box, label, weight in zip(truth[n], labels[n], weights[n]):
            if not (box[2:] > 0).all():
                continue
            shapes = pairs / [stride * width, stride * height]
            best = max(
                range(len(pairs)),
                key=lambda k: iou([0, 0, *box[2:]], [0, 0, *shapes[k]]),
            )
            if best not in mask:
                continue
            a, w, h = mask.index(best), int(box[0] * width), int(box[1] * height)
            v = values[n, a, :, h, w]
            place = entropy(v[0], box[0] * width - w) + entropy(v[1], box[1] * height - h)
            place += abs(v[2:4] - np.log(box[2:] / shapes[best])).sum()
            loss += weight * place * (2 - box[2] * box[3])
            for c in range(classes):
                loss += weight * entropy(v[5 + c], 1 - low if c == label else low)
            target[a, h, w] = weight
        for a, h, w in np.ndindex(*target.shape):
            logit = values[n, a, 4, h, w]
            if target[a, h, w] > 0:
                loss += target[a, h, w] * entropy(logit, 1)
            elif not ignored[a, h, w]:
                loss += entropy(logit, 0)
        losses.append(loss)
    return losses


YOLO_ANCHORS = [10, 13, 16, 30, 33, 23, 30, 61]


@pytest.mark.parametrize("smooth, weighted", [(True, False), (False, True)])
def test_loss_of_yolo(smooth, weighted):
    mask, classes = [1, 2, 3], 4
    x = rng.normal(size=(3, 27, 4, 4))
    truth = rng.uniform(0.1, 0.9, (3, 5, 4))
    truth[..., 2:] *= 0.6
    truth[1, 2:] = 0  # images have different numbers of boxes
    labels = rng.integers(0, classes, (3, 5))
    weights = rng.uniform(0.3, 1, (3, 5)) if weighted else np.ones((3, 5))
    got = ops.yolo_loss(
        T(x, "float64"),
        T(truth, "float64"),
        T(labels, "int32"),
        YOLO_ANCHORS,
        mask,
        classes,
        0.3,
        16,
        T(weights, "float64") if weighted else None,
        smooth,
    )
    want = yolo_loss_by_loops(
        x, truth, labels, weights, YOLO_ANCHORS, mask, classes, 0.3, 16, smooth
    )
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)


def test_gradients_of_yolo():
    x = tenon.tensor(rng.normal(size=(1, 14, 2, 2)), requires_grad=True)
    truth = tenon.tensor([[[0.3, 0.6, 0.4, 0.5]]], dtype="float64")
    labels = tenon.tensor([[1]])
    tenon.autograd.gradcheck(
        lambda x: ops.yolo_loss(x, truth, labels, [10, 13, 16, 30], [0, 1], 2, 0.7, 16), [x]
    )


def test_a_map_without_boxes_learns_that_there_are_none():
    x = tenon.zeros([2, 7, 2, 2])
    got = ops.yolo_loss(
        x, tenon.zeros([2, 0, 4]), tenon.zeros([2, 0], dtype="int64"), [4, 4], [0], 2, 0.7, 8
    )
    np.testing.assert_allclose(got.numpy(), 4 * math.log(2), rtol=1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: ops.psroi_pool(
                tenon.zeros([1, 5, 2, 2]), tenon.zeros([0, 4]), T([0], "int32"), 2
            ),
            "psroi_pool: expected channels that the bins divide, got 5 channels and 2 x 2 bins",
        ),
        (
            lambda: ops.psroi_pool(
                tenon.zeros([1, 4, 2, 2]), tenon.zeros([1, 4]), T([2], "int32"), 2
            ),
            "expected boxes_num of 1 numbers that add up to 1",
        ),
        (
            lambda: ops.yolo_box(
                tenon.zeros([1, 6, 2, 2]), T([[8, 8]], "int32"), [1, 2], 2, 0.1, 4
            ),
            r"yolo_box: expected x of shape \[N, 7, H, W\] for 1 anchors and 2 classes",
        ),
        (
            lambda: ops.yolo_loss(
                tenon.zeros([1, 7, 2, 2]),
                T([[[0.5, 0.5, 1, 1]]]),
                T([[2]], "int64"),
                [1, 2],
                [0],
                2,
                0.5,
                4,
            ),
            "yolo_loss: expected labels from 0 to 1",
        ),
        (
            lambda: ops.multiclass_nms(tenon.zeros([1, 3, 4]), tenon.zeros([1, 2, 4]), 0.1, -1, -1),
            r"multiclass_nms: expected scores of shape \[1, classes, 3\]",
        ),
        (lambda: ops.bipartite_match(tenon.zeros([2]), "bipartite"), "expected a matrix"),
        (lambda: ops.bipartite_match(tenon.zeros([2, 2]), "best"), "match_type 'bipartite' or"),
        (
            lambda: ops.prior_box(
                tenon.zeros([1, 1, 1, 1]), tenon.zeros([1, 1, 9, 9]), [4.0], [3.0]
            ),
            "expected a larger max_size for each min_size",
        ),
        (
            lambda: ops.distribute_fpn_proposals(tenon.zeros([1, 4]), 4, 3, 4, 224),
            "expected min_level <= max_level, got 4 and 3",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_frozen_norms_compute_as_the_norms_did(dtype):
    norm = tenon.nn.BatchNorm2d(2).to(dtype=getattr(tenon, dtype)).eval()
    frozen = ops.FrozenBatchNorm2d.convert(norm)
    assert frozen(tenon.ones([1, 2, 3, 3], dtype=dtype)).dtype == norm.running_mean.dtype
    assert not frozen.training
