# SPDX-License-Identifier: Apache-2.0
"""Optimizers and schedules beside PyTorch's, over 30 steps of the same gradients.

    python -m tests.fuzz.peers.optim --minutes 5

Settings, groups, shapes, dtypes (complex ones, too) and the steps without a gradient are random. In
the middle our state is saved and loaded into new objects, while PyTorch's go on. Chains of
schedules are compared with the product of what each does alone, as well.
"""

from __future__ import annotations

import math
import random
import sys
from typing import Any

import numpy as np
import tenon
import torch
from tenon import nn, optim

from .campaign import Checks, Difference, apart, main

DIFFERENCES = [
    Difference(
        r"rates of ChainedScheduler\[.*(LambdaLR|WarmRestarts).*",
        "in PyTorch these set the rate anew, whatever others have made of it; here each multiplies",
    ),
    Difference(
        r"rates of ChainedScheduler\[.*CosineAnnealingLR.*",
        "PyTorch's recursion loses at the bottom of the cosine what others have multiplied by",
    ),
    Difference(
        r"rates of SequentialLR\[.*, MultiplicativeLR.*",
        "PyTorch begins this schedule, which has no closed form there, at the rate of the one "
        "before; here every one "
        "begins at the initial rates",
    ),
]
STEPS = 30
TORCH_DTYPES = {"float32": torch.float32, "float64": torch.float64}


# -- settings --------------------------------------------------------------------------------------


def _maybe(rng: random.Random, value: Any, other: Any) -> Any:
    return value if rng.random() < 0.5 else other


def _decay(rng: random.Random) -> dict[str, Any]:
    return {"weight_decay": _maybe(rng, rng.uniform(0.001, 0.3), 0.0)}


def _betas(rng: random.Random) -> tuple[float, float]:
    return rng.choice([0.0, 0.5, 0.9]), rng.choice([0.9, 0.99, 0.999])


def settings(rng: random.Random, name: str) -> dict[str, Any]:
    """Random options of an optimizer."""
    options: dict[str, Any] = {"lr": 10 ** rng.uniform(-3, 0), "maximize": rng.random() < 0.3}
    options |= {} if name == "Rprop" else _decay(rng)
    if name == "SGD":
        momentum = _maybe(rng, rng.uniform(0.1, 0.99), 0.0)
        nesterov = momentum > 0 and rng.random() < 0.5
        dampening = 0.0 if nesterov or not momentum else _maybe(rng, rng.uniform(0, 0.9), 0.0)
        options |= {"momentum": momentum, "nesterov": nesterov, "dampening": dampening}
    elif name in ("Adam", "AdamW"):
        options |= {"betas": _betas(rng), "eps": 10 ** rng.uniform(-9, -3)}
        options["amsgrad"] = rng.random() < 0.5
    elif name in ("Adamax", "NAdam", "RAdam"):
        options |= {"betas": _betas(rng), "eps": 10 ** rng.uniform(-9, -3)}
        if name != "Adamax":
            options["decoupled_weight_decay"] = rng.random() < 0.5
        if name == "NAdam":
            options["momentum_decay"] = rng.uniform(0.001, 0.01)
    elif name == "RMSprop":
        options |= {"alpha": rng.choice([0.5, 0.9, 0.99]), "eps": 10 ** rng.uniform(-9, -3)}
        options |= {"centered": rng.random() < 0.5, "momentum": rng.choice([0.0, 0.9])}
    elif name == "Adagrad":
        options |= {
            "lr_decay": _maybe(rng, rng.uniform(0, 0.2), 0.0),
            "eps": 10 ** rng.uniform(-10, -3),
        }
        options["initial_accumulator_value"] = _maybe(rng, rng.uniform(0, 1), 0.0)
    elif name == "Adadelta":
        options |= {"rho": rng.uniform(0.1, 0.99), "eps": 10 ** rng.uniform(-8, -3)}
    elif name == "ASGD":
        options |= {
            "lambd": 10 ** rng.uniform(-5, -1),
            "alpha": rng.uniform(0.5, 1),
            "t0": rng.randint(1, 40),
        }
    elif name == "Rprop":
        options |= {"etas": (rng.uniform(0.2, 0.9), rng.uniform(1.1, 2))}
        options["step_sizes"] = (1e-6, rng.uniform(0.5, 50))
    elif name == "Adafactor":
        options |= {"beta2_decay": rng.uniform(-0.9, -0.5), "d": rng.uniform(1, 2)}
    return options


