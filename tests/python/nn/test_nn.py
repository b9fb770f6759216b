# SPDX-License-Identifier: Apache-2.0
"""Layers against plain NumPy, forward and gradient; and what a Module promises."""

import copy
import pickle

import numpy as np
import pytest
import reference
import tenon
from devices import DEVICES
from tenon import nn
from tenon.nn import functional as F

F32 = {"rtol": 2e-4, "atol": 2e-5}


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


class With(nn.Module):
    """A module with further arguments that stay the same."""

    def __init__(self, module, *tensors, **settings):
        self.module, self.tensors, self.settings = module, tensors, settings

    def forward(self, *x):
        more = (tenon.tensor(array, device=x[0].device) for array in self.tensors)
        return self.module(*x, *more, **self.settings)


class First(nn.Module):
    """The first result of a module with several."""

    def __init__(self, module):
        self.module = module

    def forward(self, *args):
        return self.module(*args)[0]


def check(module, expected, *inputs, differentiable=(0,)):
    """Compare module(*inputs) and its gradients with expected(*inputs, *parameters) in NumPy."""
    modules = [module, *(copy.deepcopy(module) for _ in DEVICES[1:])]
    for device, instance in zip(DEVICES, modules):
        check_on(device, instance.to(device), expected, inputs, differentiable)


def check_on(device, module, expected, inputs, differentiable):
    tensors = [
        tenon.tensor(x, requires_grad=i in differentiable, device=device)
        for i, x in enumerate(inputs)
    ]
    params = list(module.parameters())
    for i, param in enumerate(params):  # away from special values such as weights of one
        param.data = tenon.tensor(random(*param.shape, seed=100 + i), device=device)
    arrays = [*inputs, *(param.detach().cpu().numpy() for param in params)]
    out = module(*tensors)
    assert out.device == tenon.device(device)
    np.testing.assert_allclose(out.detach().cpu().numpy(), expected(*arrays), **F32)
    weights = random(*out.shape, seed=7)
    (out * tenon.tensor(weights, device=device)).sum().backward()
    for i, tensor in enumerate([*tensors, *params]):
        if i < len(tensors) and i not in differentiable:
            continue
        np.testing.assert_allclose(
            tensor.grad.cpu().numpy(),
            reference.gradient(expected, arrays, i, weights),
            rtol=2e-3,
            atol=2e-3,
            err_msg=f"gradient of argument {i} on {device}",
        )


# -- layers -----------------------------------------------------------------------------------


def test_linear():
    check(nn.Linear(3, 4), reference.linear, random(2, 5, 3))
    check(nn.Linear(3, 4, bias=False), lambda x, w: x @ w.T, random(2, 3))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"padding": (1, 0), "dilation": 2},
        {"groups": 2},
        {"stride": (2, 1), "groups": 2, "padding": 1},
    ],
)
def test_conv2d(options):
    pairs = {
        name: (value, value) if isinstance(value, int) and name != "groups" else value
        for name, value in options.items()
    }
    check(
        nn.Conv2d(4, 6, (3, 2), **options),
        lambda x, w, b: reference.conv2d(x, w, b, **pairs),
        random(2, 4, 6, 5),
    )


def test_conv2d_refuses_channels_that_groups_do_not_divide():
    with pytest.raises(ValueError, match="divisible by groups 3"):
        nn.Conv2d(4, 6, 3, groups=3)


def test_pooling():
    x = random(2, 3, 6, 6)
    check(nn.MaxPool2d(2), lambda x: reference.max_pool2d(x, (2, 2), (2, 2)), x)
    check(
        nn.MaxPool2d(3, stride=2, padding=1),
        lambda x: reference.max_pool2d(x, (3, 3), (2, 2), (1, 1)),
        x,
    )
    check(nn.AvgPool2d(2), lambda x: reference.avg_pool2d(x, (2, 2), (2, 2)), x)
    check(
        nn.AvgPool2d((3, 2), stride=1, padding=(1, 0)),
        lambda x: reference.avg_pool2d(x, (3, 2), (1, 1), (1, 0)),
        x,
    )
    check(nn.AdaptiveAvgPool2d(3), lambda x: reference.avg_pool2d(x, (2, 2), (2, 2)), x)


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.BatchNorm1d(3), (6, 3)),
        (nn.BatchNorm1d(3), (4, 3, 5)),
        (nn.BatchNorm2d(3), (3, 3, 2, 4)),
    ],
)
def test_batch_norm_in_training(module, shape):
    x = random(*shape) * 2 + 1
    check(module, reference.batch_norm, x)
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(module.running_mean.cpu().numpy(), 0.1 * x.mean(axis=axes), **F32)
    np.testing.assert_allclose(
        module.running_var.cpu().numpy(), 0.9 + 0.1 * x.var(axis=axes, ddof=1), **F32
    )


