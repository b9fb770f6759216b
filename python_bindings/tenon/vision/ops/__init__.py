# SPDX-License-Identifier: Apache-2.0
"""Functions of detectors that are made of operators, by the names of paddle.vision.ops.

Operators for detection themselves (`tenon.nms`, `tenon.roi_align`, `tenon.box_iou`, ...) are functions of `tenon`.
Boxes are rows x0, y0, x1, y1. Where a result's length depends on values, the device's memory is read.
"""

from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors

from .coder import box_coder
from .files import decode_jpeg, read_file
from .frozen_norm import FrozenBatchNorm2d
from .priors import bipartite_match, prior_box
from .proposals import collect_fpn_proposals, distribute_fpn_proposals, generate_proposals
from .regions import psroi_pool
from .suppression import matrix_nms, multiclass_nms
from .yolo import yolo_box, yolo_box_head, yolo_box_post, yolo_loss

__all__ = [
    "FrozenBatchNorm2d",
    "bipartite_match",
    "box_coder",
    "collect_fpn_proposals",
    "decode_jpeg",
    "distribute_fpn_proposals",
    "generate_proposals",
    "matrix_nms",
    "multiclass_nms",
    "prior_box",
    "psroi_pool",
    "read_file",
    "yolo_box",
    "yolo_box_head",
    "yolo_box_post",
    "yolo_loss",
]


_expect_tensors(globals())
