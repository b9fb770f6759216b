# SPDX-License-Identifier: Apache-2.0
"""Options of optimizers beside their formulas in NumPy, refusals, and what stays between steps."""

import math

import numpy as np
import pytest
import tenon
from tenon import nn, optim

T = tenon.tensor
rng = np.random.default_rng(7)
GRADS = rng.standard_normal((5, 3, 4))
START = rng.standard_normal((3, 4))


def ran(make, start=START, grads=GRADS, **options):
    param = nn.Parameter(T(start))
    optimizer = make([param], **options)
    for grad in grads:
        param.grad = T(grad)
        optimizer.step()
    return param.detach().numpy(), optimizer


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


# -- formulas --------------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop(momentum, centered):
    p, v, mean, velocity = START.copy(), 0.0, 0.0, 0.0
    for grad in GRADS:
        g = grad + 0.1 * p
        v, mean = 0.8 * v + 0.2 * g * g, 0.8 * mean + 0.2 * g
        step = g / (np.sqrt(v - mean * mean if centered else v) + 1e-3)
        velocity = momentum * velocity + step
        p = p - 0.05 * (velocity if momentum else step)
    options = {"alpha": 0.8, "eps": 1e-3, "weight_decay": 0.1}
    close(ran(optim.RMSprop, lr=0.05, momentum=momentum, centered=centered, **options)[0], p)


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
def test_the_largest_second_moment(kind):
    p, m, v, largest = START.copy(), 0.0, 0.0, 0.0
    for t, grad in enumerate(GRADS, 1):
        if kind is optim.AdamW:
            p, g = p * (1 - 0.05 * 0.1), grad
        else:
            g = grad + 0.1 * p
        m, v = 0.7 * m + 0.3 * g, 0.8 * v + 0.2 * g * g
        largest = np.maximum(largest, v)
        p = p - 0.05 * (m / (1 - 0.7**t)) / (np.sqrt(largest / (1 - 0.8**t)) + 1e-2)
    options = {"betas": (0.7, 0.8), "eps": 1e-2, "weight_decay": 0.1}
    close(ran(kind, lr=0.05, amsgrad=True, **options)[0], p)


def test_adagrad_with_a_rate_that_falls():
    p, v = START.copy(), 0.5
    for t, grad in enumerate(GRADS):
        g = grad + 0.1 * p
        v = v + g * g
        p = p - 0.05 / (1 + t * 0.3) * g / (np.sqrt(v) + 1e-3)
    options = {"lr_decay": 0.3, "initial_accumulator_value": 0.5, "eps": 1e-3, "weight_decay": 0.1}
    close(ran(optim.Adagrad, lr=0.05, **options)[0], p)


def test_adadelta():
    p, v, steps = START.copy(), 0.0, 0.0
    for grad in GRADS:
        g = grad + 0.1 * p
        v = 0.8 * v + 0.2 * g * g
        step = g * np.sqrt(steps + 1e-3) / np.sqrt(v + 1e-3)
        steps = 0.8 * steps + 0.2 * step * step
        p = p - 0.5 * step
    close(ran(optim.Adadelta, lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)[0], p)
    for rho in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"Adadelta: expected rho in \[0, 1\], got"):
            optim.Adadelta([nn.Parameter(T([1.0]))], rho=rho)
    for rho in (0.0, 1.0):
        optim.Adadelta([nn.Parameter(T([1.0]))], rho=rho)


def test_averaged_gradient_descent():
    p, eta, mu, average = START.copy(), 0.05, 1.0, np.zeros_like(START)
    for t, grad in enumerate(GRADS, 1):
        p = p * (1 - 0.2 * eta) - eta * (grad + 0.1 * p)
        average = average + mu * (p - average)
        eta = 0.05 / (1 + 0.2 * 0.05 * t) ** 0.75
        mu = 1 / max(1, t - 2)
    once, first = ran(optim.ASGD, grads=GRADS[:1], lr=0.05)
    close(next(iter(first.state.values()))["ax"].numpy(), once)
    options = {"lambd": 0.2, "t0": 2, "weight_decay": 0.1}
    got, optimizer = ran(optim.ASGD, lr=0.05, **options)
    # The decay and the gradient are of the parameter before the step.
    close(got, p)
    close(next(iter(optimizer.state.values()))["ax"].numpy(), average)


