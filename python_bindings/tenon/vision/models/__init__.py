# SPDX-License-Identifier: Apache-2.0
"""Image classifiers, with untrained weights; `segmentation` and `detection` have models of their own.

The names of parameters are those of torchvision, so that its state dicts load:
`model.load_state_dict(tenon.load("resnet18.safetensors"))`.
"""

from . import detection, segmentation
from .alexnet import AlexNet, alexnet
from .densenet import DenseNet, densenet121, densenet161, densenet169, densenet201, densenet264
from .efficientnet import EfficientNet, efficientnet_b0, efficientnet_b1, efficientnet_b2
from .googlenet import GoogLeNet, GoogLeNetOutputs, googlenet
from .inception_v3 import Inception3, InceptionOutputs, InceptionV3, inception_v3
from .lenet import LeNet, lenet
from .mobilenet_v1 import MobileNetV1, mobilenet_v1
from .mobilenet_v2 import MobileNetV2, mobilenet_v2
from .mobilenet_v3 import (
    MobileNetV3,
    MobileNetV3Large,
    MobileNetV3Small,
    mobilenet_v3_large,
    mobilenet_v3_small,
)
from .resnet import (
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext50_64x4d,
    resnext101_32x4d,
    resnext101_32x8d,
    resnext101_64x4d,
    resnext152_32x4d,
    resnext152_64x4d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from .shufflenet_v2 import (
    ShuffleNetV2,
    shufflenet_v2_swish,
    shufflenet_v2_x0_5,
    shufflenet_v2_x0_25,
    shufflenet_v2_x0_33,
    shufflenet_v2_x1_0,
    shufflenet_v2_x1_5,
    shufflenet_v2_x2_0,
)
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from .vgg import VGG, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn
from .vision_transformer import VisionTransformer, vit_b_16, vit_b_32, vit_l_16

__all__ = [
    "AlexNet",
    "DenseNet",
    "EfficientNet",
    "GoogLeNet",
    "GoogLeNetOutputs",
    "Inception3",
    "InceptionOutputs",
    "InceptionV3",
    "LeNet",
    "MobileNetV1",
    "MobileNetV2",
    "MobileNetV3",
    "MobileNetV3Large",
    "MobileNetV3Small",
    "ResNet",
    "ShuffleNetV2",
    "SqueezeNet",
    "VGG",
    "VisionTransformer",
    "alexnet",
    "detection",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "densenet264",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_b2",
    "googlenet",
    "inception_v3",
    "lenet",
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "segmentation",
    "resnet101",
    "resnet152",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnext101_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "resnext152_32x4d",
    "resnext152_64x4d",
    "resnext50_32x4d",
    "resnext50_64x4d",
    "shufflenet_v2_swish",
    "shufflenet_v2_x0_25",
    "shufflenet_v2_x0_33",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
    "squeezenet1_0",
    "squeezenet1_1",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
    "vit_b_16",
    "vit_b_32",
    "vit_l_16",
    "wide_resnet101_2",
    "wide_resnet50_2",
]
