# SPDX-License-Identifier: Apache-2.0
"""Optimizers and schedules beside those of PyTorch: the same options give the same trajectories.

Runs where torch is installed; it is no dependency of Tenon.
"""

import numpy as np
import pytest
import tenon
from tenon import nn, optim

torch = pytest.importorskip("torch", reason="needs torch, which is no dependency of Tenon")

OPTIMIZERS = [
    (name, {**options, **more})
    for name, options in [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
        ("Adam", {"weight_decay": 0.1}),
        ("Adam", {"amsgrad": True, "weight_decay": 0.1, "lr": 0.1}),
        ("AdamW", {"lr": 0.1}),
        ("AdamW", {"amsgrad": True, "lr": 0.1}),
        ("RMSprop", {}),
        ("RMSprop", {"centered": True}),
        ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
        ("Adagrad", {"lr": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
        ("Adadelta", {"weight_decay": 0.1}),
        ("Adadelta", {"rho": 0.5, "lr": 0.5}),
        ("Adamax", {"weight_decay": 0.1}),
        ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
        ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
        ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
        ("RAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1, "betas": (0.9, 0.9)}),
        ("ASGD", {"lr": 0.1, "weight_decay": 0.1, "t0": 4, "lambd": 0.01}),
        ("Rprop", {}),
        ("Adafactor", {"lr": 0.1}),
        ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "d": 2.0}),
    ]
    for more in ({}, {"maximize": True})
]


@pytest.mark.parametrize("case", OPTIMIZERS, ids=str)
def test_same_trajectories(case):
    """20 steps in two groups on a function whose gradient depends on where the parameters are."""
    name, options = case
    rng = np.random.default_rng(0)
    starts = [rng.normal(size=(3, 4)), rng.normal(size=(4,))]
    ours = [nn.Parameter(tenon.tensor(s)) for s in starts]
    theirs = [torch.nn.Parameter(torch.tensor(s)) for s in starts]
    rates = [{}, {"lr": 0.05}]
    a = getattr(optim, name)([{"params": [p], **r} for p, r in zip(ours, rates)], **options)
    b = getattr(torch.optim, name)([{"params": [p], **r} for p, r in zip(theirs, rates)], **options)
    noise = rng.normal(size=(20, 3, 4))
    for step in range(20):
        a.zero_grad()
        b.zero_grad()
        x, y = ours
        loss = ((x - tenon.tensor(noise[step])) * y).sin().sum()
        loss.backward()
        x, y = theirs
        other = ((x - torch.tensor(noise[step])) * y).sin().sum()
        other.backward()
        a.step()
        b.step()
        for got, want in zip(ours, theirs):
            np.testing.assert_allclose(
                got.detach().numpy(), want.detach().numpy(), rtol=1e-6, atol=1e-7
            )


@pytest.mark.parametrize("options", [{"lr": 0.5}, {"lr": 0.3, "history_size": 3, "max_iter": 7}])
def test_same_trajectory_of_lbfgs(options):
    start = np.random.default_rng(0).normal(size=(6,))
    ours, theirs = nn.Parameter(tenon.tensor(start)), torch.nn.Parameter(torch.tensor(start))
    scale = np.arange(1.0, 7.0)
    a, b = optim.LBFGS([ours], **options), torch.optim.LBFGS([theirs], **options)

    def make(parameter, scale, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = (parameter * parameter * scale).sum() + (parameter.sin() * 2.0).sum()
            loss.backward()
            return loss

        return closure

    for _ in range(3):
        got = a.step(make(ours, tenon.tensor(scale), a))
        want = b.step(make(theirs, torch.tensor(scale), b))
        np.testing.assert_allclose(got.item(), want.item(), rtol=1e-9)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)