def test_steps_that_grow_and_shrink_within_limits():
    grads = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    p, size, before = np.zeros(3), np.full(3, 0.1), np.zeros(3)
    for g in grads:
        product = g * before
        size = np.clip(
            np.where(product > 0, size * 2, np.where(product < 0, size * 0.25, size)), 0.05, 0.3
        )
        g = np.where(product < 0, 0, g)
        p, before = p - np.sign(g) * size, g
    got, _ = ran(optim.Rprop, np.zeros(3), grads, lr=0.1, etas=(0.25, 2.0), step_sizes=(0.05, 0.3))
    close(got, p)
    for etas in ((0.0, 2.0), (1.0, 2.0), (0.5, 1.0)):
        with pytest.raises(ValueError, match="Rprop: expected etas below and above 1, got"):
            optim.Rprop([nn.Parameter(T([1.0]))], etas=etas)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2)])
def test_adafactor_of_any_number_of_axes(shape):
    grads = GRADS.reshape(5, *shape)
    p, v, rows, columns = START.reshape(shape).copy(), 0.0, 0.0, 0.0
    rms = lambda x: np.sqrt((x * x).mean())
    for t, g in enumerate(grads, 1):
        weight, size = t**-0.6, max(rms(p), 1e-2)
        p = p * (1 - 0.3 * 0.1)
        if len(shape) == 1:
            v = v + weight * (g * g - v)
        else:
            rows = rows + weight * ((g * g).mean(-1, keepdims=True) - rows)
            columns = columns + weight * ((g * g).mean(-2, keepdims=True) - columns)
            v = rows * columns / np.maximum(rows.mean(-2, keepdims=True), 1e-4)
        direction = g / np.sqrt(np.maximum(v, 1e-8))
        p = p - size * min(0.3, 1 / math.sqrt(t)) * direction / max(1, rms(direction) / 0.5)
    options = {"beta2_decay": -0.6, "eps": (1e-4, 1e-2), "d": 0.5, "weight_decay": 0.1}
    close(ran(optim.Adafactor, START.reshape(shape), grads, lr=0.3, **options)[0], p)
    default = ran(optim.Adafactor, START.reshape(shape), grads)[0]
    eps = np.finfo(np.float64).eps
    # Gradients whose squares are below the smallest that counts, and the means that are kept.
    small = grads * 1e-9
    rows = columns = 0.0
    p = START.reshape(shape).copy()
    for t, g in enumerate(small, 1):
        weight, rate = t**-0.8, max(rms(p), 1e-3) * min(1e-2, 1 / math.sqrt(t))
        rows = rows + weight * ((g * g).mean(-1, keepdims=True) - rows)
        columns = columns + weight * (
            (g * g).mean(-2, keepdims=True) - columns if g.ndim > 1 else 0
        )
        v = rows * columns / np.maximum(rows.mean(-2, keepdims=True), eps) if g.ndim > 1 else 0
        direction = g / np.sqrt(np.maximum(v, eps * eps))
        p = p - rate * direction / max(1, rms(direction))
    got, optimizer = ran(optim.Adafactor, START.reshape(shape), small)
    (state,) = optimizer.state.values()
    if len(shape) > 1:
        close(got, p)
        np.testing.assert_allclose(state["rows"].numpy(), rows, rtol=1e-9)
        np.testing.assert_allclose(state["columns"].numpy(), columns, rtol=1e-9)
    close(default, ran(optim.Adafactor, START.reshape(shape), grads, eps=(eps, 1e-3))[0])