OPTIMIZERS = (
    "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor".split()
)
# PyTorch keeps a factor of ASGD and NAdam as a float32 tensor, which 30 steps multiply.
RELATIVE = {"float32": 2e-4, "float64": 1e-5}
ABSOLUTE = {"float32": 2e-5, "float64": 1e-7}


def trajectories(rng: random.Random) -> Checks:
    """One optimizer of random settings in both libraries."""
    name = rng.choice(OPTIMIZERS)
    dtype = rng.choice(["float32", "float64", "float64"])
    is_complex = name != "Adafactor" and rng.random() < 0.2
    numbers = np.random.default_rng(rng.getrandbits(63))

    def array(shape):
        x = numbers.normal(size=shape) * 10 ** rng.uniform(-1, 1)
        return (x + 1j * numbers.normal(size=shape) if is_complex else x).astype(
            {"float32": "complex64", "float64": "complex128"}[dtype] if is_complex else dtype
        )

    shapes = [
        tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 4))
    ]
    starts = [array(shape) for shape in shapes]
    ours = [nn.Parameter(tenon.tensor(x)) for x in starts]
    theirs = [torch.nn.Parameter(torch.tensor(x)) for x in starts]
    options = settings(rng, name)
    cut = rng.randint(1, len(shapes))
    more = {} if rng.random() < 0.5 else {"lr": 10 ** rng.uniform(-3, 0)}
    parts = [(slice(0, cut), {}), (slice(cut, None), more)]

    def groups(parameters):
        return [{"params": parameters[s], **o} for s, o in parts if parameters[s]]

    def made():
        return getattr(optim, name)(groups(ours), **options)

    a, b = made(), getattr(torch.optim, name)(groups(theirs), **options)
    resumed = rng.randrange(STEPS)
    for step in range(STEPS):
        if step == resumed:
            state, a = a.state_dict(), made()
            a.load_state_dict(state)
        for p, q in zip(ours, theirs):
            if rng.random() < 0.1:
                p.grad = q.grad = None
                continue
            grad = array(tuple(p.shape)) * (rng.random() < 0.95)  # or zeros
            p.grad, q.grad = tenon.tensor(grad), torch.tensor(grad)
        a.step()
        b.step()
    for p, q in zip(ours, theirs):
        label = f"trajectory of {name}({options}) {p.dtype.name}"
        yield label, apart(p.detach().numpy(), q.detach().numpy(), RELATIVE[dtype], ABSOLUTE[dtype])


def lbfgs(rng: random.Random) -> Checks:
    """LBFGS on a convex function."""
    n = rng.randint(2, 6)
    numbers = np.random.default_rng(rng.getrandbits(63))
    start, scale = numbers.normal(size=n), numbers.uniform(0.5, 4, size=n)
    options = {
        "lr": rng.uniform(0.2, 0.8),
        "max_iter": rng.randint(1, 8),
        "history_size": rng.randint(1, 5),
    }
    ours, theirs = nn.Parameter(tenon.tensor(start)), torch.nn.Parameter(torch.tensor(start))
    a, b = optim.LBFGS([ours], **options), torch.optim.LBFGS([theirs], **options)

    def closure(parameter, factors, optimizer):
        def call():
            optimizer.zero_grad()
            loss = (parameter * parameter * factors).sum() + parameter.sin().sum()
            loss.backward()
            return loss

        return call

    for _ in range(4):
        a.step(closure(ours, tenon.tensor(scale), a))
        b.step(closure(theirs, torch.tensor(scale), b))
    # Both stop where the loss changes by 1e-9, which is 3e-5 of a parameter, and rounding decides
    # when.
    yield (
        f"trajectory of LBFGS({options})",
        apart(ours.detach().numpy(), theirs.detach().numpy(), 0, 1e-4),
    )


