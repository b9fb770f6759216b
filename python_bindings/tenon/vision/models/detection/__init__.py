# SPDX-License-Identifier: Apache-2.0
"""Detectors, with untrained weights.

The names of parameters are those of torchvision, so that its state dicts load. They take lists of
images and targets, and give losses in training, otherwise lists of what they found.
"""

from .anchors import AnchorGenerator
from .faster_rcnn import (
    FasterRCNN,
    MaskRCNN,
    fasterrcnn_mobilenet_v3_large_320_fpn,
    fasterrcnn_mobilenet_v3_large_fpn,
    fasterrcnn_resnet50_fpn,
    fasterrcnn_resnet50_fpn_v2,
    maskrcnn_resnet50_fpn,
    maskrcnn_resnet50_fpn_v2,
)
from .fcos import FCOS, fcos_resnet50_fpn
from .keypoint_rcnn import KeypointRCNN, keypointrcnn_resnet50_fpn
from .retinanet import RetinaNet, retinanet_resnet50_fpn, retinanet_resnet50_fpn_v2
from .ssd import SSD, DefaultBoxGenerator, ssd300_vgg16, ssdlite320_mobilenet_v3_large

__all__ = [
    "AnchorGenerator",
    "DefaultBoxGenerator",
    "FCOS",
    "FasterRCNN",
    "KeypointRCNN",
    "MaskRCNN",
    "RetinaNet",
    "SSD",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
    "fcos_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
    "retinanet_resnet50_fpn",
    "retinanet_resnet50_fpn_v2",
    "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
]