@pytest.mark.parametrize("kind", [optim.Lars, optim.Lamb])
def test_layerwise_rates(kind):
    p, a, b = START.copy(), 0.0, 0.0
    norm = np.linalg.norm
    for t, g in enumerate(GRADS, 1):
        if kind is optim.Lars:
            ratio = 0.01 * norm(p) / (norm(g) + 0.1 * norm(p) + 0.2)
            a = 0.8 * a + (g + 0.1 * p) * ratio * 0.05
            p = p - a
        else:
            a, b = 0.7 * a + 0.3 * g, 0.8 * b + 0.2 * g * g
            direction = a / (1 - 0.7**t) / (np.sqrt(b / (1 - 0.8**t)) + 0.2) + 0.1 * p
            p = p - 0.05 * norm(p) / norm(direction) * direction
    more = {"momentum": 0.8, "trust": 0.01} if kind is optim.Lars else {"betas": (0.7, 0.8)}
    close(ran(kind, lr=0.05, weight_decay=0.1, eps=0.2, **more)[0], p)


def test_layerwise_rates_of_zeros():
    """A parameter or a gradient of zeros has no ratio: the rate is that of the group."""
    zeros, g = np.zeros((2, 2)), np.ones((1, 2, 2))
    close(ran(optim.Lars, zeros, g, lr=0.5, weight_decay=0.0)[0], np.full((2, 2), -0.5))
    close(ran(optim.Lars, np.ones((2, 2)), 0 * g, lr=0.5, weight_decay=0.0)[0], np.ones((2, 2)))
    close(ran(optim.Lamb, zeros, g, lr=0.5, eps=0.0, weight_decay=0.0)[0], np.full((2, 2), -0.5))
    close(ran(optim.Lamb, np.ones((2, 2)), 0 * g, lr=0.5, weight_decay=0.0)[0], np.ones((2, 2)))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 6)])
@pytest.mark.parametrize("nesterov", [False, True])
def test_muon(shape, nesterov):
    grads = GRADS.reshape(5, *shape)
    p, velocity = START.reshape(shape).copy(), 0.0
    for g in grads:
        velocity = velocity + 0.2 * (g - velocity)
        x = g + 0.8 * (velocity - g) if nesterov else velocity
        x = x.T if shape[0] > shape[1] else x
        x = x / np.linalg.norm(x)
        for _ in range(3):
            gram = x @ x.T
            x = 3.0 * x + (-4.0 * gram + 2.0 * gram @ gram) @ x
        x = x.T if shape[0] > shape[1] else x
        p = p * (1 - 0.05 * 0.1) - 0.05 * max(1, shape[0] / shape[1]) ** 0.5 * x
    options = {"momentum": 0.8, "nesterov": nesterov, "ns_coefficients": (3.0, -4.0, 2.0)}
    got = ran(
        optim.Muon, START.reshape(shape), grads, lr=0.05, ns_steps=3, weight_decay=0.1, **options
    )
    close(got[0], p)
    still = ran(optim.Muon, START.reshape(shape), 0 * grads, weight_decay=0.0)[0]
    close(still, START.reshape(shape))


def test_momentum_with_dampening_and_its_class():
    p, velocity = START.copy(), None
    for grad in GRADS:
        g = grad + 0.1 * p
        velocity = g if velocity is None else 0.8 * velocity + 0.7 * g
        p = p - 0.05 * velocity
    close(ran(optim.SGD, lr=0.05, momentum=0.8, dampening=0.3, weight_decay=0.1)[0], p)
    default = ran(optim.SGD, lr=0.05, momentum=0.9)[0]
    close(ran(optim.Momentum, lr=0.05)[0], default)
    nesterov = ran(optim.SGD, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)[0]
    close(ran(optim.Momentum, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)[0], nesterov)


# -- options and refusals --------------------------------------------------------------------------