def test_batch_norm_in_evaluation_uses_running_statistics():
    module = nn.BatchNorm2d(2).eval()
    module.running_mean.copy_(tenon.tensor([1.0, -1.0]))
    module.running_var.copy_(tenon.tensor([4.0, 0.25]))
    mean, deviation = np.array([1.0, -1.0]), np.sqrt(np.array([4.0, 0.25]) + 1e-5)
    check(
        module,
        lambda x, w, b: ((x.transpose(0, 2, 3, 1) - mean) / deviation * w + b).transpose(
            0, 3, 1, 2
        ),
        random(3, 2, 2, 2),
    )
    assert module.running_mean.tolist() == [1.0, -1.0]


def test_batch_norm_refuses_what_it_cannot_normalise():
    with pytest.raises(ValueError, match="more than one value per channel"):
        nn.BatchNorm1d(3)(tenon.zeros([1, 3]))
    with pytest.raises(ValueError, match=r"expected 4 axes with 3 channels .* \(2, 3\)"):
        nn.BatchNorm2d(3)(tenon.zeros([2, 3]))


def test_other_normalisation():
    check(nn.LayerNorm(5), reference.layer_norm, random(3, 2, 5))
    check(nn.LayerNorm((2, 5)), reference.layer_norm, random(3, 2, 5))
    check(nn.GroupNorm(2, 4), lambda x, w, b: reference.group_norm(x, 2, w, b), random(3, 4, 2, 2))
    check(
        nn.RMSNorm(5),
        lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w,
        random(3, 5),
    )
    with pytest.raises(ValueError, match=r"expected the last axes of x to be \(4,\)"):
        nn.LayerNorm(4)(tenon.zeros([2, 5]))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "ReLU": (nn.ReLU(), lambda x: np.maximum(x, 0)),
    "ReLU6": (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    "LeakyReLU": (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "ELU": (nn.ELU(alpha=0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "GELU": (
        nn.GELU(approximate=True),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "SiLU": (nn.SiLU(), lambda x: x * sigmoid(x)),
    "Mish": (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "Sigmoid": (nn.Sigmoid(), sigmoid),
    "LogSigmoid": (nn.LogSigmoid(), lambda x: np.log(sigmoid(x))),
    "Tanh": (nn.Tanh(), np.tanh),
    "Softplus": (nn.Softplus(2.0), lambda x: np.log1p(np.exp(2 * x)) / 2),
    "Softsign": (nn.Softsign(), lambda x: x / (1 + abs(x))),
    "Hardtanh": (nn.Hardtanh(-0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
    "Hardsigmoid": (nn.Hardsigmoid(), lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "Hardswish": (nn.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Softmax": (nn.Softmax(axis=0), lambda x: reference.softmax(x, axis=0)),
    "LogSoftmax": (nn.LogSoftmax(), lambda x: np.log(reference.softmax(x))),
    "GLU": (nn.GLU(), lambda x: x[..., :2] * sigmoid(x[..., 2:])),
    "PReLU": (nn.PReLU(4), lambda x, w: np.where(x > 0, x, w * x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    module, expected = ACTIVATIONS[name]
    check(module, expected, random(3, 4))


def test_activation_refuses_unknown_settings():
    with pytest.raises(TypeError, match="expected settings"):
        nn.ReLU(slope=1)


def test_embedding():
    indices = np.array([[1, 3], [3, 0]])
    check(nn.Embedding(5, 3), lambda i, w: w[i], indices, differentiable=())
    padded = nn.Embedding(4, 2, padding_idx=3)
    assert padded.weight[3].tolist() == [0.0, 0.0]
    padded(tenon.tensor(indices)).sum().backward()
    assert padded.weight.grad.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]


def test_attention():
    x = random(2, 3, 6)

    def expected(x, weight, bias, ow, ob):
        heads = [
            (x @ w.T + b).reshape(2, 3, 2, 3).transpose(0, 2, 1, 3)
            for w, b in zip(np.split(weight, 3), np.split(bias, 3))
        ]
        causal = np.tril(np.ones((3, 3), bool))
        joined = reference.attention(*heads, causal).transpose(0, 2, 1, 3).reshape(2, 3, 6)
        return joined @ ow.T + ob

    for need_weights in (True, False):
        module = nn.MultiheadAttention(6, 2, batch_first=True)
        settings = {"is_causal": True, "need_weights": need_weights}
        check(First(With(module, **settings)), expected, x)


def test_dropout_scales_what_it_keeps_and_rests_in_evaluation():
    tenon.manual_seed(0)
    module, x = nn.Dropout(0.25), tenon.ones([100, 100])
    y = module(x).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert module.eval()(x).tolist() == x.tolist()
    with pytest.raises(ValueError, match="probability"):
        nn.Dropout(1.5)


# -- losses -----------------------------------------------------------------------------------


def test_regression_losses():
    target = random(3, 4, seed=1)
    d = lambda x: np.abs(x - target)
    cases = [
        (nn.MSELoss(), lambda x: (d(x) ** 2).mean()),
        (nn.L1Loss(reduction="sum"), lambda x: d(x).sum()),
        (
            nn.SmoothL1Loss(reduction="none", beta=0.5),
            lambda x: np.where(d(x) < 0.5, d(x) ** 2, d(x) - 0.25),
        ),
        (
            nn.HuberLoss(delta=0.5),
            lambda x: np.where(d(x) < 0.5, d(x) ** 2 / 2, 0.5 * (d(x) - 0.25)).mean(),
        ),
    ]
    for loss, expected in cases:
        check(With(loss, target), expected, random(3, 4))


def test_classification_losses():
    target = np.array([2, 0, 1])
    pick = lambda x: x[np.arange(3), target]
    weight = np.array([1.0, 2.0, 3.0], np.float32)
    log = lambda x: np.log(reference.softmax(x, 1))
    cases = [
        (nn.CrossEntropyLoss(), lambda x: reference.cross_entropy(x, target)),
        (
            nn.CrossEntropyLoss(label_smoothing=0.1),
            lambda x: reference.cross_entropy(x, target, 0.1),
        ),
        (
            nn.CrossEntropyLoss(weight=tenon.tensor(weight)),
            lambda x: -(pick(log(x)) * weight[target]).sum() / weight[target].sum(),
        ),
        (nn.CrossEntropyLoss(ignore_index=0), lambda x: -pick(log(x))[[0, 2]].mean()),
        (nn.NLLLoss(reduction="sum"), lambda x: -pick(x).sum()),
    ]
    for loss, expected in cases:
        check(With(loss, target), expected, random(3, 3))


def test_cross_entropy_over_images_and_probabilities():
    target = np.array([[[0, 1], [2, 1]]])
    loss = nn.CrossEntropyLoss()
    check(With(loss, target), lambda x: reference.cross_entropy(x, target), random(1, 3, 2, 2))
    probabilities = reference.softmax(random(2, 3, seed=1))
    loss = nn.CrossEntropyLoss()
    check(
        With(loss, probabilities),
        lambda x: -(probabilities * np.log(reference.softmax(x))).sum(1).mean(),
        random(2, 3),
    )


def test_cross_entropy_refuses_what_is_no_class():
    x = tenon.zeros(2, 3)
    for wrong in (3, -1):
        with pytest.raises(IndexError, match=f"expected classes from 0 to 2 .* got {wrong}"):
            F.cross_entropy(x, tenon.tensor([0, wrong]))
        for weight in (None, tenon.ones(3)):
            for dtype in (tenon.int64, tenon.int8):
                target = tenon.tensor([[0, wrong], [1, 2]], dtype=dtype)[:, 1]
                with pytest.raises(IndexError, match=f"from 0 to 2 .* got {wrong}"):
                    F.nll_loss(x, target, weight=weight)
                with pytest.raises(IndexError, match=f"from 0 to 2 .* got {wrong}"):
                    F.cross_entropy(x, target, weight=weight, label_smoothing=0.1)
    with pytest.raises(ValueError, match="expected reduction 'mean', 'sum' or 'none', got 'all'"):
        F.cross_entropy(x, tenon.tensor([0, 1]), reduction="all")


def test_cross_entropy_with_nothing_that_counts():
    x = tenon.tensor(np.zeros((2, 3), np.float32), requires_grad=True)
    target = tenon.tensor([-100, -100])
    assert np.isnan(F.cross_entropy(x, target).item())
    loss = F.cross_entropy(x, target, reduction="sum")
    loss.backward()
    assert loss.item() == 0.0
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 3), np.float32))


def test_binary_losses():
    target = np.array([[0.0, 1.0, 0.3]], np.float32)
    loss = nn.BCEWithLogitsLoss(pos_weight=tenon.tensor([1.0, 2.0, 3.0]))
    check(
        With(loss, target),
        lambda x: (
            -(
                np.array([1, 2, 3]) * target * np.log(sigmoid(x))
                + (1 - target) * np.log(1 - sigmoid(x))
            ).mean()
        ),
        random(4, 3),
    )
    extreme = nn.BCEWithLogitsLoss()(tenon.tensor([1000.0, -1000.0]), tenon.tensor([0.0, 0.0]))
    assert extreme.item() == 500.0
    with pytest.raises(ValueError, match="got 'avg'"):
        nn.BCELoss(reduction="avg")


# -- what a Module promises -------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)
        self.scale = nn.Parameter(tenon.ones([1]))
        self.register_buffer("scratch", tenon.zeros([2]), persistent=False)

    def forward(self, x):
        return self.head(self.body(x)) * self.scale


NAMES = [
    "scale",
    "body.0.weight",
    "body.0.bias",
    "body.1.weight",
    "body.1.bias",
    "head.weight",
    "head.bias",
]


def test_parameters_are_found_by_attribute():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())
    assert [n for n, _ in net.named_buffers()] == [
        "scratch",
        "body.1.running_mean",
        "body.1.running_var",
        "body.1.num_batches_tracked",
    ]
    assert [n for n, _ in net.named_children()] == ["body", "head"]
    assert [n for n, _ in net.named_modules()] == ["", "body", "body.0", "body.1", "body.2", "head"]
    del net.scale
    assert "scale" not in dict(net.named_parameters())


def test_a_subclass_need_not_call_super_init():
    class Bare(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(2, 1)

        def forward(self, x):
            return self.inner(x)

    assert len(list(Bare().parameters())) == 2
    assert tuple(Bare().eval()(tenon.zeros([3, 2])).shape) == (3, 1)


def test_a_plain_tensor_does_not_silently_replace_a_parameter():
    net = Net()
    with pytest.raises(TypeError, match="Linear.weight is a Parameter, .* assign Parameter"):
        net.head.weight = tenon.zeros([2, 4])
    net.head.weight = nn.Parameter(tenon.zeros([2, 4]))
    net.head.bias = None
    assert "head.bias" not in dict(net.named_parameters())
    net.scratch = net.scratch + 1
    assert net.scratch.tolist() == [1.0, 1.0] and "scratch" in dict(net.named_buffers())
    assert "scratch" not in net.state_dict()


def test_a_shared_parameter_is_listed_once_and_saved_under_both_names():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert set(net.state_dict()) == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_train_and_eval_reach_every_module():
    net = Net()
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())


def test_apply_zero_grad_and_freezing():
    net, seen = Net(), []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen[-1] == "Net" and len(seen) == 6
    net(tenon.tensor(random(5, 3))).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not net(tenon.tensor(random(5, 3))).requires_grad


def test_dtype_changes_keep_parameter_objects():
    net = Net()
    before = list(net.parameters())
    net(tenon.tensor(random(5, 3))).sum().backward()
    assert net.to(tenon.float64) is net
    assert all(a is b for a, b in zip(before, net.parameters()))
    assert all(p.dtype == tenon.float64 and p.requires_grad for p in net.parameters())
    assert all(p.grad.dtype == tenon.float64 for p in net.parameters())
    assert net.body[1].running_mean.dtype == tenon.float64
    assert net(tenon.tensor(random(5, 3).astype(np.float64))).dtype == tenon.float64
    net.zero_grad()
    net(tenon.tensor(random(5, 3).astype(np.float64))).sum().backward()
    assert before[0].grad.dtype == tenon.float64
    with pytest.raises(TypeError, match="floating-point dtype"):
        net.to(tenon.int64)


def test_state_dict_round_trip():
    a, b = Net(), Net()
    a(tenon.tensor(random(5, 3)))
    state = a.state_dict()
    buffers = ["running_mean", "running_var", "num_batches_tracked"]
    assert set(state) == {*NAMES, *(f"body.1.{name}" for name in buffers)}
    state.pop("body.1.num_batches_tracked")  # older files lack it
    report = b.load_state_dict(state)
    assert report.missing == report.unexpected == []
    x = tenon.tensor(random(5, 3))
    assert b.eval()(x).tolist() == a.eval()(x).tolist()
    assert b.head.weight.requires_grad


def test_loading_what_does_not_fit_is_explained_and_changes_nothing():
    net = Net()
    before = net.head.bias.tolist()
    state = {**net.state_dict(), "head.bias": tenon.zeros([3]), "extra": tenon.zeros([1])}
    del state["scale"]
    with pytest.raises(ValueError) as failure:
        net.load_state_dict(state)
    assert str(failure.value) == (
        "Net.load_state_dict: 3 tensors do not fit; pass strict=False to load what fits:\n"
        "  missing: scale (expected shape (1,))\n"
        "  unexpected: extra\n"
        "  head.bias: expected shape (2,), got (3,)"
    )
    assert net.head.bias.tolist() == before
    with pytest.raises(ValueError, match="1 tensors do not fit"):
        net.load_state_dict(state, strict=False)
    del state["head.bias"]
    report = net.load_state_dict(state, strict=False)
    assert report.missing == ["scale", "head.bias"] and report.unexpected == ["extra"]


def test_hooks_see_and_replace():
    layer, calls = nn.ReLU(), []
    x = tenon.tensor([-1.0, 2.0])
    with layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,)):
        handle = layer.register_forward_hook(
            lambda module, args, result: calls.append(args[0].tolist())
        )
        assert layer(x).tolist() == [0.0, 4.0]
    assert layer(x).tolist() == [0.0, 2.0]
    handle.remove()
    handle.remove()
    layer(x)
    assert calls == [[-2.0, 4.0], [-1.0, 2.0]]


def test_containers():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(net) == 3 and isinstance(net[1], nn.ReLU) and isinstance(net[-1], nn.Linear)
    assert isinstance(net[:2], nn.Sequential) and len(net[:2]) == 2
    net[1] = nn.Tanh()
    assert [type(m).__name__ for m in net] == ["Linear", "Tanh", "Linear"]
    layers = nn.ModuleList([nn.Linear(1, 1)]).append(nn.Linear(1, 1))
    assert [n for n, _ in layers.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    with pytest.raises(TypeError, match="expected a Module for '0', got int"):
        nn.Sequential(1)


def test_repr_shows_structure_and_settings():
    assert repr(
        nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()), nn.Conv2d(1, 2, 3, padding=1))
    ) == (
        "Sequential(\n"
        "  (0): Linear(2, 3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        "  (2): Conv2d(1, 2, (3, 3), stride=(1, 1), padding=(1, 1))\n"
        ")"
    )


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="ModuleList must define forward"):
        nn.ModuleList()(1)


def test_initial_values_have_the_published_spread():
    tenon.manual_seed(0)
    w = tenon.empty([200, 100])
    spreads = {
        "xavier_normal_": np.sqrt(2 / 300),
        "xavier_uniform_": np.sqrt(2 / 300),
        "kaiming_normal_": np.sqrt(2 / 100),
        "kaiming_uniform_": np.sqrt(2 / 100),
    }
    for name, expected in spreads.items():
        assert getattr(nn.init, name)(w) is w
        assert abs(w.numpy().std() / expected - 1) < 0.03, name
    layer = nn.Linear(100, 50)
    assert np.abs(layer.weight.detach().numpy()).max() <= 0.1
    with pytest.raises(ValueError, match="two axes or more"):
        nn.init.xavier_uniform_(tenon.empty([3]))


def test_functional_takes_plain_tensors():
    x = tenon.tensor(random(2, 4))
    assert F.relu(x).tolist() == np.maximum(random(2, 4), 0).tolist()
    assert tuple(F.flatten(tenon.zeros([2, 3, 4])).shape) == (2, 12)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_complete_and_independent(copied):
    net = Net()
    net.scratch.copy_(tenon.tensor([3.0, 4.0]))
    twin = copied(net)
    assert [n for n, _ in twin.named_parameters()] == NAMES
    assert set(twin.state_dict()) == set(net.state_dict())
    assert twin.scratch.tolist() == [3.0, 4.0]
    x = tenon.tensor(random(5, 3))
    assert twin.eval()(x).tolist() == net.eval()(x).tolist()
    nn.init.zeros_(twin.head.weight)
    assert net.head.weight.detach().numpy().any()


@pytest.mark.parametrize("device", DEVICES)
def test_a_module_moves_between_devices(device):
    net = Net()
    before, x = list(net.parameters()), tenon.tensor(random(5, 3))
    expected = net.eval()(x).detach().numpy()
    net.to(device)
    assert all(a is b for a, b in zip(before, net.parameters()))
    assert {str(p.device) for p in (*net.parameters(), *net.buffers())} == {f"{device}:0"}
    np.testing.assert_allclose(net(x.to(device)).detach().cpu().numpy(), expected, **F32)
    state = net.state_dict()
    back = Net()
    back.load_state_dict(state)
    np.testing.assert_allclose(back.eval()(x).detach().numpy(), expected, **F32)
