# SPDX-License-Identifier: Apache-2.0
"""SSD (Liu et al., 2016): boxes of six maps of one network, found in one look, and its small form for phones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import functional as F
from tenon.nn import init

from .._blocks import ConvNormActivation, untrained
from ..mobilenet_v3 import MobileNetV3, reduced_large
from ..vgg import vgg16
from .boxes import BELOW, clipped, indices, suppressed
from .images import ImageTransform, Target, checked, original
from .proposals import rows_of
from .regions import BOX_WEIGHTS

__all__ = ["SSD", "DefaultBoxGenerator", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large"]

Norm = Callable[[int], nn.Module]


class DefaultBoxGenerator(nn.Module):
    """The boxes that each place of each map corrects: of size `scales[k]` of the image at map k, of the mean of this and the next one, and of the
    first for each of `aspect_ratios[k]` and its inverse. With `steps` positions are that many pixels apart; else the map's own number of positions
    divides the image."""

    def __init__(
        self,
        aspect_ratios: Sequence[Sequence[int]],
        min_ratio: float = 0.15,
        max_ratio: float = 0.9,
        scales: Sequence[float] | None = None,
        steps: Sequence[int] | None = None,
        clip: bool = True,
    ) -> None:
        count = len(aspect_ratios)
        if steps is not None and len(steps) != count:
            raise ValueError(
                f"DefaultBoxGenerator: expected {count} steps, as there are rows of aspect_ratios, got {len(steps)}"
            )
        if scales is None:
            span = max_ratio - min_ratio
            scales = [min_ratio + span * k / (count - 1.0) for k in range(count) if count > 1]
            scales = [*scales, 1.0] if count > 1 else [min_ratio, max_ratio]
        if len(scales) != count + 1:
            raise ValueError(
                f"DefaultBoxGenerator: expected {count + 1} scales, one more than rows of aspect_ratios, got {len(scales)}"
            )
        self.aspect_ratios, self.steps, self.clip = aspect_ratios, steps, clip
        self.scales = scales
        self._shapes = [self._pairs(k) for k in range(count)]

    def _pairs(self, level: int) -> Tensor:
        """Widths and heights [A, 2] of a map, in parts of the image."""
        size, between = self.scales[level], math.sqrt(self.scales[level] * self.scales[level + 1])
        pairs = [[size, size], [between, between]]
        for ratio in self.aspect_ratios[level]:
            width, height = size * math.sqrt(ratio), size / math.sqrt(ratio)
            pairs += [[width, height], [height, width]]
        return tenon.tensor(pairs)

    def num_anchors_per_location(self) -> list[int]:
        """How many boxes each place of each map has."""
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def forward(self, image_size: Sequence[int], features: Sequence[Tensor]) -> Tensor:
        """Boxes [K, 4] of all maps, for images of this height and width."""
        height, width = image_size
        rows = []
        for level, each in enumerate(features):
            shape = self._shapes[level]
            shape = shape.clip(0.0, 1.0) if self.clip else shape
            lines, columns = each.shape[-2:]
            down, right = (float(lines), float(columns))
            if self.steps is not None:
                down, right = height / self.steps[level], width / self.steps[level]
            y, x = tenon.meshgrid(
                [(tenon.arange(lines) + 0.5) / down, (tenon.arange(columns) + 0.5) / right],
                indexing="ij",
            )
            centre = tenon.stack([x.reshape([-1]), y.reshape([-1])], axis=-1)[:, None]
            boxes = tenon.concat([centre - 0.5 * shape, centre + 0.5 * shape], axis=-1)
            rows.append(boxes.reshape([-1, 4]))
        size = tenon.tensor([width, height, width, height], dtype="float32")
        return (tenon.concat(rows, axis=0) * size).to(features[0].device)


class _ScoringHead(nn.Module):
    """A block for each map, whose channels are `num_columns` numbers of each box."""

    def __init__(self, blocks: Sequence[nn.Module], num_columns: int) -> None:
        self.module_list = nn.ModuleList(list(blocks))
        self.num_columns = num_columns

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        rows = [rows_of(block(x), self.num_columns) for block, x in zip(self.module_list, features)]
        return tenon.concat(rows, axis=1)


class SSDHead(nn.Module):
    """Scores of classes and corrections of boxes. `block` makes what looks at a map, of the channels that come in and go out."""

    def __init__(
        self,
        in_channels: Sequence[int],
        num_anchors: Sequence[int],
        num_classes: int,
        block: Callable[[int, int], nn.Module] | None = None,
    ) -> None:
        make = block or (lambda channels, results: nn.Conv2d(channels, results, 3, padding=1))
        self.classification_head, self.regression_head = (
            _ScoringHead([make(c, columns * a) for c, a in zip(in_channels, num_anchors)], columns)
            for columns in (num_classes, 4)
        )
        initial = _init_xavier if block is None else _init_small
        initial(self)

    def forward(self, features: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        return self.classification_head(features), self.regression_head(features)


def _init_xavier(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            init.xavier_uniform_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)


def _init_small(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            init.normal_(module.weight, 0.0, 0.03)
            if module.bias is not None:
                init.zeros_(module.bias)


def _matched(overlaps: Tensor, threshold: float) -> Tensor:
    """The object of each box by their `overlaps` [objects, boxes], BELOW `threshold` none; but an object's best box is its own."""
    objects = tenon.argmax(overlaps, 0)
    matches = tenon.where(
        tenon.max(overlaps, axis=0) < threshold, tenon.full_like(objects, BELOW), objects
    )
    for number, best in enumerate(tenon.argmax(overlaps, 1).tolist()):
        matches[best] = number
    return matches


