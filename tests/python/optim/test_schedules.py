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


PARTS = {
    "warmup": lambda o: lr_scheduler.LinearWarmup(o, 4),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2),
    "steps": lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.5),
    "function": lambda o: lr_scheduler.LambdaLR(o, lambda t: 0.9**t),
    "factors": lambda o: lr_scheduler.MultiplicativeLR(o, lambda t: 1 - 0.01 * t),
    "to zero": lambda o: lr_scheduler.PolynomialLR(o, 8),
    "pieces": lambda o: lr_scheduler.PiecewiseLR(o, [2, 4], [1.0, 3.0, 0.5]),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 3), lr_scheduler.ExponentialLR(o, 0.9)], [3]
    ),
}


def rates_of(makes, steps=12):
    optimizer = sgd()
    chain = lr_scheduler.ChainedScheduler([make(optimizer) for make in makes])
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        chain.step()
    return rates


ALONE = {name: rates_of([make]) for name, make in PARTS.items()}


@pytest.mark.parametrize("first", PARTS)
def test_each_schedule_of_a_chain_multiplies_the_rate(first):
    """In any order, and whether or not some are 0 in between."""
    for second in PARTS:
        for third in (None, "function"):
            names = [name for name in (first, second, third) if name]
            if len(set(names)) < len(names):
                continue
            want = [
                2.0 * math.prod(rate / 2.0 for rate in each) for each in zip(*map(ALONE.get, names))
            ]
            assert rates_of([PARTS[name] for name in names]) == pytest.approx(want, abs=1e-12), (
                names
            )


@pytest.mark.parametrize("saved_at", [0, 3, 5, 7, 8])
def test_a_chain_is_saved_at_any_step(saved_at):
    """Also where one of its schedules, or two, make the rate 0."""

    def chain(optimizer):
        return lr_scheduler.ChainedScheduler(
            [
                lr_scheduler.StepLR(optimizer, 2, 0.7),
                lr_scheduler.CosineAnnealingLR(optimizer, 5),
                lr_scheduler.CosineAnnealingLR(optimizer, 7),
            ]
        )

    whole, part = sgd(2.0, 8.0), sgd(2.0, 8.0)
    running, first = chain(whole), chain(part)
    for _ in range(saved_at):
        running.step()
        first.step()
    rest = sgd(2.0, 8.0)
    second = chain(rest)
    rest.load_state_dict(part.state_dict())
    second.load_state_dict(first.state_dict())
    for _ in range(6):
        assert second.get_last_lr() == pytest.approx(running.get_last_lr(), abs=1e-14)
        second.step()
        running.step()


def test_a_schedule_that_follows_one_that_ended_at_zero_begins_afresh():
    for lowest in (0.0, 0.1):
        optimizer = sgd()
        first = lr_scheduler.CosineAnnealingLR(optimizer, 4, lowest)
        for _ in range(4):
            first.step()
        assert first.get_last_lr() == [lowest]
        second = lr_scheduler.CosineAnnealingLR(optimizer, 4, lowest)
        assert second.get_last_lr() == [2.0]
        second.step()
        assert second.get_last_lr() == pytest.approx([lowest + (2 - lowest) * (1 + 0.5**0.5) / 2])


@pytest.mark.parametrize("first", PARTS)
def test_a_group_that_is_frozen_stays_so(first):
    for second in PARTS:
        optimizer = sgd(2.0, 0.0)
        if "pieces" in (first, second):
            continue  # its rates do not follow from the initial one
        parts = [PARTS[name](optimizer) for name in (first, second)]
        chain = lr_scheduler.ChainedScheduler(parts)
        for _ in range(12):
            assert optimizer.param_groups[1]["lr"] == 0.0
            chain.step()


def test_a_warm_up_from_zero_keeps_its_first_step_beside_another_schedule():
    optimizer = sgd()
    warmup, cosine = (
        lr_scheduler.LinearWarmup(optimizer, 2),
        lr_scheduler.CosineAnnealingLR(optimizer, 4),
    )
    rates = []
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        warmup.step()
        cosine.step()
    assert rates == pytest.approx([0.0, 0.5 * (1 + 0.5**0.5), 1.0])


def test_a_warm_up_leads_to_a_schedule_with_a_setting_for_each_group():
    optimizer = sgd(2.0, 8.0)
    after = lr_scheduler.LambdaLR(optimizer, [lambda t: 0.5**t, lambda t: 0.1**t])
    schedule = lr_scheduler.LinearWarmup(optimizer, 2, after=after)
    for _ in range(4):
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.5, 0.08])
    with pytest.raises(
        TypeError, match="a formula of the step, got SequentialLR; pass it to SequentialLR"
    ):
        inner = lr_scheduler.SequentialLR(optimizer, [after], [])
        lr_scheduler.LinearWarmup(optimizer, 2, after=inner)
    with pytest.raises(
        ValueError, match="OneCycleLR moves the momentum.*pass cycle_momentum=False"
    ):
        lr_scheduler.LinearWarmup(optimizer, 2, after=lr_scheduler.OneCycleLR(optimizer, 1.0, 9))


