# SPDX-License-Identifier: Apache-2.0
"""Containers behave as the lists and dicts that they stand for; hooks come and go; parametrised tensors."""

import collections
import copy

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn.utils import parametrize

T = tenon.tensor


def named(module):
    return {name: each.shape for name, each in module.named_parameters()}


# -- lists and dicts of modules --------------------------------------------------------------------


def test_a_module_list_changes_as_a_list_does():
    a, b, c, d = (nn.Linear(i + 1, 1) for i in range(4))
    layers, wanted = nn.ModuleList([a, b]), [a, b]
    for change in (
        lambda each: each.append(c),
        lambda each: each.extend([d, a]),
        lambda each: each.insert(1, d),
        lambda each: each.insert(-1, c),
        lambda each: each.pop(),
        lambda each: each.pop(0),
        lambda each: each.pop(-2),
        lambda each: each.__setitem__(1, b),
        lambda each: each.__setitem__(-1, a),
        lambda each: each.__delitem__(slice(1, 3)),
    ):
        change(layers)
        change(wanted)
        assert list(layers) == wanted and len(layers) == len(wanted)
        names = [name for name, _ in layers.named_children()]
        assert sorted(names, key=int) == [str(i) for i in range(len(wanted))]
    layers = nn.ModuleList([a, b, c])
    assert layers.append(d) is layers and layers.extend([]) is layers
    assert layers[-1] is d and list(layers[1:3]) == [b, c] and type(layers[1:]) is nn.ModuleList
    assert list(nn.ModuleList()) == [] and layers.pop() is d and layers.pop(0) is a
    with pytest.raises(IndexError):
        layers.pop(5)
    with pytest.raises(TypeError, match="add_module: expected a Module for '2', got int"):
        layers.append(3)
    with pytest.raises(NotImplementedError, match=r"ModuleList must define forward\(\)"):
        layers(tenon.ones(1))


def test_a_sequential_is_a_list_that_is_called():
    double, shift = nn.Linear(1, 1), nn.Linear(1, 1)
    nn.init.constant_(double.weight, 2.0), nn.init.zeros_(double.bias)
    nn.init.ones_(shift.weight), nn.init.ones_(shift.bias)
    both = nn.Sequential(double, shift)
    assert both(T([[3.0]])).tolist() == [[7.0]] and (both + [double])(T([[3.0]])).tolist() == [
        [14.0]
    ]
    assert type(both[:1]) is nn.Sequential and both[1:](T([[3.0]])).tolist() == [[4.0]]
    both.insert(0, shift)
    assert both(T([[3.0]])).tolist() == [[9.0]]
    assert nn.Sequential()(T([1.0])).tolist() == [1.0]


def test_a_module_dict_changes_as_a_dict_does():
    a, b, c = (nn.Linear(i + 1, 1) for i in range(3))
    layers = nn.ModuleDict([("a", a)])
    layers["b"] = b
    layers.update({"c": c})
    layers.update(nn.ModuleDict({"a": c}))
    assert list(layers.items()) == [("a", c), ("b", b), ("c", c)]
    assert list(layers.values()) == [c, b, c] and layers["b"] is b and "b" in layers
    assert "absent" not in layers and len(layers) == 3
    assert layers.pop("b") is b and "b" not in layers
    layers.clear()
    assert len(layers) == 0 and list(layers) == [] and not hasattr(layers, "a")
    for use in (lambda: layers.pop("a"), lambda: layers.__delitem__("training")):
        with pytest.raises(KeyError):
            use()
    assert len(nn.ModuleDict()) == 0


