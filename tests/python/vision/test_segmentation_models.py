# SPDX-License-Identifier: Apache-2.0
"""Segmentation: torchvision's numbers of parameters and names, dilation, sizes of results, training."""

import pytest
import tenon
from tenon import nn
from tenon.vision.models import segmentation

# Parameters that torchvision's models with 21 classes have, and some of their names.
MODELS = {
    "fcn_resnet50": (32_957_013, ["backbone.layer4.2.bn3.weight", "classifier.4.bias"]),
    "deeplabv3_resnet50": (
        39_638_869,
        ["classifier.0.convs.4.1.weight", "classifier.0.project.0.weight", "classifier.4.bias"],
    ),
    "deeplabv3_mobilenet_v3_large": (11_025_477, ["backbone.4.block.2.fc1.weight"]),
    "lraspp_mobilenet_v3_large": (3_221_538, ["classifier.scale.1.weight"]),
}


@pytest.fixture
def undrawn(monkeypatch):
    """Numbers of parameters do not depend on their first values, which take seconds to draw."""

    def same(tensor, *args, **kwargs):
        return tensor

    for name in ("uniform_", "normal_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_"):
        monkeypatch.setattr(nn.init, name, same)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_torchvisions(name, undrawn):
    count, names = MODELS[name]
    model = getattr(segmentation, name)()
    assert sum(p.numel() for p in model.parameters()) == count
    assert set(names) <= set(model.state_dict())


def test_training_and_sizes():
    model = segmentation.lraspp_mobilenet_v3_large(num_classes=3)
    x = tenon.normal([2, 3, 70, 65])
    out = model(x)["out"]
    assert list(out.shape) == [2, 3, 70, 65]
    nn.functional.cross_entropy(out, tenon.zeros([2, 70, 65], dtype="int64")).backward()
    assert all(p.grad is not None for p in model.parameters())


def test_last_stages_are_dilated(undrawn):
    model = segmentation.deeplabv3_mobilenet_v3_large(num_classes=2, aux_loss=True).eval()
    features = model.backbone(tenon.zeros([1, 3, 64, 64]))
    assert [list(features[name].shape[1:]) for name in ("aux", "out")] == [[40, 8, 8], [960, 4, 4]]
    assert sorted(model(tenon.zeros([1, 3, 64, 64]))) == ["aux", "out"]


def test_weights_are_refused():
    with pytest.raises(ValueError, match="expected weights None, as Tenon brings no trained ones"):
        segmentation.fcn_resnet50(weights_backbone="DEFAULT")