@pytest.mark.parametrize("last_epoch", [-1, 0, 2, 3, 5, 8])
def test_a_sequence_goes_on_where_a_run_ended(last_epoch):
    def made(optimizer, last_epoch):
        parts = [
            lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 3),
            lr_scheduler.CosineAnnealingLR(optimizer, 9),
            lr_scheduler.ExponentialLR(optimizer, 0.5),
        ]
        return lr_scheduler.SequentialLR(optimizer, parts, [4, 7], last_epoch)

    whole, rest = sgd(), sgd()
    schedule = made(whole, -1)
    for _ in range(last_epoch + 1):
        schedule.step()
    again = made(rest, last_epoch)
    for _ in range(5):
        assert again.get_last_lr() == pytest.approx(schedule.get_last_lr())
        schedule.step()
        again.step()


def test_a_chain_within_a_sequence():
    optimizer = sgd()
    chain = lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 2, 0.1)]
    )
    first = lr_scheduler.ConstantLR(optimizer, 0.25, 9)
    schedule = lr_scheduler.SequentialLR(optimizer, [first, chain], [2])
    rates = []
    for _ in range(5):
        rates += schedule.get_last_lr()
        schedule.step()
    assert rates == pytest.approx([0.5, 0.5, 2.0, 1.0, 0.05])


def test_a_sequence_keeps_what_another_schedule_does_when_it_goes_to_the_next():
    optimizer = sgd()
    parts = [lr_scheduler.ConstantLR(optimizer, 0.5, 9), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    schedule = lr_scheduler.SequentialLR(optimizer, parts, [2])
    optimizer.param_groups[0]["lr"] *= 0.1
    for _ in range(3):
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1])


def test_a_multiplicative_schedule_calls_its_function_once_for_each_step():
    calls = []

    def factor(step):
        calls.append(step)
        return 0.5

    schedule = lr_scheduler.MultiplicativeLR(sgd(), factor)
    for _ in range(20):
        schedule.step()
    assert calls == list(range(1, 21)) and schedule.get_last_lr() == [2.0 * 0.5**20]
    optimizer = sgd()
    parts = [
        lr_scheduler.StepLR(optimizer, 1, 0.5),
        lr_scheduler.MultiplicativeLR(optimizer, factor),
    ]
    chain = lr_scheduler.ChainedScheduler(parts)
    for _ in range(3):
        chain.step()
    assert calls[20:] == [1, 2, 3] and chain.get_last_lr() == [2.0 * 0.25**3]
    del calls[20:]
    again = lr_scheduler.MultiplicativeLR(sgd(), factor)
    again.load_state_dict(schedule.state_dict())
    again.step()
    assert calls[20:] == [21] and again.get_last_lr() == [2.0 * 0.5**21]


def test_states_of_earlier_versions_are_read():
    state = {"last_step": 3, "base_rates": [2.0], "rates": [0.25]}
    schedule = lr_scheduler.MultiplicativeLR(sgd(), lambda t: 0.5)
    schedule.load_state_dict(state)
    schedule.step()
    assert schedule.get_last_lr() == [0.125]


def test_phases_without_length():
    one = lr_scheduler.OneCycleLR(sgd(), 4.0, 10, pct_start=0.1)
    assert one.get_last_lr() == [4.0]
    one.step()
    assert 0 < one.get_last_lr()[0] < 4.0
    whole = lr_scheduler.OneCycleLR(sgd(), 4.0, 1, pct_start=1.0)
    whole.step()
    assert whole.get_last_lr() == pytest.approx([4.0 / 25 / 1e4])
    at_once = lr_scheduler.LinearLR(sgd(), 0.25, 0.5, 0)
    assert at_once.get_last_lr() == [1.0]
    at_once.step()
    assert at_once.get_last_lr() == [1.0]
    saw = lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 2, 0)
    saw.step()
    assert saw.get_last_lr() == [2.0]


def test_refusals_of_lengths_and_of_what_steps_by_a_metric():
    optimizer = sgd()
    with pytest.raises(ValueError, match="PolynomialLR: expected total_iters >= 1, got 0"):
        lr_scheduler.PolynomialLR(optimizer, 0)
    with pytest.raises(ValueError, match="LinearLR: expected total_iters >= 0, got -1"):
        lr_scheduler.LinearLR(optimizer, total_iters=-1)
    with pytest.raises(ValueError, match="CyclicLR: expected step_size_up above 0"):
        lr_scheduler.CyclicLR(optimizer, 1.0, 2.0, 0)
    with pytest.raises(ValueError, match="NoamLR: expected d_model and warmup_steps of at least 1"):
        lr_scheduler.NoamLR(optimizer, 4, 0)
    with pytest.raises(ValueError, match="expected div_factor and final_div_factor above 0, got 0"):
        lr_scheduler.OneCycleLR(optimizer, 1.0, 9, div_factor=0.0)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
    parts = [lr_scheduler.ExponentialLR(optimizer, 0.5), plateau]
    text = "expected schedules that step without a metric, got ReduceLROnPlateau; leave it out"
    with pytest.raises(TypeError, match=f"SequentialLR: {text}"):
        lr_scheduler.SequentialLR(optimizer, parts, [2])
    with pytest.raises(TypeError, match=f"ChainedScheduler: {text}"):
        lr_scheduler.ChainedScheduler(parts)
    with pytest.raises(
        ValueError, match=r"milestones of at least 0 in ascending order, got \[3, 2\]"
    ):
        lr_scheduler.SequentialLR(optimizer, [parts[0]] * 3, [3, 2])
    other = sgd()
    parts = [lr_scheduler.ExponentialLR(other, 0.5), lr_scheduler.CyclicLR(other, 0.1, 1.0)]
    with pytest.raises(ValueError, match="make those that set initial rates.*before the others"):
        lr_scheduler.ChainedScheduler(parts)


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