def test_parameter_lists_and_dicts():
    first, second = nn.Parameter(T([1.0])), T([2.0, 3.0])
    values = nn.ParameterList([first, second])
    assert values[0] is first and isinstance(values[1], nn.Parameter)
    assert values.extend([first, T([4.0])]) is values and len(values) == 4
    assert [each.tolist() for each in values] == [[1.0], [2.0, 3.0], [1.0], [4.0]]
    assert values.append(second) is values and values[-1].tolist() == [2.0, 3.0]
    values[-1] = T([9.0])
    assert values[4].tolist() == [9.0] and type(values[1:3]) is nn.ParameterList
    assert [each.tolist() for each in values[1:3]] == [[2.0, 3.0], [1.0]]
    assert len(nn.ParameterList()) == 0 and repr(values[:2]) == "ParameterList((1,), (2,))"
    with pytest.raises(IndexError):
        values[5] = T([1.0])
    table = nn.ParameterDict({"a": first, "b": second})
    assert table["a"] is first and list(table) == ["a", "b"] and len(table) == 2
    table.update([("c", T([5.0]))])
    table.update(nn.ParameterDict({"a": T([6.0])}))
    assert {k: v.tolist() for k, v in table.items()} == {"a": [6.0], "b": [2.0, 3.0], "c": [5.0]}
    assert "c" in table and "d" not in table and list(table.keys()) == ["a", "b", "c"]
    assert table.pop("c").tolist() == [5.0] and "c" not in table and len(table.values()) == 2
    assert named(table) == {"a": (1,), "b": (2,)} and len(nn.ParameterDict()) == 0
    assert repr(table) == "ParameterDict(a: (1,), b: (2,))"
    with pytest.raises(KeyError):
        del table["c"]
    with pytest.raises(KeyError, match="'forward' is an attribute of Module; choose another name"):
        table["forward"] = first


# -- parts of modules ------------------------------------------------------------------------------


def test_parts_are_registered_by_name():
    module = nn.Module()
    weight, buffer = nn.Parameter(T([1.0])), T([2.0])
    module.register_parameter("weight", weight)
    module.register_parameter("bias", None)
    module.register_buffer("seen", buffer)
    module.register_buffer("scratch", buffer, persistent=False)
    module.register_buffer("nothing", None)
    module.add_module("part", nn.Linear(1, 1))
    module.add_module("absent", None)
    assert module.weight is weight and module.bias is None and module.nothing is None
    assert [n for n, _ in module.named_buffers()] == ["seen", "scratch"]
    assert [each.tolist() for each in module.buffers()] == [[2.0], [2.0]]
    assert list(module.state_dict()) == ["weight", "seen", "part.weight", "part.bias"]
    assert list(module.state_dict("model")) == [f"model.{n}" for n in module.state_dict()]
    assert [n for n, _ in module.named_parameters("m", recurse=False)] == ["m.weight"]
    assert len(list(module.parameters())) == 3 and len(list(module.parameters(False))) == 1
    assert list(module.buffers(recurse=False)) == list(module.buffers())


def test_shared_parts_are_listed_once_or_under_every_name():
    module = nn.Module()
    module.a = module.b = nn.Linear(1, 1, bias=False)
    module.c = nn.Module()
    module.c.weight = module.a.weight
    assert [n for n, _ in module.named_parameters()] == ["a.weight"]
    every = [n for n, _ in module.named_parameters(remove_duplicate=False)]
    assert every == ["a.weight", "b.weight", "c.weight"]
    assert [n for n, _ in module.named_modules()] == ["", "a", "c"]
    assert [n for n, _ in module.named_modules(remove_duplicate=False)] == ["", "a", "b", "c"]
    assert [n for n, _ in module.named_modules("m")] == ["m", "m.a", "m.c"]


def test_missing_parts_are_named():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    with pytest.raises(AttributeError) as error:
        net.get_submodule("2")
    assert str(error.value) == (
        "Sequential: expected a module at '2', but Sequential has no module '2'; it has ['0', '1']"
    )
    with pytest.raises(AttributeError, match=r"but 1\.0 has no module 'x'; it has \[\]"):
        net.get_submodule("1.0.x")
    with pytest.raises(AttributeError, match="expected a Parameter at '0.scale', got NoneType"):
        net.get_parameter("0.scale")
    with pytest.raises(AttributeError, match="expected a module at '0.weight'"):
        net.get_submodule("0.weight")