PARAM = nn.Parameter(T([1.0, 2.0]))


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: optim.SGD([PARAM], momentum=-0.1), "SGD: expected momentum >= 0, got -0.1"),
        (lambda: optim.SGD([PARAM], 0.1, 0.9, 0.1, nesterov=True), "nesterov needs momentum > 0 and damp"),
        (lambda: optim.SGD([PARAM], nesterov=True), "SGD: nesterov needs momentum > 0"),
        (lambda: optim.SGD([PARAM], lr=math.nan), "SGD: expected lr >= 0, got nan"),
        (lambda: optim.Adam([PARAM], eps=-1.0), "Adam: expected eps >= 0, got -1.0"),
        (lambda: optim.AdamW([PARAM], weight_decay=-1.0), "AdamW: expected weight_decay >= 0"),
        (lambda: optim.Adam([PARAM], betas=(-0.1, 0.9)), r"Adam: expected betas in \[0, 1\), got"),
        (lambda: optim.Lamb([PARAM], betas=(0.9, 1.0)), r"Lamb: expected betas in \[0, 1\), got"),
        (lambda: optim.Adam([PARAM], amsgrad=True, capturable=True), "capturable without amsgrad"),
        (lambda: optim.Ftrl([PARAM], l1=-1.0), "Ftrl: expected l1 >= 0, got -1.0"),
        (lambda: optim.Ftrl([PARAM], l2=-1.0), "Ftrl: expected l2 >= 0, got -1.0"),
        (lambda: optim.Ftrl([PARAM], lr=0.0), "Ftrl: expected lr > 0, got 0.0"),
        (lambda: optim.Ftrl([PARAM], lr_power=0.5), "Ftrl: expected lr_power <= 0, got 0.5"),
        (lambda: optim.Adafactor([PARAM], eps=(None, -1.0)), "Adafactor: expected eps >= 0, got -1"),
        (lambda: optim.Muon([nn.Parameter(tenon.ones([2, 2, 2]))]), "Muon: expected parameters of two axes"),
        (lambda: optim.SGD([]), "SGD: got no parameters; is the model empty"),
        (lambda: optim.SGD([{"params": [PARAM]}, {"params": [PARAM]}]), "a parameter of shape .* appears twice"),
        (lambda: optim.SGD([PARAM, 3.0]), "SGD: expected tensors, got float"),
        (lambda: optim.SGD([{"params": PARAM, "speed": 1}]), r"unknown options \['speed'\]; known are"),
        (lambda: optim.LBFGS([{"params": [PARAM]}, {"params": [nn.Parameter(T([1.0]))]}]), "LBFGS: expected one group, got 2"),
        (lambda: optim.LBFGS([PARAM]).step(lambda: 0.0, found_inf=T(0.0)), "LBFGS.step: expected no found_inf"),
        (lambda: setattr(optim.LBFGS([PARAM]), "multi_precision", True), "LBFGS: expected multi_precision=False"),
        (lambda: optim.LookAhead(3), "LookAhead: expected an optimizer, got int"),  # type: ignore[arg-type]
        (lambda: optim.LookAhead(optim.SGD([PARAM]), alpha=1.5), "LookAhead: expected alpha from 0 to 1, got 1.5"),
        (lambda: optim.LookAhead(optim.SGD([PARAM]), k=0), "LookAhead: expected k >= 1, got 0"),
    ],
)  # fmt: skip
def test_refusals(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


def test_groups_have_options_of_their_own():
    a, b, c = (nn.Parameter(T([1.0])) for _ in range(3))
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5, "maximize": True}], lr=0.1)
    optimizer.add_param_group({"params": c, "initial_lr": 3.0, "lr": 0.3})
    for each in (a, b, c):
        each.grad = T([1.0])
    optimizer.step()
    close([a.item(), b.item(), c.item()], np.float32([0.9, 1.5, 0.7]))
    assert not optimizer.multi_precision
    optimizer.param_groups[0]["multi_precision"] = True
    assert not optimizer.multi_precision
    optimizer.multi_precision = True
    assert optimizer.multi_precision and all(g["multi_precision"] for g in optimizer.param_groups)
    assert optimizer.defaults["multi_precision"]
    optimizer.zero_grad()
    assert a.grad is None


def test_gradients_are_forgotten_or_zero():
    a, b = nn.Parameter(T([1.0])), nn.Parameter(T([1.0]))
    optimizer = optim.SGD([a, b])
    a.grad = T([3.0])
    memory = a.grad.data_ptr()
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.data_ptr() == memory and a.grad.tolist() == [0.0] and b.grad is None
    optimizer.zero_grad()
    assert a.grad is None


