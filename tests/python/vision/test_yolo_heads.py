# SPDX-License-Identifier: Apache-2.0
"""Heads of YOLO in two steps beside one, and images in files."""

import io

import numpy as np
import pytest
import tenon
from tenon.vision import ops


def test_a_head_and_its_boxes_are_those_of_yolo_box():
    generator = np.random.default_rng(0)
    anchors, classes = [10, 13, 16, 30], 3
    maps = [
        tenon.tensor(generator.standard_normal((2, 16, n, n + 1)).astype(np.float32))
        for n in (3, 2)
    ]
    shape, scale = (
        tenon.tensor([[96.0, 128.0], [64.0, 64.0]]),
        tenon.tensor([[1.0, 2.0], [0.5, 1.0]]),
    )
    heads = [ops.yolo_box_head(x, anchors, classes) for x in maps]
    out, counts = ops.yolo_box_post(
        heads, shape, scale, [anchors, anchors], classes, 0.3, [32, 16], nms_threshold=0.4
    )
    boxes, scores = [], []
    for x, ratio in zip(maps, (32, 16)):
        one, score = ops.yolo_box(x, shape / scale, anchors, classes, 0.3, ratio)
        best = score == score.max(-1, keepdim=True)
        boxes.append(one)
        scores.append(tenon.where(best, score, 0.0))
    wanted, _, numbers = ops.multiclass_nms(
        tenon.concat(boxes, 1), tenon.concat(scores, 1).transpose(1, 2), 0.0, -1, -1, 0.4
    )
    assert counts.tolist() == numbers.tolist() and counts.sum().item() > 0
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="as many heads as anchors and downsample_ratios"):
        ops.yolo_box_post(heads, shape, scale, [anchors], classes, 0.3, [32, 16])


def test_descriptors_are_no_files():
    with pytest.raises(TypeError, match="read_file: expected a path, got int"):
        ops.read_file(0)


def test_pictures_in_files(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(1).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    stored = io.BytesIO()
    image.fromarray(pixels).save(stored, "JPEG", quality=95)
    (tmp_path / "a.jpg").write_bytes(stored.getvalue())
    data = ops.read_file(tmp_path / "a.jpg")
    assert data.numpy().tobytes() == stored.getvalue()
    with image.open(tmp_path / "a.jpg") as opened:
        wanted = np.array(opened)
        gray = np.array(opened.convert("L"))
    assert (ops.decode_jpeg(data).numpy() == wanted.transpose(2, 0, 1)).all()
    assert (ops.decode_jpeg(data, "gray").numpy() == gray[None]).all()
    with pytest.raises(ValueError, match="expected the bytes of a JPEG file"):
        ops.decode_jpeg(data[5:])
    with pytest.raises(ValueError, match="expected bytes, uint8"):
        ops.decode_jpeg(data.to(tenon.float32))
    with pytest.raises(ValueError, match="expected mode 'unchanged', 'gray' or 'rgb', got 'bgr'"):
        ops.decode_jpeg(data, "bgr")


def test_patches_that_are_compared():
    generator = np.random.default_rng(2)
    x, y = generator.standard_normal((2, 1, 2, 6, 7))
    out = tenon.correlation(tenon.tensor(x), tenon.tensor(y), 2, 3, 2, 2, 2).numpy()
    x, y = (np.pad(each[0], ((0, 0), (2, 2), (2, 2))) for each in (x, y))
    assert out.shape == (1, 9, 2, 3)
    for channel, (i, j) in enumerate((i, j) for i in (-2, 0, 2) for j in (-2, 0, 2)):
        for row in range(2):
            for column in range(3):
                at, to = 2 + 2 * row, 2 + 2 * column
                patch = (
                    x[:, at : at + 3, to : to + 3] * y[:, at + i : at + i + 3, to + j : to + j + 3]
                )
                assert out[0, channel, row, column] == pytest.approx(
                    patch.mean(), rel=1e-9, abs=1e-12
                )
    with pytest.raises(ValueError, match="expected an odd kernel_size, got 2"):
        tenon.correlation(tenon.zeros([1, 1, 4, 4]), tenon.zeros([1, 1, 4, 4]), 0, 2, 1)
    none = tenon.zeros([0, 1, 1, 1])  # which no memory limits
    for most, step, reach in ((1025, 1, 1025), (1 << 30, 1 << 10, 1 << 20)):
        with pytest.raises(
            ValueError,
            match=f"expected at most 1024 steps of stride2 in max_displacement, got {reach}",
        ):
            tenon.correlation(none, none, most, 1, most, 1, step)
