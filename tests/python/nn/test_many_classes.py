# SPDX-License-Identifier: Apache-2.0
"""Losses of many classes, LookAhead and Ftrl, beside loops in NumPy."""

import math

import numpy as np
import pytest
import tenon
from tenon import autograd, nn, optim
from tenon.nn import functional as F


def hsigmoid(x, label, classes, weight, bias):
    """Walks down the tree for each sample."""
    out = []
    for row, which in zip(x, label):
        node, total = which + classes, 0.0
        while node > 1:
            score = weight[node // 2 - 1] @ row + bias[node // 2 - 1]
            total += np.log1p(np.exp(score)) - (node & 1) * score
            node //= 2
        out.append([total])
    return np.array(out)


@pytest.mark.parametrize("classes", [2, 3, 5, 8, 13])
def test_hsigmoid_walks_the_complete_tree(classes):
    rng = np.random.default_rng(classes)
    x, label = rng.normal(size=(9, 4)), rng.integers(classes, size=9)
    label[:2] = 0, classes - 1
    weight, bias = rng.normal(size=(classes - 1, 4)), rng.normal(size=classes - 1)
    got = F.hsigmoid_loss(
        *map(tenon.tensor, (x, label)), classes, *map(tenon.tensor, (weight, bias))
    )
    np.testing.assert_allclose(got.numpy(), hsigmoid(x, label, classes, weight, bias), rtol=1e-12)


def test_hsigmoid_is_a_distribution():
    """The probabilities of all classes sum to 1."""
    weight, x = tenon.normal([6, 3]), tenon.normal([1, 3])
    losses = F.hsigmoid_loss(x.expand([7, 3]), tenon.arange(7), 7, weight)
    assert tenon.exp(-losses).sum().item() == pytest.approx(1.0, abs=1e-5)


def test_hsigmoid_takes_paths_and_has_gradients():
    rng = np.random.default_rng(0)
    x, weight, bias = (
        tenon.tensor(rng.normal(size=s), requires_grad=True) for s in ((3, 4), (5, 4), (5,))
    )
    label = tenon.tensor([0, 1, 2])
    table = tenon.tensor([[0, 1, -1], [0, 2, 4], [3, -1, -1]])
    code = tenon.tensor([[1, 0, 0], [0, 1, 1], [1, 0, 0]])
    loss = F.hsigmoid_loss(x, label, 5, weight, bias, table, code)
    w, b, v = weight.detach().numpy(), bias.detach().numpy(), x.detach().numpy()
    expected = [
        [
            sum(
                math.log1p(math.exp(w[n] @ v[i] + b[n])) - c * (w[n] @ v[i] + b[n])
                for n, c in zip(table.tolist()[i], code.tolist()[i])
                if n >= 0
            )
        ]
        for i in range(3)
    ]
    np.testing.assert_allclose(loss.detach().numpy(), expected, rtol=1e-12)
    assert autograd.gradcheck(
        lambda *p: F.hsigmoid_loss(p[0], label, 5, p[1], p[2], table, code), (x, weight, bias)
    )


def test_hsigmoid_layer_learns_and_refuses():
    tenon.manual_seed(0)
    layer = nn.HSigmoidLoss(4, 6)
    x, label = tenon.eye(6)[:, :4] + 0.1, tenon.arange(6)
    optimizer = optim.Adam(layer.parameters(), lr=0.1)
    first = layer(x, label).mean().item()
    for _ in range(50):
        optimizer.zero_grad()
        layer(x, label).mean().backward()
        optimizer.step()
    assert layer(x, label).mean().item() < 0.5 * first
    with pytest.raises(IndexError, match="expected classes from 0 to 5, got 6"):
        layer(x[:2], tenon.tensor([0, 6]))
    with pytest.raises(ValueError, match="expected paths if, and only if, is_custom"):
        nn.HSigmoidLoss(4, 6, is_custom=True)(x, label)
    with pytest.raises(ValueError, match="expected path and code together, or neither"):
        F.hsigmoid_loss(x, label, 6, layer.weight, None, tenon.zeros([6, 1]))
    with pytest.raises(ValueError, match="num_classes >= 2"):
        nn.HSigmoidLoss(4, 1)


@pytest.mark.parametrize(
    "margins", [(1.0, 0.5, 0.0), (1.35, 0.0, 0.0), (1.0, 0.0, 0.35), (1.1, 0.3, 0.1)]
)
def test_margin_cross_entropy(margins):
    rng = np.random.default_rng(0)
    cosines, label = rng.uniform(-0.95, 0.95, size=(6, 5)), rng.integers(5, size=6)
    m1, m2, m3 = margins
    logits, rows = cosines.copy(), np.arange(6)
    logits[rows, label] = np.cos(m1 * np.arccos(cosines[rows, label]) + m2) - m3
    logits *= 16.0
    odds = np.exp(logits - logits.max(1, keepdims=True))
    softmax = odds / odds.sum(1, keepdims=True)
    x, y = tenon.tensor(cosines, requires_grad=True), tenon.tensor(label)
    loss, probabilities = F.margin_cross_entropy(x, y, m1, m2, m3, 16.0, True, "none")
    np.testing.assert_allclose(loss.detach().numpy(), -np.log(softmax[rows, label]), rtol=1e-9)
    np.testing.assert_allclose(probabilities.detach().numpy(), softmax, rtol=1e-9)
    assert autograd.gradcheck(lambda t: F.margin_cross_entropy(t, y, m1, m2, m3, 16.0), (x,))


def test_margin_cross_entropy_at_the_ends():
    x = tenon.tensor([[1.0, -1.0], [-1.0, 1.0]], requires_grad=True)
    F.margin_cross_entropy(x, tenon.tensor([0, 0])).backward()
    assert np.isfinite(x.grad.numpy()).all()
    with pytest.raises(IndexError, match="expected classes from 0 to 1, got 2"):
        F.margin_cross_entropy(x, tenon.tensor([0, 2]))


@pytest.mark.parametrize("samples", [1, 6, 20])
def test_class_center_sample(samples):
    label = tenon.tensor([11, 5, 1, 3, 12, 2, 15, 19, 18, 5])
    remapped, drawn = F.class_center_sample(label, 20, samples)
    names = drawn.tolist()
    assert len(names) == max(samples, 9) and names == sorted(set(names))
    assert [names[i] for i in remapped.tolist()] == label.tolist()
    with pytest.raises(ValueError, match="num_samples from 1 to 20, got 21"):
        F.class_center_sample(label, 20, 21)


def test_class_center_sample_draws_every_other_class():
    tenon.manual_seed(0)
    label, seen = tenon.tensor([3]), np.zeros(8)
    for _ in range(400):
        seen[F.class_center_sample(label, 8, 3)[1].tolist()] += 1
    assert seen[3] == 400
    others = np.delete(seen, 3)
    assert abs(others - 400 * 2 / 7).max() < 50  # five standard deviations


def test_lookahead_goes_part_of_the_way():
    start = np.array([1.0, -2.0])
    param = nn.Parameter(tenon.tensor(start))
    ahead = optim.LookAhead(optim.SGD([param], lr=0.1), alpha=0.25, k=3)
    slow = fast = start
    for step in range(1, 11):
        ahead.zero_grad()
        (param * param).sum().backward()
        ahead.step()
        fast = fast - 0.1 * 2 * fast
        if step % 3 == 0:
            slow = fast = slow + 0.25 * (fast - slow)
        np.testing.assert_allclose(param.detach().numpy(), fast, rtol=1e-12)


def test_lookahead_continues_from_its_state():
    def made(value):
        param = nn.Parameter(tenon.tensor(value))
        return param, optim.LookAhead(optim.Adam([param], lr=0.1), k=4)

    def steps(param, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            (param * param).sum().backward()
            optimizer.step()

    a, first = made([1.0, -2.0])
    steps(a, first, 6)
    b, second = made(a.tolist())
    second.load_state_dict(first.state_dict())
    steps(a, first, 6)
    steps(b, second, 6)
    assert a.tolist() == b.tolist()


def test_lookahead_with_master_weights_schedules_and_bad_steps():
    param = nn.Parameter(tenon.ones([3]).to(tenon.bfloat16))
    inner = optim.SGD([param], lr=1e-4, multi_precision=True)
    ahead = optim.LookAhead(inner, alpha=0.5, k=2)
    schedule = optim.lr_scheduler.StepLR(ahead, 1, gamma=0.5)
    for _ in range(2):
        param.grad = tenon.ones([3]).to(tenon.bfloat16)
        ahead.step()
        schedule.step()
    (master,) = inner.state[param].values()
    np.testing.assert_allclose(master.numpy(), 1 - 0.5 * 1.5e-4, rtol=1e-7)
    assert inner.param_groups[0]["lr"] == 2.5e-5
    ahead.step(found_inf=tenon.tensor(1.0))
    assert ahead.steps == 2
    with pytest.raises(ValueError, match="LookAhead: expected k >= 1, got 0"):
        optim.LookAhead(inner, k=0)
    with pytest.raises(RuntimeError, match="LookAhead.step: expected a call that is not recorded"):
        tenon.export(lambda x: (ahead.step(), x)[1], tenon.zeros([1]))
    with pytest.raises(TypeError, match="expected an optimizer, got list"):
        optim.LookAhead([param])


def ftrl(w, grads, lr, l1, l2, power):
    n, z = np.zeros_like(w), np.zeros_like(w)
    for g in grads:
        new = n + g * g
        z = z + g - (new**power - n**power) / lr * w
        n = new
        for i in range(w.size):
            if n[i] == 0 and l2 == 0:
                continue
            inside = abs(z[i]) <= l1
            w[i] = 0.0 if inside else (np.sign(z[i]) * l1 - z[i]) / (n[i] ** power / lr + 2 * l2)
    return w


@pytest.mark.parametrize("options", [{}, {"l1": 0.3}, {"l1": 0.1, "l2": 0.2, "lr_power": -0.3}])
def test_ftrl(options):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=6), rng.normal(size=(10, 6))
    grads[:, 5] = 0.0
    param = nn.Parameter(tenon.tensor(start))
    optimizer = optim.Ftrl([param], lr=0.1, **options)
    for grad in grads:
        param.grad = tenon.tensor(grad)
        optimizer.step()
    l1, l2 = options.get("l1", 0.0), options.get("l2", 0.0)
    expected = ftrl(start.copy(), grads, 0.1, l1, l2, -options.get("lr_power", -0.5))
    np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="Ftrl: expected l1 >= 0, got -1"):
        optim.Ftrl([param], l1=-1)
    with pytest.raises(ValueError, match="Ftrl: expected lr_power <= 0, got 1"):
        optim.Ftrl([param], lr_power=1)
