# SPDX-License-Identifier: Apache-2.0
"""Optimizers against their published formulas in NumPy; closures, maximize, saving."""

import numpy as np
import pytest
import tenon
from tenon import nn, optim

START = np.random.default_rng(1).normal(size=(3, 4))
GRADS = np.random.default_rng(0).normal(size=(8, 3, 4))


def adamax(p, grads, lr=2e-3, b1=0.9, b2=0.999, eps=1e-8):
    m, u = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, np.abs(g) + eps)
        p = p - lr / (1 - b1**t) * m / u
    return p


def nadam(p, grads, lr=2e-3, b1=0.9, b2=0.999, eps=1e-8, psi=4e-3):
    m, v, product = np.zeros_like(p), np.zeros_like(p), 1.0
    for t, g in enumerate(grads, 1):
        mu, after = (b1 * (1 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1))
        product *= mu
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        hat = after * m / (1 - product * after) + (1 - mu) * g / (1 - product)
        p = p - lr * hat / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


def radam(p, grads, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    m, v, longest = np.zeros_like(p), np.zeros_like(p), 2 / (1 - b2) - 1
    for t, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = m / (1 - b1**t)
        rho = longest - 2 * t * b2**t / (1 - b2**t)
        if rho > 5:
            r = (rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho)
            step = step * np.sqrt(r) * np.sqrt(1 - b2**t) / (np.sqrt(v) + eps)
        p = p - lr * step
    return p


def adadelta(p, grads, lr=1.0, rho=0.9, eps=1e-6):
    v, steps = np.zeros_like(p), np.zeros_like(p)
    for g in grads:
        v = rho * v + (1 - rho) * g * g
        step = np.sqrt(steps + eps) / np.sqrt(v + eps) * g
        steps = rho * steps + (1 - rho) * step * step
        p = p - lr * step
    return p


def rprop(p, grads, lr=1e-2):
    before, size = np.zeros_like(p), np.full_like(p, lr)
    for g in grads:
        sign = np.sign(g * before)
        size = np.clip(size * np.choose(sign.astype(int) + 1, [0.5, 1.0, 1.2]), 1e-6, 50)
        g = np.where(sign < 0, 0, g)
        p, before = p - np.sign(g) * size, g
    return p


def asgd(p, grads, lr=1e-2, lambd=1e-4, alpha=0.75):
    eta = lr
    for t, g in enumerate(grads, 1):
        p = p * (1 - lambd * eta) - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha
    return p


def lars(p, grads, lr=1e-3, momentum=0.9, decay=5e-4, trust=1e-3):
    velocity = np.zeros_like(p)
    for g in grads:
        size, slope = np.linalg.norm(p), np.linalg.norm(g)
        rate = lr * trust * size / (slope + decay * size)
        velocity = momentum * velocity + rate * (g + decay * p)
        p = p - velocity
    return p


def lamb(p, grads, lr=1e-3, b1=0.9, b2=0.999, eps=1e-6, decay=0.01):
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        r = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps) + decay * p
        p = p - lr * np.linalg.norm(p) / np.linalg.norm(r) * r
    return p


def adafactor(p, grads, lr=1e-2, power=-0.8, eps2=1e-3):
    rows, columns = np.zeros((3, 1)), np.zeros((1, 4))
    for t, g in enumerate(grads, 1):
        w = t**power
        rows = (1 - w) * rows + w * (g * g).mean(1, keepdims=True)
        columns = (1 - w) * columns + w * (g * g).mean(0, keepdims=True)
        u = g / np.sqrt(rows * columns / rows.mean())
        alpha = max(eps2, np.sqrt((p * p).mean())) * min(lr, 1 / np.sqrt(t))
        p = p - alpha * u / max(1, np.sqrt((u * u).mean()))
    return p


def muon(p, grads, lr=1e-3, decay=0.1, momentum=0.95):
    velocity = np.zeros_like(p)
    for g in grads:
        velocity = momentum * velocity + (1 - momentum) * g
        x = (1 - momentum) * g + momentum * velocity
        x = x / np.linalg.norm(x)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
        p = p * (1 - lr * decay) - lr * x
    return p