def test_modes_reach_every_module():
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    assert net.eval() is net and not net[1][0].training and not net.training
    assert net.train() is net and net[0].training and net[1][0].training
    assert not net.train(False)[1].training
    assert net.requires_grad_(False) is net


# -- hooks -----------------------------------------------------------------------------------------


def test_hooks_end_with_a_block_or_by_hand():
    net, calls = nn.Linear(1, 1), []
    with net.register_forward_hook(lambda module, args, out: calls.append("block")) as handle:
        net(T([1.0]))
        other = net.register_forward_hook(lambda module, args, out: calls.append("hand"))
        net(T([1.0]))
    net(T([1.0]))
    other.remove()
    other.remove()
    handle.remove()
    net(T([1.0]))
    assert calls == ["block", "block", "hand", "hand"]
    pre = net.register_forward_pre_hook(lambda module, args: T([10.0]))
    post = net.register_forward_hook(lambda module, args, out: (args[0].item(), out * 0))
    seen, out = net(T([1.0]))
    assert seen == 10.0 and out.tolist() == [0.0]
    pre.remove()
    assert net(T([1.0]))[0] == 1.0
    post.remove()
    assert isinstance(net(T([1.0])), tenon.Tensor)


class Two(nn.Module):
    def __init__(self, kind):
        self.kind = kind

    def forward(self, x, y, scale=1.0):
        return self.kind([x * y * scale, None, y.detach()])


Named = collections.namedtuple("Named", "a b c")


@pytest.mark.parametrize("kind", [list, tuple, lambda items: Named(*items)])
def test_backward_hooks_of_several_arguments_and_results(kind):
    module, seen = Two(kind), []
    module.register_full_backward_hook(lambda m, ins, outs: seen.append((ins, outs)))
    module.register_full_backward_pre_hook(lambda m, outs: tuple(g * 3 for g in outs))
    x, y = T([2.0]), T([5.0]).requires_grad_()
    out = module(x, y, scale=2.0)
    assert type(out) is type(kind([1, 2, 3])) and out[1] is None and out[2].tolist() == [5.0]
    out[0].sum().backward()
    ((ins, outs),) = seen
    assert ins[0] is None and ins[1].tolist() == [12.0] == y.grad.tolist()
    assert outs[0].tolist() == [3.0]


def test_backward_hooks_without_a_gradient_of_the_arguments():
    net, seen = nn.Linear(1, 1), []
    net.register_full_backward_hook(lambda m, ins, outs: seen.append((ins, outs[0].tolist())))
    net(T([[1.0]])).sum().backward()
    assert seen == [((None,), [[1.0]])]
    with tenon.no_grad():
        assert not net(T([[1.0]])).requires_grad
    assert len(seen) == 1

    def write(module, ins, outs):
        outs[0].mul_(2.0)

    net.register_full_backward_hook(write)
    with pytest.raises(RuntimeError, match="a backward hook of a module wrote into a gradient"):
        net(T([[1.0]])).sum().backward()


def test_hooks_of_state_dicts_come_alone_or_together():
    net = nn.Sequential(nn.Linear(1, 1, bias=False))
    assert list(net.state_dict()) == ["0.weight"]
    paths, loaded = [], []
    with net[0].register_state_dict_post_hook(lambda m, state, prefix: paths.append(prefix)):
        net.state_dict()
        net.state_dict("model")
    net.state_dict()
    assert paths == ["0", "model.0"]
    state = {"0.weight": T([[3.0]])}
    with net[0].register_load_state_dict_post_hook(lambda m, report: loaded.append(report.loaded)):
        net.load_state_dict(state)
    assert loaded == [["0.weight"]] and net[0].weight.tolist() == [[3.0]]

    def double(module, state):
        state["0.weight"] = state["0.weight"] * 2

    with net[0].register_load_state_dict_pre_hook(double):
        net.load_state_dict(state)
    assert net[0].weight.tolist() == [[6.0]] and state["0.weight"].tolist() == [[3.0]]


