# SPDX-License-Identifier: Apache-2.0
"""Detectors: torchvision's numbers of parameters, what their parts do, training and results."""

import pytest
import tenon
from tenon import nn
from tenon.vision.models import detection
from tenon.vision.models.detection import boxes as steps
from tenon.vision.models.detection.images import ImageTransform
from tenon.vision.models.detection.regions import MultiScaleRoIAlign, pasted
from tenon.vision.models.detection.ssd import DefaultBoxGenerator

# Parameters that torchvision's models with as many classes as COCO have.
MODELS = {
    "fasterrcnn_resnet50_fpn": 41_808_406,
    "fasterrcnn_resnet50_fpn_v2": 43_712_278,
    "fasterrcnn_mobilenet_v3_large_fpn": 19_410_754,
    "maskrcnn_resnet50_fpn": 44_454_513,
    "maskrcnn_resnet50_fpn_v2": 46_359_409,
    "retinanet_resnet50_fpn": 34_068_119,
    "retinanet_resnet50_fpn_v2": 38_198_935,
    "fcos_resnet50_fpn": 32_322_720,
    "ssd300_vgg16": 35_641_826,
    "ssdlite320_mobilenet_v3_large": 3_440_060,
    "keypointrcnn_resnet50_fpn": 59_190_378,
}


@pytest.fixture
def undrawn(monkeypatch):
    """Numbers of parameters do not depend on their first values, which take seconds to draw."""

    def same(tensor, *args, **kwargs):
        return tensor

    for name in ("uniform_", "normal_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_"):
        monkeypatch.setattr(nn.init, name, same)


class Small(nn.Module):
    """A backbone of two levels."""

    out_channels = 8

    def __init__(self):
        self.conv = nn.Conv2d(3, 8, 3, 8, 1)

    def forward(self, x):
        level = self.conv(x)
        return {"0": level, "1": level[:, :, ::2, ::2]}


def small(kind, **settings):
    tenon.manual_seed(0)
    anchors = detection.AnchorGenerator(((16, 24), (32, 48)), ((0.5, 1.0, 2.0),) * 2)
    name = "anchor_generator" if kind is detection.RetinaNet else "rpn_anchor_generator"
    return kind(Small(), 3, min_size=64, max_size=96, **{name: anchors}, **settings)


IMAGES = [tenon.ones([3, 50, 60]) * 0.5, tenon.ones([3, 64, 48]) * 0.2]


def targets():
    found = [[[4.0, 5.0, 40.0, 44.0], [20.0, 10.0, 58.0, 48.0]], [[10.0, 5.0, 40.0, 44.0]]]
    return [
        {
            "boxes": tenon.tensor(rows),
            "labels": tenon.arange(1, len(rows) + 1),
            "masks": tenon.ones([len(rows), *image.shape[1:]]),
        }
        for rows, image in zip(found, IMAGES)
    ]


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_torchvisions(name, undrawn):
    model = getattr(detection, name)()
    assert sum(p.numel() for p in model.parameters()) == MODELS[name]


@pytest.mark.parametrize("kind", [detection.MaskRCNN, detection.RetinaNet], ids=["mask", "retina"])
def test_training(kind):
    model = small(kind, **({} if kind is detection.RetinaNet else {"box_batch_size_per_image": 12}))
    if kind is detection.RetinaNet:
        wanted = [{**each, "labels": each["labels"] - 1} for each in targets()]
    else:
        wanted = targets()
    optimizer = tenon.optim.SGD(model.parameters(), 0.01)
    sums = []
    for _ in range(3):
        tenon.manual_seed(1)  # the same anchors are drawn
        losses = model(IMAGES, wanted)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums.append(loss.item())
    assert sums[-1] < sums[0]
    assert all(p.grad is not None for p in model.parameters())


def test_an_image_without_objects_trains():
    none = {"boxes": tenon.zeros([0, 4]), "labels": tenon.zeros([0], dtype="int64")}
    none["masks"] = tenon.zeros([0, 50, 60])
    losses = small(detection.MaskRCNN, box_batch_size_per_image=12)(IMAGES[:1], [none])
    assert losses["loss_box_reg"].item() == losses["loss_mask"].item() == 0.0
    assert losses["loss_objectness"].item() > 0.0


