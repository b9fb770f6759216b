# SPDX-License-Identifier: Apache-2.0
"""Layers that are told their inputs by the first call."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn.lazy import is_lazy

CASES = [
    (nn.LazyLinear, (3,), {}, (2, 5), nn.Linear),
    (nn.LazyConv1d, (4, 3), {"padding": 1}, (2, 6, 8), nn.Conv1d),
    (nn.LazyConv2d, (4, 3), {"groups": 2}, (2, 6, 8, 8), nn.Conv2d),
    (nn.LazyConv2d, (4, 3), {}, (6, 8, 8), nn.Conv2d),
    (nn.LazyConv2d, (4, 3, 1, 0, 1, 2), {}, (1, 6, 8, 8), nn.Conv2d),
    (nn.LazyConv3d, (2, 3), {"bias": False}, (1, 3, 4, 4, 4), nn.Conv3d),
    (nn.LazyConvTranspose1d, (4, 3), {}, (2, 6, 8), nn.ConvTranspose1d),
    (nn.LazyConvTranspose2d, (4, 3), {"stride": 2}, (2, 6, 4, 4), nn.ConvTranspose2d),
    (nn.LazyConvTranspose3d, (2, 2), {}, (1, 3, 3, 3, 3), nn.ConvTranspose3d),
    (nn.LazyBatchNorm1d, (), {}, (4, 3), nn.BatchNorm1d),
    (nn.LazyBatchNorm2d, (), {"affine": False}, (4, 3, 2, 2), nn.BatchNorm2d),
    (nn.LazyBatchNorm3d, (), {}, (2, 3, 2, 2, 2), nn.BatchNorm3d),
    (nn.LazyInstanceNorm1d, (), {"affine": True}, (2, 3, 5), nn.InstanceNorm1d),
    (nn.LazyInstanceNorm2d, (), {}, (2, 3, 5, 5), nn.InstanceNorm2d),
    (nn.LazyInstanceNorm3d, (), {"track_running_stats": True}, (2, 3, 3, 3, 3), nn.InstanceNorm3d),
]


@pytest.mark.parametrize("lazy,args,kwargs,shape,base", CASES)
def test_the_first_call_makes_the_layer(lazy, args, kwargs, shape, base):
    x = tenon.normal(shape)
    tenon.manual_seed(3)
    made = lazy(*args, **kwargs)
    held = list(made.parameters())
    assert type(made).__name__ == f"Lazy{base.__name__}" and is_lazy(made) == bool(
        held or list(made.buffers())
    )
    y = made(x)
    assert type(made) is base and not is_lazy(made)
    assert [id(each) for each in made.parameters()] == [id(each) for each in held]
    axis = (
        -1 if base is nn.Linear else len(shape) - 3 if len(shape) == 3 and base is nn.Conv2d else 1
    )
    again = base(shape[axis], *args, **kwargs)
    again.load_state_dict(made.state_dict())
    assert np.allclose(again(x).detach().numpy(), y.detach().numpy(), atol=1e-5)
    assert repr(made) == repr(again)


def test_an_optimizer_that_was_there_before_trains_it():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    optimizer = tenon.optim.Adam(model.parameters(), lr=0.1)
    x = tenon.ones([2, 3])
    model(x).square().sum().backward()
    before = model[0].weight.detach().clone()
    optimizer.step()
    assert model[0].weight.shape == (4, 3) and not tenon.equal(before, model[0].weight).all()
    assert "in_features=unknown" in repr(nn.LazyLinear(2))


def test_dtype_of_before():
    model = nn.LazyLinear(2).to(tenon.float64)
    assert model(tenon.ones([1, 3], dtype=tenon.float64)).dtype == tenon.float64


def test_refusals():
    with pytest.raises(
        TypeError, match="LazyLinear: expected no in_features, which the first call"
    ):
        nn.LazyLinear(2, in_features=3)
    with pytest.raises(RuntimeError, match="expected a call of the layer, which makes its param"):
        nn.LazyLinear(2).forward(tenon.ones([1, 2]))
    with pytest.raises(ValueError, match="an axis 1 of channels, got shape \\(3,\\)"):
        nn.LazyBatchNorm1d()(tenon.ones([3]))