def test_reports_of_loading():
    net = nn.Linear(2, 1)
    report = net.load_state_dict({"weight": T([[1.0, 2.0]]), "other": T([1.0])}, strict=False)
    assert (report.missing, report.unexpected, report.mismatched) == (["bias"], ["other"], [])
    assert report.missing_keys == ["bias"] and report.unexpected_keys == ["other"]
    assert report.loaded == ["weight"]
    assert repr(report) == "LoadReport(missing=['bias'], unexpected=['other'])"
    assert str(report) == "1 tensors loaded\n  missing: bias (1,)\n  unexpected: other (1,)"
    report = net.load_state_dict({"weight": T([1.0]), "bias": T([1.0])}, mismatched="skip")
    assert report.mismatched == ["weight"] and repr(report).endswith(", mismatched=['weight'])")
    assert "mismatched: weight expected (1, 2), got (1,)" in str(report)
    with pytest.raises(ValueError, match="expected mismatched 'refuse' or 'skip', got 'drop'"):
        net.load_state_dict({}, mismatched="drop")
    with pytest.raises(ValueError, match=r"weight: expected shape \(1, 2\), got \(1,\)"):
        net.load_state_dict({"weight": T([1.0]), "bias": T([1.0])})
    with pytest.raises(
        ValueError, match=r"2 tensors do not fit; pass strict=False .*\n.*missing: w"
    ):
        net.load_state_dict({})
    with pytest.raises(ValueError, match="the given names lack the prefix '0.'"):
        nn.Sequential(net).load_state_dict(net.state_dict())
    with pytest.raises(ValueError, match="perhaps weights is weight"):
        net.load_state_dict({"weights": T([[1.0, 2.0]]), "bias": T([1.0])})


# -- parametrised tensors --------------------------------------------------------------------------


class Count(nn.Module):
    def __init__(self):
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2

    def right_inverse(self, x):
        return x / 2


def test_a_cached_block_computes_once():
    net, count = nn.Linear(2, 1), Count()
    parametrize.register_parametrization(net, "weight", count)
    start = count.calls
    with parametrize.cached():
        first = net.weight
        assert net.weight is first and count.calls == start + 1
        with parametrize.cached():
            assert net.weight is first
        assert net.weight is first and count.calls == start + 1
    assert net.weight is not first and count.calls == start + 2
    with pytest.raises(ZeroDivisionError), parametrize.cached():
        1 / 0
    assert net.weight is not net.weight


def test_a_cached_block_takes_no_module_for_one_that_is_gone():
    with parametrize.cached():
        for value in range(20):  # one of them has the address of one before
            net = nn.Linear(2, 1)
            with tenon.no_grad():
                net.weight.fill_(float(value))
            parametrize.register_parametrization(net, "weight", Count())
            assert net.weight.tolist() == [[value, value]]


def test_copies_of_parametrised_modules_are_parametrised():
    net = parametrize.register_parametrization(nn.Linear(2, 1), "weight", Count())
    twin = copy.deepcopy(net)
    with tenon.no_grad():
        net.parametrizations.weight.original.fill_(1.0)
        twin.parametrizations.weight.original.fill_(5.0)
    assert net.weight.tolist() == [[2.0, 2.0]] and twin.weight.tolist() == [[10.0, 10.0]]
    twin.bias = nn.Parameter(T([1.0]))
    assert twin(tenon.zeros(1, 2)).tolist() == [[1.0]]
    parametrize.remove_parametrizations(twin, "weight")
    assert not parametrize.is_parametrized(twin) and parametrize.is_parametrized(net)
    assert not hasattr(twin, "parametrizations") and twin.weight.tolist() == [[10.0, 10.0]]
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert net.weight.tolist() == [[1.0, 1.0]] and isinstance(net.weight, nn.Parameter)