class SSD(nn.Module):
    """Finds objects in a list of images [3, H, W], as `FasterRCNN` does; all are resized to `size`, width and height. The backbone gives a list
    of maps. Of the boxes without an object those train that are farthest from the background, as many for each with one as
    `positive_fraction` says."""

    def __init__(
        self,
        backbone: Any,
        anchor_generator: DefaultBoxGenerator,
        size: tuple[int, int],
        num_classes: int,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        head: nn.Module | None = None,
        score_thresh: float = 0.01,
        nms_thresh: float = 0.45,
        detections_per_img: int = 200,
        iou_thresh: float = 0.5,
        topk_candidates: int = 400,
        positive_fraction: float = 0.25,
    ) -> None:
        self.backbone, self.anchor_generator = backbone, anchor_generator
        if head is None:
            head = SSDHead(
                backbone.out_channels, anchor_generator.num_anchors_per_location(), num_classes
            )
        self.head = head
        self.transform = ImageTransform(min(size), max(size), image_mean, image_std, 1, size)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates
        self.iou_thresh = iou_thresh
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def _losses(
        self, scores: Tensor, deltas: Tensor, anchors: Tensor, targets: Sequence[Target]
    ) -> dict[str, Tensor]:
        errors, labels = [], []
        for delta, target in zip(deltas, targets):
            boxes = target["boxes"]
            matches = tenon.full([anchors.shape[0]], BELOW, dtype="int64", device=anchors.device)
            label = tenon.zeros_like(matches)
            if boxes.shape[0]:
                matches = _matched(tenon.box_iou(boxes, anchors), self.iou_thresh)
                named = target["labels"].to("int64")[matches.clip(0, None)]
                label = tenon.where(matches >= 0, named, label)
            here = indices(matches >= 0)
            if here.shape[0]:
                wanted = tenon.box_encode(boxes[matches[here]], anchors[here], BOX_WEIGHTS)
                errors.append(F.smooth_l1_loss(delta[here], wanted, reduction="sum"))
            else:
                errors.append(delta.sum() * 0.0)
            labels.append(label)
        label = tenon.stack(labels, axis=0)
        costs = F.cross_entropy(
            scores.reshape([-1, scores.shape[-1]]), label.reshape([-1]), reduction="none"
        ).reshape(label.shape)
        found = label > 0
        with tenon.no_grad():
            hardest = tenon.where(found, tenon.full_like(costs, -math.inf), costs)
            place = tenon.argsort(tenon.argsort(hardest, 1, descending=True), 1)
            asked = place < self.neg_to_pos_ratio * found.sum(1, keepdim=True)
        count = max(1, int(found.sum().item()))
        zero = tenon.zeros_like(costs)
        return {
            "bbox_regression": sum(errors[1:], errors[0]) / count,
            "classification": tenon.where(found | asked, costs, zero).sum() / count,
        }

    def _detections(
        self, scores: Tensor, deltas: Tensor, anchors: Tensor, size: Sequence[int]
    ) -> dict[str, Tensor]:
        boxes = clipped(tenon.box_decode(deltas, anchors, BOX_WEIGHTS), size)
        rows, found, labels = [], [], []
        for label in range(1, scores.shape[-1]):
            score = scores[:, label]
            stay = indices(score > self.score_thresh)
            best, order = tenon.topk(score[stay], min(self.topk_candidates, stay.shape[0]))
            rows.append(boxes[stay[order]])
            found.append(best)
            labels.append(tenon.full_like(order, label))
        box, score, number = (tenon.concat(each, axis=0) for each in (rows, found, labels))
        stay = suppressed(box, score, number, self.nms_thresh, self.detections_per_img)
        return {"boxes": box[stay], "scores": score[stay], "labels": number[stay]}

    def forward(self, images: Sequence[Tensor], targets: Sequence[Target] | None = None) -> Any:
        """Losses in training, otherwise what was found in each image."""
        if self.training:
            checked("SSD", images, targets)
        elif targets is not None:
            raise ValueError("SSD: expected targets in training only, got some")
        batch, moved = self.transform(images, targets)
        features = self.backbone(batch.tensors)
        scores, deltas = self.head(features)
        anchors = self.anchor_generator(batch.tensors.shape[-2:], features)
        if moved is not None:
            return self._losses(scores, deltas, anchors, moved)
        found = []
        likely = tenon.softmax(scores, -1)
        for place, (size, image) in enumerate(zip(batch.sizes, images)):
            each = self._detections(likely[place], deltas[place], anchors, size)
            each["boxes"] = original(each["boxes"], size, image.shape[-2:])
            found.append(each)
        return found


