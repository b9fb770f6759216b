# SPDX-License-Identifier: Apache-2.0
"""Optimizers and schedules beside those of PyTorch: the same options give the same trajectories.

Runs where torch is installed; it is no dependency of Tenon.
"""

import pathlib
import re

import numpy as np
import pytest
import tenon
from tenon import nn, optim

torch = pytest.importorskip("torch", reason="needs torch, which is no dependency of Tenon")

OPTIMIZERS: list[tuple[str, dict]] = [
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


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("case", OPTIMIZERS, ids=str)
def test_same_trajectories(case, maximize):
    """20 steps in two groups on a function whose gradient depends on where the parameters are."""
    name, options = case[0], {**case[1], "maximize": maximize}
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


SCHEDULES = [
    ("LambdaLR", (lambda t: 0.9**t,), {}),
    ("MultiplicativeLR", (lambda t: 1.0 - t / 100,), {}),
    ("StepLR", (3,), {"gamma": 0.5}),
    ("MultiStepLR", ([2, 5, 5, 9],), {"gamma": 0.5}),
    ("ConstantLR", (), {}),
    ("ConstantLR", (0.5, 3), {}),
    ("LinearLR", (), {}),
    ("LinearLR", (0.1, 0.5, 8), {}),
    ("LinearLR", (1.0, 0.0, 4), {}),
    ("ExponentialLR", (0.9,), {}),
    ("PolynomialLR", (8, 2.0), {}),
    ("CosineAnnealingLR", (7,), {"eta_min": 0.05}),
    ("CosineAnnealingWarmRestarts", (4,), {}),
    ("CosineAnnealingWarmRestarts", (3, 2), {"eta_min": 0.01}),
    ("CyclicLR", (0.1, 1.0), {"step_size_up": 4}),
    (
        "CyclicLR",
        (0.1, [1.0, 2.0]),
        {"step_size_up": 3, "step_size_down": 5, "mode": "triangular2"},
    ),
    ("CyclicLR", (0.1, 1.0), {"step_size_up": 4, "mode": "exp_range", "gamma": 0.95}),
    ("OneCycleLR", (1.0,), {"total_steps": 31}),
    ("OneCycleLR", ([1.0, 2.0], 31), {"three_phase": True, "anneal_strategy": "linear"}),
    ("OneCycleLR", (1.0,), {"epochs": 8, "steps_per_epoch": 4, "pct_start": 0.4}),
]
CHAINS = [
    [("ConstantLR", (0.1, 3)), ("ExponentialLR", (0.9,))],
    [("LinearLR", (0.1, 1.0, 4)), ("StepLR", (5, 0.5)), ("PolynomialLR", (20, 1.5))],
    [("CosineAnnealingLR", (40,)), ("LinearLR", (0.1, 1.0, 6))],
    [("MultiplicativeLR", (lambda t: 0.95,)), ("MultiStepLR", ([3, 8], 0.5))],
]


def pair():
    """An optimizer of each library with two groups."""
    groups = [{"lr": 0.4}, {"lr": 0.2}]
    ours = [{"params": [nn.Parameter(tenon.ones([1]))], **g} for g in groups]
    theirs = [{"params": [torch.nn.Parameter(torch.ones(1))], **g} for g in groups]
    return optim.SGD(ours, momentum=0.9), torch.optim.SGD(theirs, momentum=0.9)


def same_sequences(optimizers, schedules, steps=30):
    for step in range(steps):
        got, want = ([dict(g) for g in o.param_groups] for o in optimizers)
        for a, b in zip(got, want):
            for name in ("lr", "momentum"):
                assert a[name] == pytest.approx(b[name], rel=1e-12, abs=1e-15), (step, name)
        assert schedules[0].get_last_lr() == [g["lr"] for g in got]
        optimizers[1].step()
        for schedule in schedules:
            schedule.step()


def id_of(case):
    """Without the addresses of functions: processes that share the tests have to agree on names."""
    return re.sub(r" at 0x\w+", "", f"{case[0]}-{case[1:]}")[:60]


@pytest.mark.parametrize("case", SCHEDULES, ids=id_of)
def test_same_schedules(case):
    name, settings, named = case
    optimizers = pair()
    schedules = [
        getattr(module, name)(optimizer, *settings, **named)
        for module, optimizer in zip((optim.lr_scheduler, torch.optim.lr_scheduler), optimizers)
    ]
    same_sequences(optimizers, schedules)


def chains(case):
    optimizers = pair()
    modules = (optim.lr_scheduler, torch.optim.lr_scheduler)
    return optimizers, [
        [getattr(module, name)(optimizer, *settings) for name, settings in case]
        for module, optimizer in zip(modules, optimizers)
    ]


@pytest.mark.parametrize("case", CHAINS, ids=lambda case: "-".join(name for name, _ in case))
def test_same_chains(case):
    optimizers, parts = chains(case)
    schedules = [
        module.ChainedScheduler(each)
        for module, each in zip((optim.lr_scheduler, torch.optim.lr_scheduler), parts)
    ]
    same_sequences(optimizers, schedules)


@pytest.mark.parametrize("case", CHAINS[:3], ids=lambda case: "-".join(name for name, _ in case))
def test_same_sequences_of_schedules(case):
    optimizers, parts = chains(case)
    milestones = [4, 11][: len(case) - 1]
    schedules = [
        module.SequentialLR(optimizer, each, milestones)
        for module, optimizer, each in zip(
            (optim.lr_scheduler, torch.optim.lr_scheduler), optimizers, parts
        )
    ]
    same_sequences(optimizers, schedules)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_same_plateaus(mode, threshold_mode):
    optimizers = pair()
    options = {"mode": mode, "threshold_mode": threshold_mode, "threshold": 0.1, "patience": 2}
    options |= {"factor": 0.5, "cooldown": 2, "min_lr": 0.03}
    schedules = [
        module.ReduceLROnPlateau(optimizer, **options)
        for module, optimizer in zip((optim.lr_scheduler, torch.optim.lr_scheduler), optimizers)
    ]
    for metric in np.random.default_rng(0).uniform(0.5, 2.0, size=60):
        for schedule in schedules:
            schedule.step(metric)
        got, want = ([g["lr"] for g in o.param_groups] for o in optimizers)
        assert got == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_same_rates_after_another_schedule(strategy):
    optimizers = pair()
    modules = (optim, torch.optim)
    first = [m.lr_scheduler.ExponentialLR(o, 0.9) for m, o in zip(modules, optimizers)]
    for schedule in first:
        schedule.optimizer.step()
        schedule.step()
    schedules = [
        m.swa_utils.SWALR(o, 0.01, anneal_epochs=6, anneal_strategy=strategy)
        for m, o in zip(modules, optimizers)
    ]
    same_sequences(optimizers, schedules, 12)


def test_the_table_of_classes_is_complete(monkeypatch):
    """Every public class of the installed PyTorch is in the table of the site, or newer than it."""
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[3] / "scripts"))
    from site_pages import training_classes

    for module, kind, names in (
        (torch.nn, torch.nn.Module, training_classes.LAYERS),
        (torch.optim, torch.optim.Optimizer, training_classes.OPTIMIZERS),
        (
            torch.optim.lr_scheduler,
            torch.optim.lr_scheduler.LRScheduler,
            training_classes.SCHEDULES,
        ),
    ):
        theirs = {n for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, kind)}
        assert {n for n in theirs if not n.startswith("_")} <= {*names, "Optimizer"}