# -- schedules -------------------------------------------------------------------------------------


def schedule(rng: random.Random, floor: bool = True) -> tuple[str, tuple, dict[str, Any]]:
    """A name with arguments that both libraries take."""
    low = rng.uniform(0, 0.05) if floor else 0.0
    gamma = rng.uniform(0.3, 0.99)
    choices: list[tuple[str, tuple, dict[str, Any]]] = [
        ("StepLR", (rng.randint(1, 8),), {"gamma": gamma}),
        ("MultiStepLR", (sorted(rng.sample(range(1, 28), 3)),), {"gamma": gamma}),
        ("ConstantLR", (rng.uniform(0.1, 1), rng.randint(1, 9)), {}),
        ("LinearLR", (rng.uniform(0.1, 1), rng.uniform(0.1, 1), rng.randint(1, 9)), {}),
        ("ExponentialLR", (gamma,), {}),
        ("PolynomialLR", (rng.randint(STEPS + 1, 50), rng.uniform(0.5, 2)), {}),
        ("CosineAnnealingLR", (rng.randint(2, 40),), {"eta_min": low}),
        ("MultiplicativeLR", ((lambda t: 1 - t / 100),), {}),
        ("LambdaLR", ((lambda t: gamma**t),), {}),
        ("CosineAnnealingWarmRestarts", (rng.randint(1, 9), rng.randint(1, 3)), {"eta_min": low}),
    ]
    return rng.choice(choices)


def setting_schedule(rng: random.Random) -> tuple[str, tuple, dict[str, Any]]:
    """One that sets initial rates and momentum."""
    if rng.random() < 0.5:
        mode = rng.choice(["triangular", "triangular2", "exp_range"])
        options: dict[str, Any] = {
            "step_size_up": rng.randint(1, 9),
            "mode": mode,
            "gamma": rng.uniform(0.8, 1),
        }
        return "CyclicLR", (0.1, rng.uniform(0.2, 1)), options
    options = {
        "total_steps": rng.randint(STEPS, 60),
        "pct_start": rng.uniform(0.06, 0.6),
        "anneal_strategy": rng.choice(["cos", "linear"]),
        "three_phase": rng.random() < 0.5,
        "div_factor": rng.uniform(2, 30),
    }
    if options["three_phase"]:
        options["pct_start"] = min(options["pct_start"], 0.45)
    return "OneCycleLR", (rng.uniform(0.2, 1),), options


def optimizers() -> tuple[optim.SGD, Any]:
    rates = (0.4, 0.15)
    ours = [{"params": [nn.Parameter(tenon.ones([1]))], "lr": rate} for rate in rates]
    theirs = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": rate} for rate in rates]
    return optim.SGD(ours, momentum=0.9), torch.optim.SGD(theirs, lr=0.1, momentum=0.9)