def test_saved_states_of_other_models_are_refused():
    one = optim.Adam([nn.Parameter(T([1.0]))])
    saved = one.state_dict()
    assert saved["state"] == {} and saved["param_groups"][0]["params"] == [0]
    saved["state"] = {3: {"step": 1}}
    with pytest.raises(
        ValueError, match="Adam.load_state_dict: state for parameter 3, but there are 1"
    ):
        one.load_state_dict(saved)
    ran_before, optimizer = ran(optim.Adam)
    state = optimizer.state_dict()
    param = nn.Parameter(T(ran_before))
    other = optim.Adam([param], lr=9.0)
    other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == 1e-3 and other.param_groups[0]["params"][0] is param
    copied = other.state[param]["m"]
    assert (
        copied.tolist() == state["state"][0]["m"].tolist() and copied is not state["state"][0]["m"]
    )


def test_a_bad_gradient_changes_nothing():
    param = nn.Parameter(T([1.0]))
    optimizer = optim.Adam([param], lr=0.5, capturable=False)
    param.grad = T([1.0])
    assert optimizer.step(lambda: 3.0, found_inf=T(1.0)) == 3.0
    assert param.item() == 1.0 and not optimizer.state
    optimizer.step(found_inf=T(0.0))
    assert param.item() == pytest.approx(0.5) and optimizer.state[param]["step"] == 1


def test_weights_that_follow_slowly():
    param = nn.Parameter(T([0.0]))
    optimizer = optim.LookAhead(optim.SGD([param], lr=1.0), alpha=0.25, k=2)
    seen = []
    for _ in range(5):
        param.grad = T([-1.0])
        optimizer.step()
        seen.append(param.item())
    # Two steps from 0 lead to 2, of which a quarter is gone; from there two lead to 2.5.
    assert seen == [1.0, 0.5, 1.5, 1.0, 2.0]
    saved = optimizer.state_dict()
    twin = nn.Parameter(T([2.0]))
    other = optim.LookAhead(optim.SGD([twin], lr=9.0), alpha=0.25, k=2)
    other.load_state_dict(saved)
    for each, stepped in ((param, optimizer), (twin, other)):
        each.grad = T([-1.0])
        stepped.step()
    assert param.item() == twin.item() == 1.5 and other.steps == 6
    param.grad = T([-1.0])
    assert optimizer.step(lambda: 7.0, found_inf=T(1.0)) == 7.0 and optimizer.steps == 6
    optimizer.add_param_group({"params": nn.Parameter(T([1.0]))})
    assert len(optimizer.param_groups) == 2


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16])
def test_master_weights_keep_what_rounding_loses(dtype):
    param = nn.Parameter(tenon.ones([1], dtype=dtype))
    wide = nn.Parameter(tenon.ones([1]))
    optimizer = optim.SGD([param, wide], lr=2.0**-12, multi_precision=True)
    for _ in range(2**9):
        param.grad, wide.grad = tenon.ones([1], dtype=dtype), tenon.ones([1])
        optimizer.step()
    assert param.item() == wide.item() == 1 - 2.0**-3 and param.dtype == dtype
    assert "master" in optimizer.state[param] and "master" not in optimizer.state[wide]
    assert optimizer.state[param]["master"].dtype == tenon.float32
    # State of steps before it was switched on becomes float32 as well.
    late = optim.Adam([param], lr=0.5)
    param.grad = tenon.ones([1], dtype=dtype)
    late.step()
    assert late.state[param]["m"].dtype == dtype
    late.multi_precision = True
    late.step()
    assert {late.state[param][name].dtype for name in ("m", "v", "master")} == {tenon.float32}


# -- the method of Broyden, Fletcher, Goldfarb and Shanno -------------------------------------------


def quadratic(scales):
    scales = T(np.array(scales))
    return lambda x: 0.5 * (scales * x * x).sum()


