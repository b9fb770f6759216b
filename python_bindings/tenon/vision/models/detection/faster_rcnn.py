# SPDX-License-Identifier: Apache-2.0
"""Faster R-CNN (Ren et al., 2015) and Mask R-CNN (He et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import init

from .._blocks import ConvNormActivation, untrained
from .anchors import AnchorGenerator
from .images import ImageTransform, Target, checked, original
from .proposals import Limits, RegionProposalNetwork, RPNHead
from .pyramid import LastLevelMaxPool, Norm, mobilenet_pyramid, resnet50_pyramid
from .regions import MultiScaleRoIAlign, RoIHeads, pasted

LEVELS = ("0", "1", "2", "3")
_RATIOS = (0.5, 1.0, 2.0)


class TwoMLPHead(nn.Module):
    """Two linear layers."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.fc7(nn.functional.relu(self.fc6(x.flatten(1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions of size 3 with a norm, and a linear layer."""

    def __init__(self, channels: int, size: int, depth: int, width: int) -> None:
        convolutions = [ConvNormActivation(channels, channels) for _ in range(depth)]
        super().__init__(
            *convolutions, nn.Flatten(), nn.Linear(channels * size * size, width), nn.ReLU()
        )
        _init_he(self)


class FastRCNNPredictor(nn.Module):
    """Scores of classes, and for each of them a box."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.cls_score(x), self.bbox_pred(x)


class MaskRCNNPredictor(nn.Sequential):
    """A mask of twice the size for each class."""

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: int) -> None:
        super().__init__()
        self.conv5_mask = nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2)
        self.relu = nn.ReLU()
        self.mask_fcn_logits = nn.Conv2d(dim_reduced, num_classes, 1)
        _init_he(self)


def _init_he(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("weight") and parameter.ndim == 4:
            init.kaiming_normal_(parameter, mode="fan_out", nonlinearity="relu")
        elif name.endswith("bias"):
            init.zeros_(parameter)


class FasterRCNN(nn.Module):
    """Finds objects in a list of images [3, H, W] with values from 0 to 1.

    In training it takes targets, dicts of "boxes" [K, 4] and "labels" [K] (0 is the background), and
    gives a dict of losses; after `eval()` a list of dicts of boxes, labels and scores. The backbone
    gives a dict of levels, all of `backbone.out_channels`.
    """

    def __init__(
        self,
        backbone: Any,  # a module with out_channels
        num_classes: int,
        min_size: int | Sequence[int] = 800,
        max_size: int = 1333,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        rpn_anchor_generator: AnchorGenerator | None = None,
        rpn_head: nn.Module | None = None,
        rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000,
        rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000,
        rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256,
        rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0,
        box_roi_pool: nn.Module | None = None,
        box_head: nn.Module | None = None,
        box_predictor: nn.Module | None = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5,
        box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: Sequence[float] | None = None,
    ) -> None:
        channels = backbone.out_channels
        anchors = rpn_anchor_generator or AnchorGenerator(
            ((32,), (64,), (128,), (256,), (512,)), (_RATIOS,) * 5
        )
        self.transform = ImageTransform(min_size, max_size, image_mean, image_std)
        self.backbone = backbone
        self.rpn = RegionProposalNetwork(
            anchors,
            rpn_head or RPNHead(channels, anchors.num_anchors_per_location()[0]),
            Limits(rpn_pre_nms_top_n_train, rpn_post_nms_top_n_train),
            Limits(rpn_pre_nms_top_n_test, rpn_post_nms_top_n_test),
            rpn_fg_iou_thresh,
            rpn_bg_iou_thresh,
            rpn_batch_size_per_image,
            rpn_positive_fraction,
            rpn_nms_thresh,
            rpn_score_thresh,
        )
        self.roi_heads = RoIHeads(
            box_roi_pool or MultiScaleRoIAlign(LEVELS, 7, 2),
            box_head or TwoMLPHead(channels * 7 * 7, 1024),
            box_predictor or FastRCNNPredictor(1024, num_classes),
            box_fg_iou_thresh,
            box_bg_iou_thresh,
            box_batch_size_per_image,
            box_positive_fraction,
            bbox_reg_weights,
            box_score_thresh,
            box_nms_thresh,
            box_detections_per_img,
        )

    def forward(self, images: Sequence[Tensor], targets: Sequence[Target] | None = None) -> Any:
        """Losses in training, otherwise what was found in each image."""
        if self.training:
            checked(type(self).__name__, images, targets)
        elif targets is not None:
            raise ValueError(f"{type(self).__name__}: expected targets in training only, got some")
        batch, moved = self.transform(images, targets)
        features = self.backbone(batch.tensors)
        proposals, losses = self.rpn(batch, list(features.values()), moved)
        found, more = self.roi_heads(features, proposals, batch.sizes, moved)
        if self.training:
            return more | losses
        for each, size, image in zip(found, batch.sizes, images):
            wanted = image.shape[-2:]
            each["boxes"] = original(each["boxes"], size, wanted)
            if "keypoints" in each:
                y, x = (mine / theirs for mine, theirs in zip(wanted, size))
                scale = tenon.tensor([x, y, 1.0], device=each["keypoints"].device)
                each["keypoints"] = each["keypoints"] * scale
            if "masks" in each:
                each["masks"] = pasted(each["masks"], each["boxes"], wanted)
        return found


class MaskRCNN(FasterRCNN):
    """Faster R-CNN that also draws the objects: targets have "masks" [K, H, W], and results masks
    [K, 1, H, W] with values from 0 to 1."""

    def __init__(
        self,
        backbone: Any,  # a module with out_channels
        num_classes: int,
        mask_roi_pool: nn.Module | None = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(backbone, num_classes, **settings)
        channels = backbone.out_channels
        self.roi_heads.mask_roi_pool = mask_roi_pool or MultiScaleRoIAlign(LEVELS, 14, 2)
        self.roi_heads.mask_head = mask_head or _mask_head(channels, None)
        self.roi_heads.mask_predictor = mask_predictor or MaskRCNNPredictor(256, 256, num_classes)


def _mask_head(channels: int, norm: Norm | None) -> nn.Sequential:
    head = nn.Sequential(
        *(ConvNormActivation(channels if place == 0 else 256, 256, norm=norm) for place in range(4))
    )
    _init_he(head)
    return head


def _second(settings: dict[str, Any]) -> tuple[nn.Module, dict[str, Any]]:
    """Backbone and heads of the second version (Li et al., 2021)."""
    heads: dict[str, Any] = {
        "rpn_head": RPNHead(256, 3, conv_depth=2),
        "box_head": FastRCNNConvFCHead(256, 7, 4, 1024),
    }
    backbone = resnet50_pyramid([1, 2, 3, 4], LastLevelMaxPool(), nn.BatchNorm2d)
    return backbone, heads | settings


def _mobile(settings: dict[str, Any]) -> dict[str, Any]:
    sizes = ((32, 64, 128, 256, 512),) * 3
    anchors = AnchorGenerator(sizes, (_RATIOS,) * 3)
    return {"rpn_anchor_generator": anchors, "rpn_score_thresh": 0.05} | settings


@untrained
def fasterrcnn_resnet50_fpn(num_classes: int = 91, **settings: Any) -> FasterRCNN:
    """Faster R-CNN over a pyramid of ResNet 50."""
    return FasterRCNN(resnet50_pyramid([1, 2, 3, 4], LastLevelMaxPool()), num_classes, **settings)


@untrained
def fasterrcnn_resnet50_fpn_v2(num_classes: int = 91, **settings: Any) -> FasterRCNN:
    """Faster R-CNN with norms and deeper heads."""
    backbone, settings = _second(settings)
    return FasterRCNN(backbone, num_classes, **settings)


@untrained
def fasterrcnn_mobilenet_v3_large_fpn(num_classes: int = 91, **settings: Any) -> FasterRCNN:
    """Faster R-CNN over a pyramid of the large MobileNet V3."""
    return FasterRCNN(mobilenet_pyramid(), num_classes, **_mobile(settings))


@untrained
def fasterrcnn_mobilenet_v3_large_320_fpn(num_classes: int = 91, **settings: Any) -> FasterRCNN:
    """Faster R-CNN over a pyramid of the large MobileNet V3, for small images."""
    small = {
        "min_size": 320,
        "max_size": 640,
        "rpn_pre_nms_top_n_test": 150,
        "rpn_post_nms_top_n_test": 150,
    }
    return FasterRCNN(mobilenet_pyramid(), num_classes, **_mobile(small | settings))


@untrained
def maskrcnn_resnet50_fpn(num_classes: int = 91, **settings: Any) -> MaskRCNN:
    """Mask R-CNN over a pyramid of ResNet 50."""
    return MaskRCNN(resnet50_pyramid([1, 2, 3, 4], LastLevelMaxPool()), num_classes, **settings)


@untrained
def maskrcnn_resnet50_fpn_v2(num_classes: int = 91, **settings: Any) -> MaskRCNN:
    """Mask R-CNN with norms and deeper heads."""
    backbone, settings = _second(settings)
    mask = {"mask_head": _mask_head(256, nn.BatchNorm2d)}
    return MaskRCNN(backbone, num_classes, **(mask | settings))