def schedules(rng: random.Random) -> Checks:
    """Schedules alone, in chains and in sequences, with ours saved and loaded in the middle."""
    kind = rng.choice(["alone", "alone", "ChainedScheduler", "SequentialLR"])
    if kind == "alone":
        drawn = [schedule(rng) if rng.random() < 0.7 else setting_schedule(rng)]
    else:
        drawn = [schedule(rng, kind == "SequentialLR") for _ in range(rng.randint(2, 3))]
    milestones = sorted(rng.sample(range(1, 25), len(drawn) - 1))

    def made(module, optimizer):
        parts = [getattr(module, name)(optimizer, *args, **more) for name, args, more in drawn]
        if kind == "ChainedScheduler":
            return module.ChainedScheduler(parts)
        if kind == "SequentialLR":
            return module.SequentialLR(optimizer, parts, milestones)
        return parts[0]

    names = ", ".join(f"{name}{args}{more}" for name, args, more in drawn)
    label = f"rates of {kind}[{names}]"
    a, b = optimizers()
    ours, theirs = made(optim.lr_scheduler, a), made(torch.optim.lr_scheduler, b)
    got: list[Any] = []
    want: list[Any] = []
    resumed = rng.randrange(STEPS)
    for step in range(STEPS):
        if step == resumed:
            saved = a.state_dict(), ours.state_dict()
            a = optimizers()[0]
            ours = made(optim.lr_scheduler, a)
            a.load_state_dict(saved[0])
            ours.load_state_dict(saved[1])
        for groups, rows in ((a.param_groups, got), (b.param_groups, want)):
            rows.append([[float(g["lr"]), float(g["momentum"])] for g in groups])
        b.step()
        ours.step()
        theirs.step()
    yield label, apart(got, want, 1e-9, 1e-12)
    if kind != "ChainedScheduler":
        return
    rates = np.array(got)[:, :, 0]
    product = np.ones_like(rates)
    base = rates[0] * 0 + [0.4, 0.15]
    for name, args, more in drawn:
        o = optimizers()[0]
        alone = getattr(optim.lr_scheduler, name)(o, *args, **more)
        for step in range(STEPS):
            product[step] *= [g["lr"] for g in o.param_groups] / base
            alone.step()
    yield f"product of ChainedScheduler[{names}]", apart(rates, product * base, 1e-9, 1e-12)


def plateaus(rng: random.Random) -> Checks:
    options = {
        "mode": rng.choice(["min", "max"]),
        "factor": rng.uniform(0.1, 0.9),
        "patience": rng.randint(0, 4),
        "threshold": 10 ** rng.uniform(-5, -1),
        "threshold_mode": rng.choice(["rel", "abs"]),
        "cooldown": rng.randint(0, 3),
        "min_lr": rng.uniform(0, 0.1),
    }
    a, b = optimizers()
    ours = optim.lr_scheduler.ReduceLROnPlateau(a, **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(b, **options)
    got: list[Any] = []
    want: list[Any] = []
    for step in range(40):
        metric = rng.choice([rng.uniform(-2, 2), math.nan if rng.random() < 0.2 else 0.0, 1.0])
        if step == 20:
            saved = ours.state_dict()
            ours = optim.lr_scheduler.ReduceLROnPlateau(a, **options)
            ours.load_state_dict(saved)
        ours.step(metric)
        theirs.step(metric)
        got.append([g["lr"] for g in a.param_groups])
        want.append([g["lr"] for g in b.param_groups])
    yield f"rates of ReduceLROnPlateau({options})", apart(got, want, 1e-9, 1e-12)


def clips(rng: random.Random) -> Checks:
    """Limits of gradients."""
    numbers = np.random.default_rng(rng.getrandbits(63))
    arrays = [numbers.normal(size=rng.randint(1, 5)) for _ in range(3)]
    if rng.random() < 0.3:
        arrays = [x + 1j * numbers.normal(size=x.shape) for x in arrays]
    order = rng.choice([1.0, 2.0, 3.0, math.inf])
    limit = 10 ** rng.uniform(-1, 1)
    ours = [nn.Parameter(tenon.tensor(x)) for x in arrays]
    theirs = [torch.nn.Parameter(torch.tensor(x)) for x in arrays]
    for p, q, x in zip(ours, theirs, arrays):
        p.grad, q.grad = tenon.tensor(x), torch.tensor(x)
    norms = [
        optim.clip.clip_grad_norm_(ours, limit, order).item(),
        torch.nn.utils.clip_grad_norm_(theirs, limit, order).item(),
    ]
    yield f"norm of order {order}", apart(norms[0], norms[1], 1e-9, 1e-12)
    for p, q in zip(ours, theirs):
        yield f"clipped by order {order}", apart(p.grad.numpy(), q.grad.numpy(), 1e-6, 1e-9)


def case(rng: random.Random) -> Checks:
    choices = [trajectories, trajectories, schedules, schedules, lbfgs, plateaus, clips]
    return rng.choice(choices)(rng)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # PyTorch's on the order of calls
    torch.set_num_threads(1)
    sys.exit(main(case, DIFFERENCES, __doc__))