def amsgrad(p, grads, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    m, v, largest = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        largest = np.maximum(largest, v)
        p = p - lr * m / (1 - b1**t) / (np.sqrt(largest / (1 - b2**t)) + eps)
    return p


def centered(p, grads, lr=1e-2, alpha=0.99, eps=1e-8, momentum=0.9):
    v, mean, velocity = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for g in grads:
        v, mean = alpha * v + (1 - alpha) * g * g, alpha * mean + (1 - alpha) * g
        velocity = momentum * velocity + g / (np.sqrt(v - mean * mean) + eps)
        p = p - lr * velocity
    return p


CASES = {
    "Adamax": (optim.Adamax, {}, adamax),
    "NAdam": (optim.NAdam, {}, nadam),
    "RAdam": (optim.RAdam, {}, radam),
    "Adadelta": (optim.Adadelta, {}, adadelta),
    "Rprop": (optim.Rprop, {}, rprop),
    "ASGD": (optim.ASGD, {}, asgd),
    "Lars": (optim.Lars, {}, lars),
    "Lamb": (optim.Lamb, {}, lamb),
    "Adafactor": (optim.Adafactor, {}, adafactor),
    "Muon": (optim.Muon, {}, muon),
    "Adam with amsgrad": (optim.Adam, {"amsgrad": True}, amsgrad),
    "RMSprop centered": (optim.RMSprop, {"centered": True, "momentum": 0.9}, centered),
}


def run(optimizer, param, grads):
    for grad in grads:
        param.grad = tenon.tensor(grad, dtype=param.dtype)
        optimizer.step()


@pytest.mark.parametrize("name", CASES)
def test_formulas(name):
    kind, options, expected = CASES[name]
    param = nn.Parameter(tenon.tensor(START))
    run(kind([param], **options), param, GRADS)
    np.testing.assert_allclose(param.detach().numpy(), expected(START, GRADS), rtol=1e-9)
    up = nn.Parameter(tenon.tensor(START))
    run(kind([up], **options, maximize=True), up, -GRADS)
    assert up.tolist() == param.tolist()


@pytest.mark.parametrize("name", CASES)
def test_training_continues_from_a_saved_state(name):
    kind, options, _ = CASES[name]
    whole, part = (nn.Parameter(tenon.tensor(START)) for _ in range(2))
    run(kind([whole], **options), whole, GRADS)
    first = kind([part], **options)
    run(first, part, GRADS[:3])
    second = kind([part], **options)
    second.load_state_dict(first.state_dict())
    run(second, part, GRADS[3:])
    assert part.tolist() == whole.tolist()


def test_closures_run_with_recording():
    param = nn.Parameter(tenon.tensor([2.0]))
    optimizer = optim.SGD([param], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with tenon.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert param.tolist() == [1.0]
    optimizer.zero_grad(set_to_none=False)
    assert param.grad.tolist() == [0.0]
    assert "maximize" not in repr(optimizer)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum(search):
    x = nn.Parameter(tenon.tensor([-1.2, 1.0], dtype=tenon.float64))
    optimizer = optim.LBFGS([x], lr=1.0 if search else 0.1, max_iter=100, line_search_fn=search)

    def rosenbrock():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] * x[0]) ** 2
        loss.backward()
        return loss

    first = optimizer.step(rosenbrock).item()
    assert abs(first - 24.2) < 1e-6
    for _ in range(10):
        optimizer.step(rosenbrock)
    np.testing.assert_allclose(x.detach().numpy(), [1, 1], atol=1e-4)


def test_senseless_options_are_refused():
    param = nn.Parameter(tenon.ones([2]))
    with pytest.raises(
        ValueError, match=r"Muon: expected parameters of two axes, got shape \(2,\)"
    ):
        optim.Muon([param])
    with pytest.raises(ValueError, match="Rprop: expected etas below and above 1"):
        optim.Rprop([param], etas=(1.0, 1.2))
    with pytest.raises(ValueError, match="Adadelta: expected rho in"):
        optim.Adadelta([param], rho=1.5)
    with pytest.raises(ValueError, match=r"RAdam: expected betas in \[0, 1\)"):
        optim.RAdam([param], betas=(1.0, 0.9))
    with pytest.raises(ValueError, match="expected line_search_fn None or 'strong_wolfe'"):
        optim.LBFGS([param], line_search_fn="armijo")
    with pytest.raises(TypeError, match="LBFGS.step: expected a closure"):
        optim.LBFGS([param]).step()
