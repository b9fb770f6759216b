# SPDX-License-Identifier: Apache-2.0
"""tenon.vision.models: sizes and names of parameters, which are those of torchvision, and
training."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.vision import models

# Parameters of torchvision's models of the same names, and some of their names in its state dicts.
MODELS = {
    "resnet18": (11_689_512, ["conv1.weight", "layer2.0.downsample.1.running_var", "fc.bias"]),
    "resnet50": (25_557_032, ["layer4.2.conv3.weight", "layer1.0.bn3.num_batches_tracked"]),
    "resnext50_32x4d": (25_028_904, ["layer3.5.bn2.running_mean"]),
    "densenet121": (
        7_978_856,
        [
            "features.conv0.weight",
            "features.denseblock4.denselayer16.norm2.weight",
            "features.transition1.conv.weight",
            "features.norm5.bias",
            "classifier.weight",
        ],
    ),
    "mobilenet_v2": (
        3_504_872,
        [
            "features.0.0.weight",
            "features.2.conv.1.1.bias",
            "features.18.1.weight",
            "classifier.1.bias",
        ],
    ),
    "mobilenet_v3_small": (
        2_542_856,
        ["features.1.block.1.fc1.weight", "features.12.0.weight", "classifier.3.bias"],
    ),
    "mobilenet_v3_large": (
        5_483_032,
        ["features.4.block.2.fc2.bias", "features.16.1.running_mean"],
    ),
    "efficientnet_b0": (
        5_288_548,
        ["features.1.0.block.1.fc2.weight", "features.7.0.block.3.1.bias", "classifier.1.weight"],
    ),
    "vit_b_32": (
        88_224_232,
        [
            "class_token",
            "conv_proj.bias",
            "encoder.pos_embedding",
            "encoder.layers.encoder_layer_11.self_attention.in_proj_weight",
            "encoder.layers.encoder_layer_0.mlp.3.weight",
            "encoder.ln.weight",
            "heads.head.weight",
        ],
    ),
}
SMALL = {
    "lenet": ({}, (2, 1, 28, 28)),
    "resnet18": ({}, (2, 3, 33, 33)),
    "densenet121": ({}, (2, 3, 33, 33)),
    "mobilenet_v2": ({"width_mult": 0.25}, (2, 3, 33, 33)),
    "mobilenet_v3_small": ({}, (2, 3, 33, 33)),
    "efficientnet_b0": ({}, (2, 3, 33, 33)),
}


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_of_torchvision(name):
    count, names = MODELS[name]
    model = getattr(models, name)()
    assert sum(p.numel() for p in model.parameters()) == count
    assert set(names) <= set(model.state_dict())


def test_models_with_large_classifiers(monkeypatch):
    """Their convolutions alone: 100 million numbers of linear layers take seconds to draw."""
    monkeypatch.setattr(models.vgg, "init_convolutions", lambda model: None)
    monkeypatch.setattr(nn, "Linear", nn.Identity)
    names = [*models.vgg16_bn().features.state_dict()]
    assert (names[0], names[-1]) == ("0.weight", "41.num_batches_tracked")
    assert sum(p.numel() for p in models.vgg11().parameters()) == 9_220_480
    assert sum(p.numel() for p in models.alexnet().parameters()) == 2_469_696
    assert models.vgg11()(tenon.zeros([1, 3, 32, 32])).shape == (1, 512 * 7 * 7)
    with pytest.raises(ValueError, match=r"VGG: expected a depth of \[11, 13, 16, 19\], got 12"):
        models.VGG(12)


@pytest.mark.parametrize("name", SMALL)
def test_models_train_and_evaluate(name):
    settings, shape = SMALL[name]
    tenon.manual_seed(0)
    model = getattr(models, name)(num_classes=5, **settings)
    loss = nn.functional.cross_entropy(model(tenon.normal(shape)), tenon.tensor([0, 3]))
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    with tenon.no_grad():
        out = model.eval()(tenon.normal(shape))
    assert out.shape == (2, 5) and tenon.all(tenon.isfinite(out)).item()


def test_vision_transformer():
    model = models.VisionTransformer(8, 4, 2, 2, 16, 32, num_classes=3)
    out = model(tenon.normal([2, 3, 8, 8]))
    assert out.shape == (2, 3)
    out.sum().backward()
    # The last layer begins at zero, so that only it has a gradient at first.
    assert tenon.any(model.heads[0].weight.grad != 0).item()
    with pytest.raises(ValueError, match="expected images of 8 x 8 pixels, got shape"):
        model(tenon.normal([2, 3, 9, 9]))
    with pytest.raises(ValueError, match="expected image_size divisible by patch_size 3, got 8"):
        models.VisionTransformer(8, 3, 1, 1, 4, 4)


def test_residual_blocks_may_begin_as_the_identity():
    model = models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], 4, zero_init_residual=True)
    assert not tenon.any(model.layer1[0].bn2.weight != 0).item()


def test_stochastic_depth_keeps_the_mean():
    layer = models._blocks.StochasticDepth(0.25)
    tenon.manual_seed(0)
    out = layer(tenon.ones([2000, 1, 2])).numpy()
    assert set(np.unique(out)) == {0.0, np.float32(1 / 0.75)}
    assert (out[:, :, 0] == out[:, :, 1]).all() and abs(out.mean() - 1) < 0.06
    assert layer.eval()(tenon.ones([3, 1])).tolist() == [[1.0]] * 3


def test_there_are_no_trained_weights():
    for build in (models.resnet18, models.mobilenet_v2):
        build(weights=None, progress=False, num_classes=2)
        with pytest.raises(ValueError, match=r"expected weights None, as .* got weights='DEFAULT'"):
            build(weights="DEFAULT")
        with pytest.raises(ValueError, match=r"got pretrained=True; load those of torchvision by"):
            build(pretrained=True)
