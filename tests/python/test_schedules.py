# SPDX-License-Identifier: Apache-2.0
"""Schedules of the learning rate: their sequences, chaining, saving, refusals."""

import math

import pytest
import tenon
from tenon import nn, optim
from tenon.optim import lr_scheduler


def sgd(*rates):
    groups = [{"params": [nn.Parameter(tenon.ones([1]))], "lr": rate} for rate in rates or (2.0,)]
    return optim.SGD(groups, momentum=0.9)


def sequence(make, steps, *rates):
    optimizer = sgd(*rates)
    scheduler = make(optimizer)
    result = []
    for _ in range(steps):
        result.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return result


CASES = [
    (lambda o: lr_scheduler.MultiplicativeLR(o, lambda t: 0.5), [2, 1, 0.5, 0.25]),
    (lambda o: lr_scheduler.MultiStepLR(o, [1, 3], 0.5), [2, 1, 1, 0.5, 0.5]),
    (lambda o: lr_scheduler.ConstantLR(o, 0.25, 2), [0.5, 0.5, 2, 2]),
    (lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 2), [1, 1.5, 2, 2]),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.5), [2, 1, 0.5]),
    (lambda o: lr_scheduler.PolynomialLR(o, 2, 2.0), [2, 0.5, 0, 0]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 2, 1.0), [2, 1.5, 1, 1.5, 2]),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2), [2, 1, 2, 1.7071, 1, 0.2929, 2]),
    (lambda o: lr_scheduler.CyclicLR(o, 1.0, 3.0, 2), [1, 2, 3, 2, 1, 2]),
    (lambda o: lr_scheduler.CyclicLR(o, 1.0, 3.0, 1, 2, "triangular2"), [1, 3, 2, 1, 2, 1.5]),
    (
        lambda o: lr_scheduler.OneCycleLR(
            o, 4.0, 5, pct_start=0.6, anneal_strategy="linear", div_factor=4, final_div_factor=2
        ),
        [1, 2.5, 4, 2.25, 0.5],
    ),
    (lambda o: lr_scheduler.NoamLR(o, 4, 4), [0, 0.125, 0.25, 0.375, 0.5, 5**-0.5]),
    (lambda o: lr_scheduler.PiecewiseLR(o, [1, 3], [5, 4, 3]), [5, 4, 4, 3]),
    (lambda o: lr_scheduler.NaturalExpLR(o, 0.5), [2, 2 * math.exp(-0.5), 2 * math.exp(-1)]),
    (lambda o: lr_scheduler.InverseTimeLR(o, 1.0), [2, 1, 2 / 3, 0.5]),
    (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o, 0.5, 9), lr_scheduler.ExponentialLR(o, 0.5)], [2]
        ),
        [1, 1, 2, 1, 0.5],
    ),
    (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.5, 2), lr_scheduler.ExponentialLR(o, 0.5)]
        ),
        [1, 0.5, 0.5, 0.25],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[1]))
def test_sequences(case):
    make, want = case
    assert sequence(make, len(want)) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[1]))
def test_saved_schedules_continue(case):
    make, want = case
    optimizer = sgd()
    first = make(optimizer)
    first.step()
    first.step()
    other = sgd()
    second = make(other)
    second.load_state_dict(first.state_dict())
    assert second.get_last_lr() == first.get_last_lr()
    if len(want) > 3:
        second.step()
        assert second.get_last_lr() == pytest.approx([want[3]], rel=1e-4)


def test_two_schedules_on_one_optimizer_multiply():
    optimizer = sgd(2.0, 8.0)
    both = [lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 1, 0.1)]
    for schedule in both:
        schedule.step()
    assert both[0].get_last_lr() == pytest.approx([0.1, 0.4])
    assert both[0].base_lrs == [2.0, 8.0] and both[0].last_epoch == 1


def test_rates_that_a_program_changes_stay_changed():
    optimizer = sgd()
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.param_groups[0]["lr"] = 10.0
    schedule.step()
    assert schedule.get_last_lr() == [5.0]


def test_momentum_moves_the_other_way():
    optimizer = sgd()
    schedule = lr_scheduler.CyclicLR(optimizer, 1.0, 3.0, 2, base_momentum=0.5, max_momentum=0.9)
    seen = []
    for _ in range(3):
        seen.append(optimizer.param_groups[0]["momentum"])
        schedule.step()
    assert seen == pytest.approx([0.9, 0.7, 0.5])
    adam = optim.Adam([nn.Parameter(tenon.ones([1]))])
    lr_scheduler.OneCycleLR(adam, 1.0, 10)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)


def test_plateaus():
    optimizer = sgd()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    for metric in (1.0, tenon.tensor(0.9), 0.9):
        schedule.step(metric)
    assert schedule.get_last_lr() == [2.0]
    twin = lr_scheduler.ReduceLROnPlateau(sgd(), patience=1, factor=0.5)
    twin.load_state_dict(schedule.state_dict())
    for each in (schedule, twin):
        each.step(0.95)
        assert each.get_last_lr() == [1.0]


def test_epochs_may_be_fractions():
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 2)
    schedule.step(0.5)
    assert schedule.get_last_lr() == pytest.approx([1 + math.cos(math.pi / 4)])
    resumed = lr_scheduler.ExponentialLR(sgd(), 0.5, last_epoch=1)
    assert resumed.get_last_lr() == [0.5]


def test_refusals():
    optimizer = sgd()
    with pytest.raises(ValueError, match="expected lr_lambda of one number or 1, one for each"):
        lr_scheduler.LambdaLR(optimizer, [abs, abs])
    with pytest.raises(ValueError, match="ConstantLR: expected factor from 0 to 1, got 2"):
        lr_scheduler.ConstantLR(optimizer, 2.0)
    with pytest.raises(ValueError, match="LinearLR: expected start_factor above 0"):
        lr_scheduler.LinearLR(optimizer, 0.0)
    with pytest.raises(ValueError, match="expected mode 'triangular'"):
        lr_scheduler.CyclicLR(optimizer, 1.0, 2.0, mode="square")
    with pytest.raises(ValueError, match="has no momentum; pass cycle_momentum=False"):
        lr_scheduler.OneCycleLR(optim.Adagrad([nn.Parameter(tenon.ones([1]))]), 1.0, 10)
    with pytest.raises(ValueError, match="expected total_steps, or epochs and steps_per_epoch"):
        lr_scheduler.OneCycleLR(optimizer, 1.0)
    with pytest.raises(ValueError, match="expected 1 milestones for 2 schedules, got 0"):
        parts = [lr_scheduler.ExponentialLR(optimizer, 0.5) for _ in range(2)]
        lr_scheduler.SequentialLR(optimizer, parts, [])
    with pytest.raises(ValueError, match="expected schedules of one optimizer"):
        lr_scheduler.ChainedScheduler([parts[0], lr_scheduler.ExponentialLR(sgd(), 0.5)])
    with pytest.raises(ValueError, match="ReduceLROnPlateau: expected factor < 1, got 2"):
        lr_scheduler.ReduceLROnPlateau(optimizer, factor=2.0)
    with pytest.raises(ValueError, match="PiecewiseLR: expected 2 values for 1 boundaries, got 1"):
        lr_scheduler.PiecewiseLR(optimizer, [1], [1.0])
