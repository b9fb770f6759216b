# SPDX-License-Identifier: Apache-2.0
"""Classifiers by PaddlePaddle's classes and parameters, beside PaddlePaddle's where it is installed."""

import importlib

import numpy as np
import pytest
import tenon
from tenon.vision import models

CLASSES = {"MobileNetV3Small": 64, "MobileNetV3Large": 64, "InceptionV3": 96}


@pytest.mark.parametrize("name", CLASSES)
def test_without_classes_features_are_left(name):
    side = CLASSES[name]
    x = tenon.rand([1, 3, side, side])
    kind = getattr(models, name)
    pooled = kind(num_classes=0).eval()
    state = pooled.state_dict()
    assert not any(key.startswith(("classifier", "fc.")) for key in state)
    bare = kind(num_classes=0, with_pool=False).eval()
    bare.load_state_dict(state)
    whole = kind(num_classes=7).eval()
    whole.load_state_dict(state, strict=False)
    with tenon.no_grad():
        means, features, scores = pooled(x), bare(x), whole(x)
        assert list(features.shape[:2]) == list(means.shape[:2]) and list(means.shape[2:]) == [1, 1]
        np.testing.assert_allclose(
            features.mean([2, 3]).numpy(), means.numpy()[:, :, 0, 0], rtol=1e-5, atol=1e-6
        )
        head = whole.fc if name == "InceptionV3" else whole.classifier
        kept = means.flatten(1) * (0.8 if name == "InceptionV3" else 1.0)  # by its dropout
        np.testing.assert_allclose(head(kept).numpy(), scores.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=f"{name}: expected num_classes=0 without a pool"):
        kind(with_pool=False)


def test_scaled_channels():
    narrow = models.MobileNetV3Large(scale=0.5)
    assert narrow.features[0][0].out_channels == 8 and narrow.classifier[0].out_features == 640


@pytest.mark.parametrize("name", CLASSES)
def test_beside_paddle(name):
    """Weights in the order in which both make them, linear ones transposed."""
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    paddle = importlib.import_module("paddle")
    if not hasattr(paddle, "to_tensor"):
        pytest.skip("paddle is Tenon's own package of headers")
    theirs = getattr(importlib.import_module("paddle.vision.models"), name)(num_classes=5)
    theirs.eval()
    mine = getattr(models, name)(num_classes=5).eval()
    given = [value.numpy() for value in theirs.state_dict().values()]
    state = {k: v for k, v in mine.state_dict().items() if not k.endswith("num_batches_tracked")}
    assert len(given) == len(state)
    taken = {}
    for (key, value), weight in zip(state.items(), given, strict=True):
        if weight.ndim == 2:
            weight = weight.T
        assert list(weight.shape) == list(value.shape), key
        taken[key] = tenon.tensor(np.ascontiguousarray(weight))
    mine.load_state_dict(taken)
    x = np.random.default_rng(0).random((1, 3, CLASSES[name], CLASSES[name]), np.float32)
    want = theirs(paddle.to_tensor(x)).numpy()
    with tenon.no_grad():
        np.testing.assert_allclose(mine(tenon.tensor(x)).numpy(), want, rtol=1e-4, atol=1e-4)
