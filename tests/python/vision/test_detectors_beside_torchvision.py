# SPDX-License-Identifier: Apache-2.0
"""Detectors beside torchvision's, where it is installed, with its weights and small backbones: what they find, losses and gradients."""

import collections

import numpy as np
import pytest
import tenon
from tenon.vision import ops
from tenon.vision.models import detection

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

RNG = np.random.default_rng(5)
IMAGES = [RNG.random((3, 90, 120), np.float32), RNG.random((3, 110, 100), np.float32)]
BOXES = [[[10, 12, 60, 70], [40, 20, 110, 85]], [[5, 30, 80, 100]]]
SIZES = {"min_size": 96, "max_size": 128}


def small(library, tensors, gathered):
    """A backbone of two levels, which are gathered in a dict or a list."""

    class Small(library.Module):
        def __init__(self):
            super().__init__()
            self.out_channels = 32
            self.first = library.Conv2d(3, 32, 3, 8, 1)
            self.second = library.Conv2d(32, 32, 3, 2, 1)

        def forward(self, x):
            level = tensors.sigmoid(self.first(x))
            return gathered([("0", level), ("1", tensors.sigmoid(self.second(level)))])

    return Small()


def values_of(pairs):
    return [value for _, value in pairs]


def models(name):
    """torchvision's model, and ours with its weights."""
    sides = (
        (torchvision.models.detection, torch.nn, torch, collections.OrderedDict),
        (detection, tenon.nn, tenon, values_of if name == "SSD" else dict),
    )
    made = []
    torch.manual_seed(0)
    for module, layers, tensors, gathered in sides:
        backbone = small(layers, tensors, gathered)
        if name == "SSD":
            backbone.out_channels = [32, 32]
            kind = getattr(module, name, None) or module.ssd.SSD
            boxes = module.ssd.DefaultBoxGenerator([[2], [2, 3]], scales=[0.3, 0.5, 0.9])
            made.append(kind(backbone, boxes, (64, 96), 4, score_thresh=0.2, detections_per_img=25))
            continue
        generator = (getattr(module, "anchor_utils", None) or module.anchors).AnchorGenerator
        if name == "FCOS":
            anchors = generator(((8,), (16,)), ((1.0,),) * 2)
            settings = {"anchor_generator": anchors, "score_thresh": 0.0, "topk_candidates": 30}
            made.append(module.FCOS(backbone, 4, **SIZES, **settings))
            continue
        parts = module.keypoint_rcnn
        settings = {
            "rpn_anchor_generator": generator(((16, 24), (32, 48)), ((0.5, 1.0, 2.0),) * 2),
            "keypoint_head": parts.KeypointRCNNHeads(32, [16, 16]),
            "keypoint_predictor": parts.KeypointRCNNPredictor(16, 3),
            "box_detections_per_img": 5,
            "box_score_thresh": 0.0,
            "box_batch_size_per_image": 10**6,  # all proposals train, as draws differ
            "rpn_batch_size_per_image": 10**6,
        }
        made.append(module.KeypointRCNN(backbone, 2, **SIZES, **settings))
    theirs, mine = made
    for head, sampler in ((theirs, "fg_bg_sampler"),) if name == "KeypointRCNN" else ():
        for part in (head.rpn, head.roi_heads):
            getattr(part, sampler).positive_fraction = 0.5
        for part in (mine.rpn, mine.roi_heads):
            part.positive_fraction = 0.5
    with torch.no_grad():
        for key, parameter in theirs.named_parameters():
            if parameter.ndim > 1 and "backbone" not in key:
                torch.nn.init.normal_(parameter, 0.0, 0.6 / parameter[0].numel() ** 0.5)
    state = {key: tenon.tensor(value.numpy()) for key, value in theirs.state_dict().items()}
    mine.load_state_dict(state)
    return theirs, mine


