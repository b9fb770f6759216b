# SPDX-License-Identifier: Apache-2.0
"""nn.utils.prune: masks over parameters, alone, one after another and over several parameters."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn.utils import prune

WEIGHT = np.array(
    [[0.5, -0.1, 2.0, 0.3], [-3.0, 0.2, -0.4, 1.0], [0.05, 4.0, -0.6, 0.7]], np.float32
)


def layer():
    made = nn.Linear(4, 3)
    made.weight = nn.Parameter(tenon.tensor(WEIGHT))
    return made


def zeros_of(module):
    return np.argwhere(module.weight.detach().numpy() == 0).tolist()


def test_l1_and_what_training_moves():
    made = prune.l1_unstructured(layer(), "weight", 3)
    assert zeros_of(made) == [[0, 1], [1, 1], [2, 0]]
    assert [name for name, _ in made.named_parameters()] == ["bias", "weight_orig"]
    assert [name for name, _ in made.named_buffers()] == ["weight_mask"] and prune.is_pruned(made)
    optimizer = tenon.optim.SGD(made.parameters(), lr=0.1)
    made(tenon.ones([2, 4])).sum().backward()
    optimizer.step()
    moved = made.weight_orig.detach().numpy() != WEIGHT
    assert (moved == (made.weight_mask.numpy() == 1)).all()
    y = made(tenon.ones([1, 4]))
    expected = (made.weight_orig * made.weight_mask).sum(axis=1) + made.bias
    assert np.allclose(y.detach().numpy()[0], expected.detach().numpy())
    prune.remove(made, "weight")
    assert not prune.is_pruned(made) and isinstance(made.weight, nn.Parameter)
    assert set(made.state_dict()) == {"weight", "bias"} and len(zeros_of(made)) == 3


def test_slices():
    made = prune.ln_structured(layer(), "weight", 1, n=2, dim=1)
    assert zeros_of(made) == [[0, 3], [1, 3], [2, 3]]
    made = prune.random_structured(layer(), "weight", 0.34, dim=0)
    assert len(zeros_of(made)) == 4 and len({row for row, _ in zeros_of(made)}) == 1
    made = prune.random_unstructured(layer(), "weight", 0.5)
    assert len(zeros_of(made)) == 6


def test_again_counts_what_is_left():
    made = prune.l1_unstructured(layer(), "weight", 2)
    prune.l1_unstructured(made, "weight", 0.5)  # of the 10 that are left
    assert len(zeros_of(made)) == 7
    prune.ln_structured(made, "weight", 1, n=1, dim=0)
    hooks = list(made._forward_pre_hooks.values())
    assert len(hooks) == 1 and len(hooks[0]) == 3
    assert all(row == 0 for row in made.weight[0].tolist())
    prune.custom_from_mask(made, "weight", tenon.zeros([3, 4]))
    assert made.weight.sum().item() == 0.0


def test_several_as_one():
    first, second = layer(), layer()
    with tenon.no_grad():
        second.weight.copy_(second.weight * 100)  # of which the smallest is 5
    prune.global_unstructured(
        [(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=12
    )
    assert len(zeros_of(first)) == 12 and zeros_of(second) == []
    model = nn.Sequential(prune.identity(layer(), "weight"), nn.ReLU())
    assert prune.is_pruned(model) and zeros_of(model[0]) == []


def test_scores_and_state():
    scores = tenon.arange(12.0).reshape([3, 4])
    made = prune.l1_unstructured(layer(), "weight", 4, importance_scores=scores)
    assert zeros_of(made) == [[0, 0], [0, 1], [0, 2], [0, 3]]
    other = prune.identity(layer(), "weight")
    other.load_state_dict(made.state_dict())
    x = tenon.ones([1, 4])
    assert tenon.equal(other(x), made(x)).all().item()


def test_refusals():
    with pytest.raises(ValueError, match="a share from 0 to 1, got 1.5"):
        prune.l1_unstructured(layer(), "weight", 1.5)
    with pytest.raises(ValueError, match="at most 12 elements or slices to prune, got 13"):
        prune.l1_unstructured(layer(), "weight", 13)
    with pytest.raises(ValueError, match="two axes or more to prune slices of, got shape"):
        prune.ln_structured(layer(), "bias", 1, n=2, dim=0)
    with pytest.raises(
        ValueError, match="expected a pruned parameter 'weight' of Linear, got none"
    ):
        prune.remove(layer(), "weight")
    with pytest.raises(AttributeError, match="expected a parameter 'wait' of Linear, got NoneType"):
        prune.l1_unstructured(layer(), "wait", 1)
    with pytest.raises(ValueError, match="a mask of shape \\(3, 4\\), got \\(4, 3\\)"):
        prune.custom_from_mask(layer(), "weight", tenon.ones([4, 3]))
    with pytest.raises(TypeError, match="expected an unstructured method, got LnStructured"):
        prune.global_unstructured([(layer(), "weight")], prune.LnStructured, amount=1, n=1)


def test_as_pytorch():
    torch = pytest.importorskip("torch")
    from torch.nn.utils import prune as theirs

    for calls in (
        [("l1_unstructured", {"amount": 0.3})],
        [("l1_unstructured", {"amount": 3}), ("l1_unstructured", {"amount": 0.4})],
        [("ln_structured", {"amount": 1, "n": 2, "dim": 0}), ("l1_unstructured", {"amount": 2})],
        [("l1_unstructured", {"amount": 2}), ("ln_structured", {"amount": 1, "n": 1, "dim": 1})],
    ):
        ours, other = layer(), torch.nn.Linear(4, 3)
        other.weight = torch.nn.Parameter(torch.tensor(WEIGHT))
        for name, settings in calls:
            getattr(prune, name)(ours, "weight", **settings)
            getattr(theirs, name)(other, "weight", **settings)
        assert (ours.weight_mask.numpy() == other.weight_mask.numpy()).all(), calls