def minimised(function, start, steps=1, **options):
    x = nn.Parameter(T(np.array(start)))
    optimizer, calls = optim.LBFGS([x], **options), []

    def closure():
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        calls.append(loss.item())
        return loss

    first = [optimizer.step(closure).item() for _ in range(steps)]
    return x.detach().numpy(), calls, first


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_quasi_newton_steps_of_a_quadratic(search):
    x, calls, first = minimised(
        quadratic([1.0, 10.0, 4.0]), [1.0, -2.0, 3.0], 3, line_search_fn=search
    )
    assert first[0] == calls[0] == 0.5 * (1 + 40 + 36)
    np.testing.assert_allclose(x, 0.0, atol=1e-4)
    if search:
        # A step never leaves the loss above where it began.
        assert first == sorted(first, reverse=True) and len(calls) < 40


def test_limits_of_a_step():
    function, start = quadratic([1.0, 100.0]), [1.0, 1.0]
    assert len(minimised(function, start, max_iter=1)[1]) == 1
    assert len(minimised(function, start, max_iter=4)[1]) == 4
    assert len(minimised(function, start, max_iter=9, max_eval=3)[1]) == 3
    assert len(minimised(function, start, tolerance_grad=1e6)[1]) == 1
    assert len(minimised(function, start, tolerance_change=1e6)[1]) == 1
    assert len(minimised(function, [0.0, 0.0])[1]) == 1
    x = minimised(function, start, max_iter=1)[0]
    np.testing.assert_allclose(x, np.array(start) - np.array([1.0, 100.0]) / 101)
    x = minimised(quadratic([0.25, 0.5]), start, max_iter=1)[0]
    np.testing.assert_allclose(x, [0.75, 0.5])
    x = minimised(quadratic([0.25, 0.5]), start, max_iter=1, lr=0.5)[0]
    np.testing.assert_allclose(x, [0.875, 0.75])


def test_a_search_ends_where_its_bracket_is_small():
    """The kink has no slope that the strong Wolfe conditions accept."""

    def calls(tolerance):
        options = {"line_search_fn": "strong_wolfe", "max_iter": 1, "tolerance_change": tolerance}
        return minimised(lambda x: abs(x - 0.3).sum(), [0.0], max_eval=100, **options)

    rough, fine = calls(0.1), calls(1e-6)
    assert len(rough[1]) < len(fine[1]) <= 26 and len(rough[1]) <= 8
    np.testing.assert_allclose(fine[0], 0.3, atol=1e-4)
    np.testing.assert_allclose(rough[0], 0.3, atol=0.1)


def test_the_history_is_limited_and_its_pairs_are_used():
    scales = np.array([1.0, 3.0, 9.0, 27.0, 81.0])
    ends = {}
    for size in (1, 2, 100):
        x = nn.Parameter(T(np.ones(5)))
        optimizer = optim.LBFGS([x], max_iter=12, history_size=size, line_search_fn="strong_wolfe")

        def closure(optimizer=optimizer, x=x):
            optimizer.zero_grad()
            loss = quadratic(scales)(x)
            loss.backward()
            return loss

        optimizer.step(closure)
        (state,) = optimizer.state.values()
        assert len(state["s"]) == len(state["y"]) <= size
        ends[size] = quadratic(scales)(x).item()
        for s, y in zip(state["s"], state["y"]):
            np.testing.assert_allclose(y.numpy(), scales * s.numpy(), rtol=1e-6, atol=1e-12)
    assert ends[100] < 1e-2 and ends[100] < ends[1]


def test_a_loss_is_maximised():
    x = nn.Parameter(T(np.array([1.0, -2.0])))
    optimizer = optim.LBFGS([x], line_search_fn="strong_wolfe")
    optimizer.param_groups[0]["maximize"] = True

    def closure():
        optimizer.zero_grad()
        loss = -quadratic([1.0, 10.0])(x)
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == -20.5
    np.testing.assert_allclose(x.detach().numpy(), 0.0, atol=1e-5)
    x.grad = None
    idle = nn.Parameter(T([1.0]))
    both = optim.LBFGS([x, idle])
    both.step(lambda: x.sum().backward() or T(1.0))
    assert idle.item() == 1.0
