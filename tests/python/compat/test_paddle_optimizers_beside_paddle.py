# SPDX-License-Identifier: Apache-2.0
"""paddle.optimizer and its schedules beside PaddlePaddle's: weights after ten steps, and fifty rates."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tenon
from tenon.compat import paddle

pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
peer = importlib.import_module("paddle")

START = [
    np.random.default_rng(1).standard_normal((4, 3)).astype("float32"),
    np.random.default_rng(2).standard_normal(3).astype("float32"),
]
X = np.random.default_rng(3).standard_normal((5, 4)).astype("float32")

CASES: list[tuple[str, dict]] = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1}),
    ("Momentum", {}),
    ("Momentum", {"use_nesterov": True, "weight_decay": 0.05, "momentum": 0.8}),
    ("Momentum", {"use_multi_tensor": True}),
    ("Adam", {}),
    ("Adam", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("AdamW", {"weight_decay": 0.3, "amsgrad": True}),
    ("Adamax", {}),
    ("Adamax", {"epsilon": 0.01, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"initial_accumulator_value": 0.5, "weight_decay": 0.1, "epsilon": 0.01}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.8, "epsilon": 1e-3, "weight_decay": 0.1}),
    ("RMSProp", {}),
    ("RMSProp", {"momentum": 0.9, "epsilon": 1e-2}),
    ("RMSProp", {"centered": True, "momentum": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    ("Lamb", {}),
    ("Lamb", {"lamb_weight_decay": 0.0}),
    ("Lamb", {"lamb_weight_decay": 0.0, "always_adapt": True}),
    ("Lamb", {"exclude_from_weight_decay_fn": lambda p: len(p.shape) == 1}),
    ("NAdam", {}),
    ("NAdam", {"momentum_decay": 0.1, "weight_decay": 0.1, "epsilon": 1e-3}),
    ("RAdam", {}),
    ("RAdam", {"beta2": 0.8, "weight_decay": 0.1, "epsilon": 1e-3}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.3, 1.5), "learning_rate_range": (0.005, 0.03)}),
    ("ASGD", {}),
    ("ASGD", {"batch_num": 3, "weight_decay": 0.1}),
]


def trained(library, name, steps=10, scheduled=False, clip=None, grouped=False, **options):
    """The weights of a small model that one library has trained."""
    if library is peer:
        params = [peer.create_parameter(list(a.shape), "float32") for a in START]
        for param, start in zip(params, START, strict=True):
            param.set_value(peer.to_tensor(start))
        tensor = peer.to_tensor
    else:
        params = [tenon.nn.Parameter(tenon.tensor(a)) for a in START]
        tensor = tenon.tensor
    rate = 0.01
    if scheduled:
        rate = library.optimizer.lr.ExponentialDecay(0.01, 0.7)
    if clip is not None:
        options["grad_clip"] = getattr(library.nn, clip[0])(*clip[1:])
    given = params
    if grouped:
        given = [
            {"params": params[:1]},
            {"params": params[1:], "learning_rate": 0.3, "weight_decay": 0.2},
        ]
    optimizer = getattr(library.optimizer, name)(learning_rate=rate, parameters=given, **options)
    x = tensor(X)
    for i in range(steps):
        loss = ((library.matmul(x, params[0]) + params[1]) ** 2 * (1.0 + i % 3)).sum()
        loss = loss + library.tanh(params[1]).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if scheduled:
            rate.step()
    return [np.array(param.detach().numpy()) for param in params]


def agree(name, **how):
    ours, theirs = trained(paddle, name, **how), trained(peer, name, **how)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name, options", CASES, ids=[f"{name}-{'-'.join(o)}" for name, o in CASES])
def test_ten_steps_have_paddles_weights(name, options):
    agree(name, **options)
    if name != "Rprop":
        agree(name, scheduled=True, **options)


CLIPS = [
    ("ClipGradByValue", 0.5),
    ("ClipGradByValue", 0.5, 0.1),
    ("ClipGradByNorm", 0.7),
    ("ClipGradByGlobalNorm", 0.7),
    ("ClipGradByGlobalNorm", 1e6),
]


@pytest.mark.parametrize("clip", CLIPS, ids=[f"{c[0]}-{i}" for i, c in enumerate(CLIPS)])
def test_limits_of_gradients(clip):
    agree("SGD", clip=clip)
    agree("Momentum", clip=clip, weight_decay=0.1)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSProp"])
def test_groups_of_parameters(name):
    agree(name, grouped=True)


SCHEDULES = [
    ("NoamDecay", (64, 10), {}),
    ("PiecewiseDecay", ([3, 6, 20], [0.1, 0.2, 0.3, 0.4]), {}),
    ("NaturalExpDecay", (0.5, 0.1), {}),
    ("InverseTimeDecay", (0.5, 0.1), {}),
    ("PolynomialDecay", (0.5, 20), {}),
    ("PolynomialDecay", (0.5, 20), {"cycle": True, "power": 2.0, "end_lr": 0.01}),
    ("LinearWarmup", (0.5, 20, 0.0, 0.5), {}),
    ("ExponentialDecay", (0.5, 0.9), {}),
    ("MultiStepDecay", (0.5, [5, 10, 30]), {"gamma": 0.7}),
    ("StepDecay", (0.5, 5), {"gamma": 0.7}),
    ("LambdaDecay", (0.5, lambda step: 0.95**step), {}),
    ("MultiplicativeDecay", (0.5, lambda step: 0.95 + 0.001 * step), {}),
    ("CosineAnnealingDecay", (0.5, 10), {"eta_min": 0.01}),
    ("OneCycleLR", (1.0, 50), {}),
    ("OneCycleLR", (1.0, 60), {"three_phase": True, "anneal_strategy": "linear"}),
    ("CyclicLR", (0.5, 1.0, 5), {"step_size_down": 7}),
    ("CyclicLR", (0.5, 1.0, 5), {"mode": "triangular2"}),
    ("CyclicLR", (0.5, 1.0, 5), {"mode": "exp_range", "exp_gamma": 0.99}),
    ("CyclicLR", (0.5, 1.0, 5), {"scale_fn": lambda x: 1 / x, "scale_mode": "cycle"}),
    ("LinearLR", (0.5, 20), {"start_factor": 0.2}),
    ("CosineAnnealingWarmRestarts", (0.5, 5), {"T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", (0.5, 5), {}),
]


@pytest.mark.parametrize(
    "name, args, options", SCHEDULES, ids=[f"{s[0]}-{i}" for i, s in enumerate(SCHEDULES)]
)
def test_fifty_rates(name, args, options):
    ours, theirs = (getattr(lib.optimizer.lr, name)(*args, **options) for lib in (paddle, peer))
    for _ in range(50):
        assert ours() == pytest.approx(theirs(), rel=1e-9, abs=1e-12)
        ours.step()
        theirs.step()
    assert ours.state_dict()["last_epoch"] == theirs.state_dict()["last_epoch"]
    assert set(ours.state_dict()) == set(theirs.state_dict())


def test_rates_behind_a_warmup():
    def made(lr):
        return lr.LinearWarmup(lr.StepDecay(0.5, 3, 0.5), 5, 0.1, 0.5)

    ours, theirs = made(paddle.optimizer.lr), made(peer.optimizer.lr)
    for _ in range(50):
        assert ours() == pytest.approx(theirs(), rel=1e-12)
        ours.step()
        theirs.step()


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_rates_of_a_plateau(mode, threshold_mode):
    options = {"patience": 2, "cooldown": 3, "factor": 0.5, "min_lr": 0.01, "threshold": 0.05}
    ours, theirs = (
        lib.optimizer.lr.ReduceOnPlateau(1.0, mode, threshold_mode=threshold_mode, **options)
        for lib in (paddle, peer)
    )
    for value in np.random.default_rng(4).standard_normal(50).cumsum():
        ours.step(float(value))
        theirs.step(float(value))
        assert ours() == pytest.approx(theirs(), rel=1e-12)


def test_lbfgs():
    for options in ({}, {"line_search_fn": "strong_wolfe"}):
        found = []
        for library in (paddle, peer):
            if library is peer:
                param = peer.create_parameter([3], "float32")
                param.set_value(peer.to_tensor(START[1]))
            else:
                param = tenon.nn.Parameter(tenon.tensor(START[1]))
            optimizer = library.optimizer.LBFGS(0.5, max_iter=4, parameters=[param], **options)

            def closure(optimizer=optimizer, param=param):
                optimizer.clear_grad()
                loss = ((param - 1.0) ** 4).sum() + (param**2).sum()
                loss.backward()
                return loss

            for _ in range(3):
                optimizer.step(closure)
            found.append(np.array(param.detach().numpy()))
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
