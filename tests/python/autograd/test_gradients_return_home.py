# SPDX-License-Identifier: Apache-2.0
"""A gradient lies on the device of what it is the gradient of, also behind a copy to another one."""

import pytest
import tenon
from devices import DEVICES
from tenon import nn

OTHERS = [device for device in DEVICES if device != "cpu"]


@pytest.mark.parametrize("device", OTHERS)
def test_a_leaf_of_the_host_that_is_used_elsewhere(device):
    x = tenon.tensor([1.0, 2.0, 3.0]).requires_grad_()
    (x.to(device) * 2.0).sum().backward()
    assert str(x.grad.device) == str(x.device)
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    (x * x).sum().backward()  # on the host: both sums lie on one device
    assert x.grad.tolist() == [4.0, 6.0, 8.0]


@pytest.mark.parametrize("device", OTHERS)
def test_a_leaf_of_a_device_that_is_used_on_the_host(device):
    x = tenon.tensor([1.0, 2.0, 3.0]).to(device).requires_grad_()
    x.to("cpu").square().sum().backward()
    assert str(x.grad.device) == str(x.device)
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("device", OTHERS)
def test_gradients_of_gradients(device):
    x = tenon.tensor([1.0, 2.0, 3.0]).requires_grad_()
    there = x.to(device)
    (first,) = tenon.grad((there * there * there).sum(), [x], create_graph=True)
    assert str(first.device) == str(x.device)
    (second,) = tenon.grad(first.sum(), [x])
    assert str(second.device) == str(x.device)
    assert second.tolist() == [6.0, 12.0, 18.0]


@pytest.mark.parametrize("device", OTHERS)
def test_a_compiled_function(device):
    x = tenon.tensor([1.0, 2.0, 3.0]).requires_grad_()
    function = tenon.compile(lambda x: (x.to(device) * 3.0).sum())
    for _ in range(3):
        x.grad = None
        function(x).backward()
        assert str(x.grad.device) == str(x.device)
        assert x.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("device", OTHERS)
def test_layers_on_two_devices_train(device):
    tenon.manual_seed(0)
    first, second = nn.Linear(3, 4), nn.Linear(4, 2).to(device)
    steps = tenon.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    x = tenon.ones([5, 3])
    losses = []
    for _ in range(3):
        steps.zero_grad()
        loss = second(first(x).to(device)).square().mean()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]
