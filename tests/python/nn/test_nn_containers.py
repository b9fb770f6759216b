# SPDX-License-Identifier: Apache-2.0
"""Containers, access by path, hooks, parametrisations and tools around modules."""

import copy
import pickle

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn.utils import parametrize
from test_nn import random


def test_module_dict():
    layers = nn.ModuleDict({"first": nn.Linear(2, 3)})
    layers.update([("second", nn.ReLU())])
    assert list(layers) == ["first", "second"] and len(layers) == 2 and "first" in layers
    assert [n for n, _ in layers.named_parameters()] == ["first.weight", "first.bias"]
    assert isinstance(layers.pop("second"), nn.ReLU) and list(layers.keys()) == ["first"]
    del layers["first"]
    assert not len(layers)
    with pytest.raises(KeyError, match="'forward' is an attribute of Module"):
        layers["forward"] = nn.ReLU()
    with pytest.raises(KeyError):
        layers["absent"]


def test_module_lists_change():
    a, b, c = nn.Linear(1, 1), nn.Linear(2, 2), nn.Linear(3, 3)
    layers = nn.ModuleList([a, c])
    layers.insert(1, b)
    assert list(layers) == [a, b, c] and [n for n, _ in layers.named_children()] == ["0", "1", "2"]
    assert layers.pop(0) is a and list(layers + [a]) == [b, c, a]
    del layers[0]
    assert list(layers) == [c] and "0.weight" in layers.state_dict()
    named = nn.Sequential({"first": a, "second": nn.Flatten()})
    assert [n for n, _ in named.named_children()] == ["first", "second"]


def test_parameter_containers():
    values = nn.ParameterList([tenon.ones(2), nn.Parameter(tenon.zeros(3))])
    values.append(tenon.ones(1))
    assert len(values) == 3 and all(isinstance(v, nn.Parameter) for v in values)
    assert [n for n, _ in values.named_parameters()] == ["0", "1", "2"]
    assert len(values[1:]) == 2 and values[-1].shape == (1,)
    values[0] = tenon.zeros(4)
    assert values[0].shape == (4,) and values[0].requires_grad
    named = nn.ParameterDict({"scale": tenon.ones(2)})
    named["shift"] = tenon.zeros(2)
    assert sorted(named.state_dict()) == ["scale", "shift"] and "scale" in named
    assert named.pop("scale").tolist() == [1, 1] and list(named) == ["shift"]
    with pytest.raises(TypeError, match="expected a Parameter or a tensor, got int"):
        values.append(3)


def test_access_by_path():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))
    assert net.get_submodule("1.0") is net[1][0] and net.get_submodule("") is net
    assert net.get_parameter("0.weight") is net[0].weight
    assert net.get_buffer("1.0.running_mean") is net[1][0].running_mean
    with pytest.raises(AttributeError, match="expected a module at '1.2', but 1 has no module '2'"):
        net.get_submodule("1.2")
    with pytest.raises(AttributeError, match="expected a Buffer at '0.weight', got Parameter"):
        net.get_buffer("0.weight")


def test_conversions():
    net = nn.Linear(2, 3)
    assert net.double().weight.dtype == tenon.float64
    assert net.half().weight.dtype == tenon.float16
    assert net.bfloat16().weight.dtype == tenon.bfloat16
    assert net.type(tenon.float32).weight.dtype == tenon.float32
    assert net.to_empty(device="cpu").weight.shape == (3, 2)


def test_zeroed_gradients_may_be_kept():
    net = nn.Linear(2, 1)
    net(tenon.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0, 0]]
    net.zero_grad()
    assert net.weight.grad is None