class SSDFeatureExtractorVGG(nn.Module):
    """Six maps of VGG 16 and of convolutions behind it. The first one is normalised over its channels, and scaled."""

    out_channels = (512, 1024, 512, 256, 256, 256)

    def __init__(self) -> None:
        layers = list(vgg16().features)
        pools = [place for place, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d)]
        layers[pools[2]].ceil_mode = True
        self.scale_weight = nn.Parameter(tenon.full([512], 20.0))
        self.features = nn.Sequential(*layers[: pools[3]])
        last = nn.Sequential(
            nn.MaxPool2d(3, 1, 1),
            nn.Conv2d(512, 1024, 3, padding=6, dilation=6),
            nn.ReLU(),
            nn.Conv2d(1024, 1024, 1),
            nn.ReLU(),
        )
        extra = [_narrowed(1024, 256, 512, 2, 1), _narrowed(512, 128, 256, 2, 1)]
        extra += [_narrowed(256, 128, 256, 1, 0) for _ in range(2)]
        for block in (*extra, last):
            _init_xavier(block)
        behind = nn.Sequential(*layers[pools[3] : pools[4]], last)
        self.extra = nn.ModuleList([behind, *extra])

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.features(x)
        maps = [self.scale_weight.reshape([1, -1, 1, 1]) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            maps.append(x)
        return maps


def _narrowed(
    channels: int, inner: int, out_channels: int, stride: int, padding: int
) -> nn.Sequential:
    """A convolution of size 3 over fewer channels."""
    return nn.Sequential(
        nn.Conv2d(channels, inner, 1),
        nn.ReLU(),
        nn.Conv2d(inner, out_channels, 3, stride, padding),
        nn.ReLU(),
    )


def _separated(channels: int, out_channels: int, norm: Norm, stride: int) -> nn.Sequential:
    """Fewer channels, a convolution of each of them, more channels again."""
    inner = out_channels // 2
    unit = partial(ConvNormActivation, norm=norm, activation=nn.ReLU6)
    return nn.Sequential(
        unit(channels, inner, 1), unit(inner, inner, 3, stride, inner), unit(inner, out_channels, 1)
    )


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """Six maps of the large MobileNet V3 and of blocks behind it. The first one is inside of the block that halves the size for the
    last time."""

    def __init__(self, network: MobileNetV3, norm: Norm) -> None:
        blocks: list[Any] = list(network.features.children())
        split: list[Any] = list(blocks[13].block.children())
        rest = nn.Sequential()
        for place, module in enumerate(split[1:], 1):
            rest.add_module(str(place), module)
        self.features = nn.Sequential(
            nn.Sequential(*blocks[:13], split[0]), nn.Sequential(rest, *blocks[14:])
        )
        inner, last = split[0][0].out_channels, blocks[-1][0].out_channels
        widths = (512, 256, 256, 128)
        before = (last, *widths[:-1])
        self.extra = nn.ModuleList(
            [_separated(channels, width, norm, 2) for channels, width in zip(before, widths)]
        )
        _init_small(self.extra)
        self.out_channels = (inner, last, *widths)

    def forward(self, x: Tensor) -> list[Tensor]:
        maps = []
        for block in (*self.features, *self.extra):
            x = block(x)
            maps.append(x)
        return maps


@untrained
def ssd300_vgg16(num_classes: int = 91, **settings: Any) -> SSD:
    """SSD over VGG 16, for images of 300 x 300."""
    anchors = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]],
        scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[8, 16, 32, 64, 100, 300],
    )
    defaults: dict[str, Any] = {
        "image_mean": [0.48235, 0.45882, 0.40784],
        "image_std": [1.0 / 255.0] * 3,
    }
    return SSD(SSDFeatureExtractorVGG(), anchors, (300, 300), num_classes, **(defaults | settings))


@untrained
def ssdlite320_mobilenet_v3_large(num_classes: int = 91, **settings: Any) -> SSD:
    """SSD of separated convolutions over the large MobileNet V3 with a narrow end, for images of 320 x 320."""
    norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    network = reduced_large()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.03
    backbone = SSDLiteFeatureExtractorMobileNet(network, norm)
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)

    def block(channels: int, results: int) -> nn.Sequential:
        inner = ConvNormActivation(
            channels, channels, groups=channels, norm=norm, activation=nn.ReLU6
        )
        return nn.Sequential(inner, nn.Conv2d(channels, results, 1))

    head = SSDHead(backbone.out_channels, anchors.num_anchors_per_location(), num_classes, block)
    defaults: dict[str, Any] = {
        "head": head,
        "score_thresh": 0.001,
        "nms_thresh": 0.55,
        "detections_per_img": 300,
        "topk_candidates": 300,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    return SSD(backbone, anchors, (320, 320), num_classes, **(defaults | settings))