def targets(make, name):
    rows = []
    for boxes in BOXES:
        corners = np.array(boxes, np.float32)
        count = len(boxes)
        parts = np.array([[0.2, 0.3], [0.7, 0.5], [1.5, 0.5]])
        points = corners[:, None, :2] + (corners[:, None, 2:] - corners[:, None, :2]) * parts
        seen = np.ones((count, 3, 1))
        seen[0, 1] = 0
        labels = np.ones(count, np.int64) if name == "KeypointRCNN" else np.arange(count) % 3 + 1
        keypoints = np.concatenate([points, seen], -1).astype(np.float32)
        rows.append({"boxes": make(corners), "labels": make(labels), "keypoints": make(keypoints)})
    return rows


NAMES = ["KeypointRCNN", "FCOS", "SSD"]


@pytest.mark.parametrize("name", NAMES)
def test_finds_the_same(name):
    theirs, mine = models(name)
    theirs.eval()
    mine.eval()
    with torch.no_grad(), tenon.no_grad():
        wanted = theirs([torch.tensor(image) for image in IMAGES])
        found = mine([tenon.tensor(image) for image in IMAGES])
    for got, want in zip(found, wanted, strict=True):
        assert {*got} == {*want} and len(want["boxes"]) > 3
        assert got["labels"].tolist() == want["labels"].tolist()
        for key in {*want} - {"labels"}:
            np.testing.assert_allclose(
                got[key].numpy(), want[key].numpy(), rtol=1e-4, atol=1e-4, err_msg=key
            )


@pytest.mark.parametrize("name", NAMES)
def test_trains_by_the_same_losses_and_gradients(name):
    theirs, mine = models(name)
    wanted = theirs([torch.tensor(image) for image in IMAGES], targets(torch.tensor, name))
    losses = mine([tenon.tensor(image) for image in IMAGES], targets(tenon.tensor, name))
    assert {*losses} == {*wanted}
    for key, want in wanted.items():
        assert want.item() > 0, key
        assert losses[key].item() == pytest.approx(want.item(), rel=1e-4), key
    sum(wanted.values()).backward()
    sum(losses.values()).backward()
    gradients = dict(mine.named_parameters())
    for key, parameter in theirs.named_parameters():
        want, got = parameter.grad.numpy(), gradients[key].grad.numpy()
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max() + 1e-6, key


def test_frozen_norms():
    theirs = torchvision.ops.FrozenBatchNorm2d(4, eps=1e-3)
    state = {key: torch.rand(4) + 0.5 for key in theirs.state_dict()}
    theirs.load_state_dict(state)
    mine = ops.FrozenBatchNorm2d(4, eps=1e-3)
    assert [*mine.state_dict()] == [*theirs.state_dict()] and not [*mine.parameters()]
    assert repr(mine) == repr(theirs)
    mine.load_state_dict({key: tenon.tensor(value.numpy()) for key, value in state.items()})
    x = RNG.standard_normal((2, 4, 3, 5), np.float32)
    want = theirs(torch.tensor(x)).numpy()
    np.testing.assert_allclose(mine(tenon.tensor(x)).numpy(), want, rtol=1e-6, atol=1e-6)


def test_norms_are_frozen_where_they_are():
    model = tenon.nn.Sequential(
        tenon.nn.Conv2d(3, 4, 3), tenon.nn.Sequential(tenon.nn.BatchNorm2d(4))
    )
    x = tenon.tensor(RNG.standard_normal((2, 3, 6, 6), np.float32))
    model(x)
    model.eval()
    want = model(x).detach().numpy()
    frozen = ops.FrozenBatchNorm2d.convert(model).train()
    assert isinstance(frozen[1][0], ops.FrozenBatchNorm2d)
    np.testing.assert_allclose(frozen(x).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    assert ops.FrozenBatchNorm2d.convert(tenon.nn.BatchNorm2d(2), eps=0.0).eps == 0.0
    with pytest.raises(ValueError, match="expected norms with track_running_stats=True"):
        ops.FrozenBatchNorm2d.convert(tenon.nn.BatchNorm2d(2, track_running_stats=False))