def test_backward_hooks():
    net, seen = nn.Linear(2, 1, bias=False), []
    tenon.nn.init.ones_(net.weight)
    x = tenon.tensor([[1.0, 1.0]], requires_grad=True)

    def double(module, grad_output):
        seen.append(("before", grad_output[0].tolist()))
        return (grad_output[0] * 2,)

    def watch(module, grad_input, grad_output):
        seen.append(("after", grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    handle = net.register_full_backward_hook(watch)
    net.register_full_backward_pre_hook(double)
    net(x).sum().backward()
    assert seen == [("before", [[1.0]]), ("after", [[2.0, 2.0]], [[2.0]])]
    assert x.grad.tolist() == [[20, 20]] and net.weight.grad.tolist() == [[2, 2]]
    handle.remove()
    net(x).sum().backward()
    assert x.grad.tolist() == [[22, 22]]


def test_hooks_of_state_dicts():
    net = nn.Linear(2, 1)
    net.register_state_dict_post_hook(lambda module, state, prefix: state.pop("bias"))
    assert list(net.state_dict()) == ["weight"]
    loaded = []
    net = nn.Linear(2, 1)
    net.register_load_state_dict_pre_hook(
        lambda module, state: state.update(weight=state.pop("kernel"))
    )
    net.register_load_state_dict_post_hook(lambda module, report: loaded.append(report.missing))
    net.load_state_dict({"kernel": tenon.ones([1, 2]), "bias": tenon.zeros([1])})
    assert net.weight.tolist() == [[1, 1]] and loaded == [[]]


def test_loading_suggests_what_may_be_meant():
    net = nn.Linear(2, 1)
    with pytest.raises(ValueError, match="the given names begin with 'module.'"):
        net.load_state_dict({f"module.{k}": v for k, v in net.state_dict().items()})
    report = net.load_state_dict(
        {"weight": tenon.zeros([3, 2]), "bias": tenon.ones([1])}, mismatched="skip"
    )
    assert report.mismatched == ["weight"] and net.bias.tolist() == [1]
    missing, unexpected = net.load_state_dict({"other": tenon.zeros([1])}, strict=False)
    assert missing == ["weight", "bias"] and unexpected == ["other"]


class Double(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


class Grow(nn.Module):
    def forward(self, x):
        return tenon.concat([x, x])


def test_parametrisations():
    net = nn.Linear(2, 2)
    weight = net.weight.detach().numpy().copy()
    parametrize.register_parametrization(net, "weight", Double())
    np.testing.assert_allclose(net.weight.detach().numpy(), weight, rtol=1e-6)
    assert parametrize.is_parametrized(net, "weight") and not parametrize.is_parametrized(net, "b")
    assert isinstance(net, nn.Linear)
    names = [n for n, _ in net.named_parameters()]
    assert names == ["bias", "parametrizations.weight.original"]
    net(tenon.ones(1, 2)).sum().backward()
    assert net.parametrizations.weight.original.grad.tolist() == [[2, 2], [2, 2]]
    net.weight = tenon.ones([2, 2])
    assert net.parametrizations.weight.original.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    twin = copy.deepcopy(net)
    with parametrize.cached():
        assert net.weight is net.weight
    with pytest.raises(TypeError, match="a parametrised module cannot be pickled"):
        pickle.dumps(net)
    parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and net.weight.tolist() == [[1, 1], [1, 1]]
    assert twin.weight.tolist() == [[1, 1], [1, 1]] and type(twin) is not nn.Linear
    with pytest.raises(ValueError, match=r"expected a result of shape \(2, 2\), got \(4, 2\)"):
        parametrize.register_parametrization(net, "weight", Grow())
    assert type(net) is nn.Linear
    with pytest.raises(ValueError, match="'weight' is not parametrised"):
        parametrize.remove_parametrizations(net, "weight")


def test_weight_norm():
    net = nn.utils.weight_norm(nn.Linear(3, 2))
    chain = net.parametrizations.weight
    np.testing.assert_allclose(
        chain.original0.detach().numpy()[:, 0],
        np.linalg.norm(net.weight.detach().numpy(), axis=1),
        rtol=1e-5,
    )
    before = net.weight.tolist()
    nn.utils.remove_weight_norm(net)
    assert net.weight.tolist() == before


def test_spectral_norm_and_orthogonal_weights():
    tenon.manual_seed(0)
    net = nn.utils.spectral_norm(nn.Linear(5, 4), n_power_iterations=30)
    largest = np.linalg.svd(net.weight.detach().numpy(), compute_uv=False)[0]
    assert abs(largest - 1.0) < 1e-3
    for shape in ((3, 5), (5, 3)):
        layer = nn.utils.parametrizations.orthogonal(nn.Linear(*shape[::-1], bias=False))
        w = layer.weight.detach().numpy()
        product = w @ w.T if shape[0] < shape[1] else w.T @ w
        np.testing.assert_allclose(product, np.eye(min(shape)), atol=1e-4)
    with pytest.raises(ValueError, match="orthogonal: expected two axes or more"):
        nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias")


def test_fusion_with_batch_norm():
    tenon.manual_seed(0)
    for layer, norm, x, fuse in (
        (nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), random(2, 2, 4, 4), nn.utils.fuse_conv_bn_eval),
        (nn.Linear(4, 3), nn.BatchNorm1d(3), random(5, 4), nn.utils.fuse_linear_bn_eval),
    ):
        x = tenon.tensor(x)
        norm(layer(x))
        with pytest.raises(ValueError, match="call eval"):
            fuse(layer, norm)
        layer.eval()
        norm.eval()
        np.testing.assert_allclose(
            fuse(layer, norm)(x).detach().numpy(),
            norm(layer(x)).detach().numpy(),
            rtol=1e-4,
            atol=1e-5,
        )


def test_parameters_as_a_vector():
    net = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(tenon.arange(9).cast(tenon.float32), net.parameters())
    assert net.bias.tolist() == [6, 7, 8]
    with pytest.raises(ValueError, match="expected a vector of 9 elements"):
        nn.utils.vector_to_parameters(tenon.zeros(8), net.parameters())


def test_functional_call():
    net, x = nn.Linear(2, 1), tenon.ones(1, 2)
    before = net.weight
    weight = tenon.tensor([[3.0, 4.0]], requires_grad=True)
    out = nn.utils.functional_call(net, {"weight": weight, "bias": tenon.zeros([1])}, x)
    assert out.tolist() == [[7.0]] and net.weight is before
    out.sum().backward()
    assert weight.grad.tolist() == [[1, 1]]
    with pytest.raises(KeyError, match="has no parameter or buffer 'kernel'"):
        nn.utils.functional_call(net, {"kernel": weight}, x)
