# SPDX-License-Identifier: Apache-2.0
"""load_torch_state_dict with modules and arrays that stand for those of other libraries."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.utils import load_torch_state_dict

WEIGHTS = {"weight": np.array([[1.0, 2.0]], "float32"), "bias": np.array([3.0], "float32")}


class Module:
    def state_dict(self):
        return WEIGHTS


class Trained:
    """An array with a history, which is given away only after detach()."""

    requires_grad = True

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self.array


def test_weights_come_from_modules_mappings_and_arrays_of_any_kind():
    tensors = {name: tenon.tensor(array) for name, array in WEIGHTS.items()}
    trained = {name: Trained(array) for name, array in WEIGHTS.items()}
    listed = {name: array.tolist() for name, array in WEIGHTS.items()}
    for state in (Module(), WEIGHTS, tensors, trained, listed):
        layer = nn.Linear(2, 1)
        report = load_torch_state_dict(layer, state)
        assert layer.weight.tolist() == [[1.0, 2.0]] and layer.bias.tolist() == [3.0]
        assert report.loaded == ["weight", "bias"]


def test_what_holds_no_weights_is_refused():
    layer = nn.Linear(2, 1)
    for state in (3, [WEIGHTS]):
        with pytest.raises(TypeError) as error:
            load_torch_state_dict(layer, state)
        assert str(error.value) == (
            "load_torch_state_dict(): expected a mapping from names to arrays or a torch.nn.Module, "
            f"got {type(state).__name__}"
        )
    with pytest.raises(TypeError, match="expected an array for 'bias', got object: "):
        load_torch_state_dict(layer, {**WEIGHTS, "bias": object()})
    with pytest.raises(ValueError, match="missing: bias"):
        load_torch_state_dict(layer, {"weight": WEIGHTS["weight"]})
    report = load_torch_state_dict(layer, {"weight": WEIGHTS["weight"]}, strict=False)
    assert report.missing == ["bias"]
    wide = {**WEIGHTS, "bias": np.ones(2, "float32")}
    assert load_torch_state_dict(layer, wide, mismatched="skip").mismatched == ["bias"]