def test_results():
    model = small(detection.MaskRCNN, box_detections_per_img=5, box_score_thresh=0.0).eval()
    with tenon.no_grad():
        found = model(IMAGES)
    for each, image in zip(found, IMAGES):
        height, width = image.shape[1:]
        assert list(each["boxes"].shape) == [5, 4] and list(each["masks"].shape) == [
            5,
            1,
            height,
            width,
        ]
        assert bool((each["boxes"] >= 0).all()) and each["boxes"][:, 2].max().item() <= width + 1e-4
        assert each["scores"].tolist() == sorted(each["scores"].tolist(), reverse=True)
        assert set(each["labels"].tolist()) <= {1, 2}


def test_anchors():
    generator = detection.AnchorGenerator(((10,),), ((0.25, 1.0),))
    (anchors,) = generator((32, 64), [tenon.zeros([1, 1, 2, 2])])
    assert anchors.tolist()[:2] == [[-10.0, -2.0, 10.0, 2.0], [-5.0, -5.0, 5.0, 5.0]]
    assert anchors.tolist()[3] == [27.0, -5.0, 37.0, 5.0]  # one place to the right
    with pytest.raises(ValueError, match="expected 1 levels of features"):
        generator((32, 64), [])


def test_sizes_of_default_boxes():
    for count, want in ((1, [0.2, 0.9]), (2, [0.2, 0.9, 1.0]), (3, [0.2, 0.55, 0.9, 1.0])):
        boxes = DefaultBoxGenerator([[2]] * count, min_ratio=0.2, max_ratio=0.9)
        assert boxes.scales == pytest.approx(want)


def test_matching():
    overlaps = tenon.tensor([[0.9, 0.45, 0.1, 0.0], [0.0, 0.2, 0.3, 0.0]])
    assert steps.match(overlaps, 0.5, 0.4).tolist() == [0, steps.BETWEEN, -1, -1]
    assert steps.match(overlaps, 0.5, 0.4, True).tolist() == [0, steps.BETWEEN, 1, -1]


def test_images_are_resized_padded_and_boxes_follow():
    batch, moved = ImageTransform(64, 96)(IMAGES, targets())
    assert batch.sizes == [(64, 76), (85, 64)] and list(batch.tensors.shape) == [2, 3, 96, 96]
    assert moved[0]["boxes"][0].tolist() == pytest.approx(
        [4 * 76 / 60, 6.4, 40 * 76 / 60, 44 * 64 / 50]
    )
    assert list(moved[0]["masks"].shape) == [2, 64, 76]


def test_boxes_look_at_the_level_of_their_size():
    features = {"0": tenon.zeros([1, 1, 56, 56]), "1": tenon.ones([1, 1, 28, 28])}
    rows = tenon.tensor([[0.0, 0.0, 200.0, 200.0], [0.0, 0.0, 20.0, 20.0]])
    pooled = MultiScaleRoIAlign(["0", "1"], 2, 2)(features, [rows], [(224, 224)])
    assert pooled.mean([1, 2, 3]).tolist() == [1.0, 0.0]


def test_masks_are_pasted_at_their_box():
    drawn = pasted(tenon.ones([1, 1, 4, 4]), tenon.tensor([[2.0, 2.0, 6.0, 6.0]]), (8, 8))
    assert list(drawn.shape) == [1, 1, 8, 8]
    assert drawn[0, 0, 4, 4].item() == 1.0 and drawn[0, 0, 0].max().item() == 0.0


def test_what_is_refused():
    model = small(detection.FasterRCNN)
    with pytest.raises(ValueError, match="expected targets in training, got None"):
        model(IMAGES)
    with pytest.raises(ValueError, match="expected 2 targets, got 1"):
        model(IMAGES, targets()[:1])
    bad = targets()
    bad[0]["boxes"] = tenon.tensor([[4.0, 4.0, 4.0, 8.0]])
    with pytest.raises(ValueError, match="expected boxes x0 < x1 and y0 < y1"):
        model(IMAGES, bad)
    with pytest.raises(ValueError, match="expected images"):
        model([tenon.zeros([1, 3, 4, 4])], targets()[:1])
    with pytest.raises(ValueError, match="got weights_backbone='DEFAULT'"):
        detection.retinanet_resnet50_fpn(weights_backbone="DEFAULT")
