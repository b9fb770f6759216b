# SPDX-License-Identifier: Apache-2.0
"""Inception, SqueezeNet, ShuffleNet and others: numbers of parameters, which torchvision and the papers tell, and training."""

import pytest
import tenon
from tenon import nn
from tenon.vision import models

# Parameters, and some names that torchvision's state dicts have.
MODELS = {
    "squeezenet1_0": (1_248_424, ["features.12.expand3x3.bias", "classifier.1.weight"]),
    "squeezenet1_1": (1_235_496, ["features.12.squeeze.weight"]),
    "shufflenet_v2_x0_5": (1_366_792, ["stage3.7.branch2.6.running_mean", "conv5.0.weight"]),
    "shufflenet_v2_x1_0": (2_278_604, ["stage2.0.branch1.3.weight", "conv1.1.bias", "fc.bias"]),
    "shufflenet_v2_x1_5": (3_503_624, []),
    "shufflenet_v2_x2_0": (7_393_996, []),
    "mobilenet_v1": (4_231_976, []),
}
LARGE = {
    "densenet264": (33_337_704, []),
    "resnext101_32x4d": (44_177_704, []),
    "resnext101_32x8d": (88_791_336, []),
    "resnext101_64x4d": (83_455_272, []),
    "wide_resnet101_2": (126_886_696, ["layer3.22.bn3.running_var"]),
    "inception_v3": (
        27_161_264,
        [
            "Mixed_6c.branch7x7dbl_5.bn.weight",
            "AuxLogits.conv1.conv.weight",
            "Conv2d_1a_3x3.conv.weight",
        ],
    ),
    "googlenet": (13_004_888, ["inception4e.branch3.1.bn.bias", "aux2.fc1.weight"]),
}


@pytest.fixture
def undrawn(monkeypatch):
    """Numbers of parameters do not depend on their first values, which take seconds to draw."""

    def same(tensor, *args, **kwargs):
        return tensor

    for name in ("uniform_", "normal_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_"):
        monkeypatch.setattr(nn.init, name, same)


@pytest.mark.parametrize("name", [*MODELS, *LARGE])
def test_parameters_are_as_many(name, undrawn):
    count, names = (MODELS | LARGE)[name]
    model = getattr(models, name)()
    assert sum(p.numel() for p in model.parameters()) == count
    assert set(names) <= set(model.state_dict())


def test_what_classifiers_on_the_way_add(undrawn):
    assert sum(p.numel() for p in models.googlenet(aux_logits=False).parameters()) == 6_624_904
    assert sum(p.numel() for p in models.inception_v3(aux_logits=False).parameters()) == 23_834_568


@pytest.mark.parametrize(
    "name,settings,size",
    [
        ("squeezenet1_0", {}, 48),
        ("squeezenet1_1", {}, 48),
        ("shufflenet_v2_x0_25", {}, 33),
        ("shufflenet_v2_swish", {}, 33),
        ("mobilenet_v1", {"scale": 0.25}, 33),
        ("googlenet", {}, 65),
        ("inception_v3", {"aux_logits": False}, 80),
    ],
)
def test_training(name, settings, size, undrawn):
    model = getattr(models, name)(num_classes=5, **settings)
    with tenon.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(tenon.normal(parameter.shape, 0.0, 0.05))
    x = tenon.normal([2, 3, size, size])
    scores = model(x)
    parts = scores if isinstance(scores, tuple) else (scores,)
    assert all(part.shape == (2, 5) for part in parts)
    assert len(parts) == (3 if name == "googlenet" else 1)
    sum(part.sum() for part in parts).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert model.eval()(x).shape == (2, 5)


def test_the_classifier_on_the_way_of_inception():
    model = models.inception_v3(num_classes=3)
    with tenon.no_grad():
        scores = model(tenon.normal([2, 3, 299, 299]))
    assert scores.logits.shape == scores.aux_logits.shape == (2, 3)


def test_refusals():
    with pytest.raises(ValueError, match="expected version '1_0' or '1_1', got '2_0'"):
        models.SqueezeNet("2_0")
    with pytest.raises(ValueError, match="repeats of 3 stages and 5 numbers of channels, got"):
        models.ShuffleNetV2([4, 8], [24, 48, 96, 192, 1024])
    with pytest.raises(ValueError, match="googlenet: expected weights None, as Tenon brings no"):
        models.googlenet(pretrained=True)