def test_two_parametrised_tensors_are_removed_one_by_one():
    net = nn.Linear(2, 2)
    for name in ("weight", "bias"):
        parametrize.register_parametrization(net, name, Count())
    parametrize.register_parametrization(net, "weight", Count())
    assert len(net.parametrizations.weight) == 2
    parametrize.remove_parametrizations(net, "weight")
    assert parametrize.is_parametrized(net, "bias") and not parametrize.is_parametrized(
        net, "weight"
    )
    assert type(net) is not nn.Linear
    parametrize.remove_parametrizations(net, "bias")
    assert type(net) is nn.Linear and sorted(named(net)) == ["bias", "weight"]
    with pytest.raises(ValueError, match="Linear has no parameter or buffer 'kernel'"):
        parametrize.register_parametrization(net, "kernel", Count())
    evaluated = nn.Linear(1, 1).eval()
    parametrize.register_parametrization(evaluated, "weight", Count())
    assert not evaluated.parametrizations.weight[0].training


class NoInverse(nn.Module):
    def forward(self, x):
        return x + 1


def test_assignment_needs_an_inverse():
    net = parametrize.register_parametrization(nn.Linear(1, 1), "weight", NoInverse())
    with pytest.raises(TypeError, match="NoInverse has no right_inverse"):
        net.weight = T([[1.0]])


def test_weight_norm_of_other_axes():
    for axis in (0, 1, None):
        layer = nn.Linear(3, 2)
        before = layer.weight.detach().numpy().copy()
        layer = nn.utils.weight_norm(layer, dim=axis)
        np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-5)
        g, v = layer.parametrizations.weight.parameters()
        axes = None if axis is None else 1 - axis
        want = np.linalg.norm(before, axis=axes, keepdims=axis is not None)
        np.testing.assert_allclose(g.detach().numpy().reshape(-1), want.reshape(-1), rtol=1e-5)
        with tenon.no_grad():
            v.mul_(3.0)
        np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-5)
        with tenon.no_grad():
            g.mul_(2.0)
        np.testing.assert_allclose(layer.weight.detach().numpy(), 2 * before, rtol=1e-5)


def test_spectral_norms_of_other_axes_and_modes():
    tenon.manual_seed(0)
    layer = nn.ConvTranspose1d(3, 4, 2)
    before = layer.weight.detach().numpy().copy()
    matrix = before.transpose(1, 0, 2).reshape(4, -1)
    layer = nn.utils.spectral_norm(layer, n_power_iterations=50, dim=1)
    want = before / np.linalg.svd(matrix, compute_uv=False)[0]
    np.testing.assert_allclose(layer.weight.detach().numpy(), want, rtol=1e-3)
    layer.eval()
    again = [layer.weight.tolist() for _ in range(2)]
    assert again[0] == again[1]


def test_calls_with_other_parameters_leave_the_module_as_it_was():
    net = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    own = net[0].weight
    given = {"0.weight": T([[2.0]]), "0.bias": T([0.5])}
    with pytest.raises(ValueError, match="got shapes"):
        nn.utils.functional_call(net, given, (tenon.ones(1, 2, 3),))
    assert net[0].weight is own
    with pytest.raises(KeyError, match="has no parameter or buffer '0.scale'"):
        nn.utils.functional_call(net, {**given, "0.scale": T([1.0])}, (tenon.ones(2, 1),))
    assert net[0].weight is own
    layer = nn.Linear(1, 1)
    by_name = nn.utils.functional_call(
        layer, {"weight": T([[2.0]]), "bias": T([1.0])}, (), {"x": T([3.0])}
    )
    assert by_name.tolist() == [7.0]


def test_modules_below_are_told_of_training_by_their_own_method():
    class Cached(nn.Linear):
        def train(self, mode=True):
            self.cleared = mode
            return super().train(mode)

    model = nn.Sequential(nn.Sequential(Cached(2, 2), nn.Dropout()))
    assert model.eval() is model
    assert model[0][0].cleared is False and not any(each.training for each in model.modules())
    model.train()
    assert model[0][0].cleared is True and all(each.training for each in model.modules())
