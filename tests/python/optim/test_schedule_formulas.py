# SPDX-License-Identifier: Apache-2.0
"""Schedules beside their formulas, with other settings than the defaults; limits of gradients; averages."""

import math

import numpy as np
import pytest
import tenon
from tenon import nn, optim
from tenon.optim import lr_scheduler, swa_utils

T = tenon.tensor


def sgd(*rates, **options):
    rates = rates or (2.0,)
    groups = [{"params": [nn.Parameter(tenon.ones([1]))], "lr": rate} for rate in rates]
    return optim.SGD(groups, momentum=0.9, **options)


def rates_of(schedule, steps):
    rates = []
    for _ in range(steps):
        rates.append([group["lr"] for group in schedule.optimizer.param_groups])
        schedule.step()
    return rates


def single(schedule, steps):
    return [rates[0] for rates in rates_of(schedule, steps)]


def cosine(part):
    return (1 + math.cos(math.pi * part)) / 2


# -- formulas --------------------------------------------------------------------------------------


def test_factors_of_the_step():
    cases = [
        (lr_scheduler.StepLR(sgd(), 3, 0.5), lambda t: 2 * 0.5 ** (t // 3)),
        (lr_scheduler.StepLR(sgd(), 2), lambda t: 2 * 0.1 ** (t // 2)),
        (lr_scheduler.MultiStepLR(sgd(), [4, 2, 2]), lambda t: 2 * 0.1 ** sum(t >= m for m in (2, 2, 4))),
        (lr_scheduler.ConstantLR(sgd()), lambda t: 2 / 3 if t < 5 else 2),
        (lr_scheduler.LinearLR(sgd()), lambda t: 2 * (1 / 3 + 2 / 3 * min(t, 5) / 5)),
        (lr_scheduler.LinearLR(sgd(), 1.0, 0.0, 4), lambda t: 2 * (1 - min(t, 4) / 4)),
        (lr_scheduler.PolynomialLR(sgd()), lambda t: 2 * (1 - min(t, 5) / 5)),
        (lr_scheduler.PolynomialLR(sgd(), 4, 3.0), lambda t: 2 * (1 - min(t, 4) / 4) ** 3),
        (lr_scheduler.NoamLR(sgd(), 16, 3), lambda t: 2 / 4 * min(t**-0.5, t * 3**-1.5) if t else 0),
        (lr_scheduler.NaturalExpLR(sgd(), 0.3), lambda t: 2 * math.exp(-0.3 * t)),
        (lr_scheduler.InverseTimeLR(sgd(), 0.3), lambda t: 2 / (1 + 0.3 * t)),
        (lr_scheduler.PiecewiseLR(sgd(), [2, 4], [5.0, 3.0, 1.0]), lambda t: [5.0, 3.0, 1.0][(t >= 2) + (t >= 4)]),
        (lr_scheduler.CosineAnnealingLR(sgd(), 5), lambda t: 2 * cosine(t / 5)),
        (lr_scheduler.CosineAnnealingLR(sgd(), 5, 0.5), lambda t: 0.5 + 1.5 * cosine(t / 5)),
        (lr_scheduler.LinearWarmup(sgd(), 4, 0.5), lambda t: 2 * (0.5 + 0.5 * min(t, 4) / 4)),
    ]  # fmt: skip
    for schedule, want in cases:
        assert single(schedule, 9) == pytest.approx([want(t) for t in range(9)]), schedule


def test_a_rate_is_resumed_at_any_step():
    for make in (
        lambda o, last: lr_scheduler.MultiplicativeLR(o, lambda t: 1 - 0.1 * t, last),
        lambda o, last: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2, 0.1, last),
        lambda o, last: lr_scheduler.CyclicLR(o, 1.0, 3.0, 2, last_epoch=last),
        lambda o, last: lr_scheduler.StepLR(o, 2, 0.5, last),
        lambda o, last: swa_utils.SWALR(o, 0.5, 4, last_epoch=last),
    ):
        whole = single(make(sgd(), -1), 9)
        for last in (0, 2, 5):
            assert single(make(sgd(), last), 3) == pytest.approx(whole[last + 1 : last + 4])


def test_warm_restarts_grow():
    def want(step, first, times):
        length = first
        while step >= length:
            step, length = step - length, length * times
        return 0.5 + 1.5 * cosine(step / length)

    for first, times in ((3, 1), (2, 2), (1, 3)):
        schedule = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), first, times, 0.5)
        assert single(schedule, 14) == pytest.approx([want(t, first, times) for t in range(14)])
        for epoch in (0, 0.25, 1.5, 7, 2.75):
            schedule.step(epoch)
            assert schedule.get_last_lr() == pytest.approx([want(epoch, first, times)])
            assert schedule.last_epoch == epoch
    with pytest.raises(ValueError, match="expected epoch >= 0, got -1"):
        schedule.step(-1)
    for lengths in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="expected T_0 and T_mult of at least 1, got"):
            lr_scheduler.CosineAnnealingWarmRestarts(sgd(), *lengths)
    with pytest.raises(ValueError, match="CosineAnnealingLR: expected T_max >= 1, got 0"):
        lr_scheduler.CosineAnnealingLR(sgd(), 0)


@pytest.mark.parametrize("mode", ["triangular", "triangular2", "exp_range", "cycle", "iterations"])
def test_cycles(mode):
    up, down = 2, 3

    def height(step):
        cycle, place = divmod(step, up + down)
        height = place / up if place <= up else (up + down - place) / down
        scale = {"triangular": 1, "triangular2": 0.5**cycle, "exp_range": 0.9**step,
                 "cycle": 1 / (cycle + 1), "iterations": 1 / (step + 1)}  # fmt: skip
        return height * scale[mode]

    own = {"scale_fn": lambda x: 1 / x} if mode == "cycle" else {}
    own = (
        {"scale_fn": lambda x: 1 / (x + 1), "scale_mode": "iterations"}
        if mode == "iterations"
        else own
    )
    optimizer = sgd(5.0, 7.0)
    schedule = lr_scheduler.CyclicLR(
        optimizer, [1.0, 2.0], [3.0, 6.0], up, down, "triangular" if own else mode, 0.9,
        base_momentum=[0.5, 0.6], max_momentum=[0.9, 0.8], **own,
    )  # fmt: skip
    for step in range(12):
        h = height(step)
        assert schedule.get_last_lr() == pytest.approx([1 + 2 * h, 2 + 4 * h])
        momenta = [group["momentum"] for group in optimizer.param_groups]
        assert momenta == pytest.approx([0.9 - 0.4 * h, 0.8 - 0.2 * h])
        schedule.step()


def test_cycles_of_other_optimizers():
    adam = optim.Adam([nn.Parameter(T([1.0]))], betas=(0.9, 0.99))
    schedule = lr_scheduler.CyclicLR(adam, 1.0, 3.0, 2, base_momentum=0.5, max_momentum=0.7)
    schedule.step()
    assert adam.param_groups[0]["betas"] == pytest.approx((0.6, 0.99))
    still = sgd()
    lr_scheduler.CyclicLR(still, 1.0, 3.0, 2, cycle_momentum=False).step()
    assert still.param_groups[0]["momentum"] == 0.9
    for make in (
        lambda o: lr_scheduler.CyclicLR(o, 1.0, 3.0),
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, 9),
    ):
        with pytest.raises(
            ValueError, match="the optimizer has no momentum; pass cycle_momentum=False"
        ):
            make(optim.Adagrad([nn.Parameter(T([1.0]))]))
        mixed = sgd(1.0, 1.0)
        del mixed.param_groups[1]["momentum"]
        with pytest.raises(ValueError, match="has no momentum"):
            make(mixed)
    with pytest.raises(ValueError, match="step_size_down of at least 0, got 2 and -1"):
        lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 2, -1)
    with pytest.raises(
        ValueError, match="expected max_lr of one number or 1, one for each group, got 2"
    ):
        lr_scheduler.CyclicLR(sgd(), 1.0, [3.0, 4.0])


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three", [False, True])
def test_one_cycle(strategy, three):
    def between(start, stop, part):
        return start + (stop - start) * (part if strategy == "linear" else 1 - cosine(part))

    total, share = 20, 0.25
    up, back = share * total - 1, 2 * share * total - 2
    points = [(0, 0.4), (up, 4.0), *([(back, 0.4)] if three else []), (total - 1, 0.004)]
    momenta = [(0, 0.9), (up, 0.5), *([(back, 0.9)] if three else []), (total - 1, 0.9)]

    def at(step, points):
        for (a, first), (b, second) in zip(points, points[1:]):
            if step <= b:
                return between(first, second, (step - a) / (b - a))

    optimizer = sgd()
    schedule = lr_scheduler.OneCycleLR(
        optimizer, 4.0, epochs=4, steps_per_epoch=5, pct_start=share, anneal_strategy=strategy,
        base_momentum=0.5, max_momentum=0.9, div_factor=10.0, final_div_factor=100.0, three_phase=three,
    )  # fmt: skip
    for step in range(total):
        assert schedule.get_last_lr() == pytest.approx([at(step, points)])
        assert optimizer.param_groups[0]["momentum"] == pytest.approx(at(step, momenta))
        schedule.step()
    with pytest.raises(
        ValueError, match="OneCycleLR: expected at most 20 steps, got 21; pass a larger"
    ):
        schedule.step()
    for options, text in (
        ({"total_steps": 0}, "expected one step or more and pct_start from 0 to 1, got 0 and 0.3"),
        ({"total_steps": 9, "pct_start": 1.5}, "pct_start from 0 to 1, got 9 and 1.5"),
        ({"epochs": 3}, "expected total_steps, or epochs and steps_per_epoch, got neither"),
        (
            {"total_steps": 9, "anneal_strategy": "log"},
            "anneal_strategy 'cos' or 'linear', got 'log'",
        ),
        ({"total_steps": 9, "final_div_factor": 0.0}, "div_factor and final_div_factor above 0"),
    ):
        with pytest.raises(ValueError, match=text):
            lr_scheduler.OneCycleLR(sgd(), 1.0, **options)


@pytest.mark.parametrize(
    "mode, threshold_mode", [(m, t) for m in ("min", "max") for t in ("rel", "abs")]
)
def test_plateaus(mode, threshold_mode):
    optimizer = sgd(2.0, 1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(
        optimizer, mode, 0.5, 1, 0.1, threshold_mode, 1, [0.3, 0.4]
    )
    sign = 1 if mode == "min" else -1
    best, bad, cooldown, rates = None, 0, 0, [2.0, 1.0]
    for change in (
        0,
        0,
        -0.05,
        -0.3,
        -0.3,
        -0.3,
        -0.3,
        -0.3,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
    ):
        value = 4.0 + sign * change
        margin = 0.1 * (best or 0) if threshold_mode == "rel" else 0.1
        better = best is None or (value < best - margin if mode == "min" else value > best + margin)
        best, bad = (value, 0) if better else (best, bad + 1)
        if cooldown:
            cooldown, bad = cooldown - 1, 0
        if bad > 1:
            rates = [max(r / 2, low) for r, low in zip(rates, (0.3, 0.4))]
            cooldown, bad = 1, 0
        schedule.step(value)
        assert schedule.get_last_lr() == pytest.approx(rates) and schedule.best == best
    assert schedule.last_step == 15
    untouched = lr_scheduler.ReduceLROnPlateau(sgd(), mode)
    assert untouched.best == sign * math.inf and untouched.is_better(sign * 1e30)
    assert not untouched.is_better(sign * math.inf)
    for options, text in (
        (
            {"mode": "up"},
            "expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', got 'up'",
        ),
        ({"threshold_mode": "mean"}, "got 'min' and 'mean'"),
        ({"factor": 1.0}, "expected factor < 1, got 1.0"),
        ({"min_lr": [0.1, 0.2]}, "expected min_lr of one number or 1, got 2"),
    ):
        with pytest.raises(ValueError, match=text):
            lr_scheduler.ReduceLROnPlateau(sgd(), **options)


def test_changes_of_a_plateau_below_eps_are_left_out():
    schedule = lr_scheduler.ReduceLROnPlateau(sgd(), patience=0, factor=0.5, eps=1.5)
    for _ in range(5):
        schedule.step(1.0)
    assert schedule.get_last_lr() == [2.0]


# -- schedules together ----------------------------------------------------------------------------


def test_a_chain_multiplies_and_can_begin_again():
    optimizer = sgd(2.0, 8.0)
    chain = lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 2, 0.1)]
    )
    want = [[base * 0.5**t * 0.1 ** (t // 2) for base in (2.0, 8.0)] for t in range(5)]
    np.testing.assert_allclose(rates_of(chain, 5), want)
    assert chain.last_step == 5 and chain.own_factors() == pytest.approx([0.5**5 * 0.01] * 2)
    chain.restart()
    np.testing.assert_allclose(chain.get_last_lr(), [2.0, 8.0])
    chain.restart(3)
    np.testing.assert_allclose(chain.get_last_lr(), want[3])
    saved = chain.state_dict()
    chain.step()
    with pytest.raises(
        ValueError, match="ChainedScheduler.load_state_dict: expected 2 schedules, got 1"
    ):
        chain.load_state_dict({"schedulers": saved["schedulers"][:1], "rates": []})
    chain.load_state_dict(saved)
    np.testing.assert_allclose(chain.get_last_lr(), want[3])
    for make in (
        lr_scheduler.ChainedScheduler,
        lambda none: lr_scheduler.SequentialLR(optimizer, none, []),
    ):
        with pytest.raises(ValueError, match="expected one schedule or more, got none|milestones"):
            make([])


def test_a_sequence_in_a_chain_begins_with_the_others():
    optimizer = sgd()
    other = lr_scheduler.ConstantLR(optimizer, 0.5, 9)
    parts = [
        lr_scheduler.ConstantLR(optimizer, 0.25, 9),
        lr_scheduler.ExponentialLR(optimizer, 0.5),
    ]
    sequence = lr_scheduler.SequentialLR(optimizer, parts, [2])
    chain = lr_scheduler.ChainedScheduler([other, sequence])
    assert single(chain, 5) == pytest.approx([0.25, 0.25, 1.0, 0.5, 0.25])


def test_a_program_changes_the_rate_between_steps():
    optimizer = sgd()
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, 4, 0.5)
    schedule.step()
    optimizer.param_groups[0]["lr"] = 0.5 + 3 * (schedule.get_last_lr()[0] - 0.5)
    assert schedule.others() == pytest.approx([3.0])
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.5 + 3 * 1.5 * cosine(0.5)])
    assert schedule.own_factors() == pytest.approx([(0.5 + 1.5 * cosine(0.5)) / 2])
    saved = schedule.state_dict()
    other = lr_scheduler.CosineAnnealingLR(sgd(), 4, 0.5)
    other.load_state_dict(saved)
    for each in (schedule, other):
        each.step()
    assert other.get_last_lr() == pytest.approx(schedule.get_last_lr())
    frozen = lr_scheduler.ExponentialLR(sgd(0.0), 0.5)
    assert frozen.own_factors() == [1.0]


def test_schedules_that_are_no_formula_say_so():
    optimizer = sgd()
    with pytest.raises(NotImplementedError, match=r"LRScheduler must define rate\(base, step\)"):
        lr_scheduler.LRScheduler(optimizer)
    with pytest.raises(ValueError, match="LinearWarmup: expected steps >= 1, got 0"):
        lr_scheduler.LinearWarmup(optimizer, 0)
    with pytest.raises(ValueError, match="PiecewiseLR: expected 3 values for 2 boundaries, got 4"):
        lr_scheduler.PiecewiseLR(optimizer, [1, 2], [1.0] * 4)
    with pytest.raises(
        ValueError, match="ExponentialLR.load_state_dict: expected 1 parameter groups"
    ):
        lr_scheduler.ExponentialLR(optimizer, 0.5).load_state_dict({"base_rates": []})


# -- averages and limits ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_rates_of_averages_alone_and_beside_another_schedule(strategy):
    def part(step, length):
        share = min(1.0, step / length) if length else 1.0
        return share if strategy == "linear" else 1 - cosine(share)

    for length in (4, 1, 0):
        schedule = swa_utils.SWALR(sgd(2.0, 1.0), [0.2, 0.4], length, strategy)
        for step in range(6):
            share = part(step, length)
            wanted = [0.2 * share + 2.0 * (1 - share), 0.4 * share + 1.0 * (1 - share)]
            assert schedule.get_last_lr() == pytest.approx(wanted)
            schedule.step()
    # The rate that another schedule left is where the way to that of the averages begins.
    optimizer = sgd()
    schedule = swa_utils.SWALR(optimizer, 0.2, 4, strategy)
    optimizer.param_groups[0]["lr"] = 1.0
    for step in range(1, 6):
        schedule.step()
        share = part(step, 4)
        assert schedule.get_last_lr() == pytest.approx([0.2 * share + 1.0 * (1 - share)])


def test_averages_of_models():
    model = nn.BatchNorm1d(2)
    mean, moving = (
        swa_utils.AveragedModel(model, avg_fn=f) for f in (None, swa_utils.get_ema_avg_fn())
    )
    assert mean.n_averaged.item() == 0 and not mean.use_buffers
    for value in (1.0, 2.0, 6.0):
        with tenon.no_grad():
            model.weight.fill_(value)
            model.running_mean.fill_(10 * value)
        for each in (mean, moving):
            each.update_parameters(model)
    assert mean.module.weight.tolist() == pytest.approx([3.0, 3.0])
    moved = (0.999 * 1 + 0.001 * 2) * 0.999 + 0.001 * 6
    assert moving.module.weight.tolist() == pytest.approx([moved] * 2)
    assert mean.module.running_mean.tolist() == moving.module.running_mean.tolist() == [60.0] * 2
    averaged = swa_utils.AveragedModel(model, use_buffers=True)
    for value in (1.0, 4.0):
        model.running_mean.fill_(value)
        model.num_batches_tracked.fill_(int(value))
        averaged.update_parameters(model)
    assert averaged.module.running_mean.tolist() == [2.5] * 2
    assert averaged.module.num_batches_tracked.item() == 4  # whole numbers are the last ones
    placed = swa_utils.AveragedModel(model, device="cpu")
    assert placed.module is not model and placed.module.weight.device.type == "cpu"
    for decay in (-0.1, 1.1):
        with pytest.raises(ValueError, match="get_ema_avg_fn: expected decay from 0 to 1, got"):
            swa_utils.get_ema_avg_fn(decay)


def test_statistics_are_those_of_one_pass():
    x = np.random.default_rng(0).normal(size=(3, 4, 2)).astype("float32") + 5
    for batches in ([T(b) for b in x], [(T(b), 0) for b in x], [[T(b)] for b in x]):
        model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5)).train()
        model(T(x[0] * 100))
        swa_utils.update_bn(batches, model, "cpu")
        np.testing.assert_allclose(model[0].running_mean.numpy(), x.mean((0, 1)), rtol=1e-5)
        np.testing.assert_allclose(
            model[0].running_var.numpy(), x.var(1, ddof=1).mean(0), rtol=1e-5
        )
        assert model.training and model[0].momentum == 0.1
        assert model[0].num_batches_tracked.item() == 3
    model.eval()
    with pytest.raises(ZeroDivisionError):
        swa_utils.update_bn((1 / 0 for _ in range(1)), model)
    assert not model.training and model[0].momentum == 0.1
    untouched = nn.Linear(2, 2).eval()
    swa_utils.update_bn(iter([None]), untouched)  # nothing to compute: nothing is read


def test_limits_of_gradients():
    def params(*gradients):
        made = [nn.Parameter(T([0.0] * len(g))) for g in gradients]
        for each, gradient in zip(made, gradients):
            each.grad = T(gradient)
        return made

    grads = lambda made: [each.grad.tolist() for each in made]
    made = [*params([3.0, -4.0], [12.0]), nn.Parameter(T([1.0]))]
    norm = optim.clip.get_total_norm([each.grad for each in made[:2]])
    assert norm.item() == 13.0 and optim.clip.get_total_norm([]).item() == 0.0
    optim.clip.clip_grads_with_norm_(made, 26.0, norm)
    assert grads(made[:2]) == [[3.0, -4.0], [12.0]] and made[2].grad is None
    optim.clip.clip_grads_with_norm_(made, 6.5, norm)
    assert grads(made[:2]) == [pytest.approx([1.5, -2.0]), pytest.approx([6.0])]
    made = params([3.0, -4.0], [0.5])
    optim.clip.clip_grad_norm_per_parameter_(made, 2.5)
    assert grads(made) == [pytest.approx([1.5, -2.0]), [0.5]]
    optim.clip.clip_grad_norm_per_parameter_(made[0], 1.0, math.inf)
    assert grads(made)[0] == pytest.approx([0.75, -1.0])
    for limit in (
        lambda made: optim.clip_grad_value_(made, 1.0),
        optim.ClipGradByValue(1.0),
    ):
        made = params([3.0, -4.0, 0.5])
        limit(made)
        limit(made[0])
        assert grads(made) == [[1.0, -1.0, 0.5]]
    made = params([3.0, -4.0])
    optim.ClipGradByValue(max=2.0, min=0.0)(made)
    assert grads(made) == [[2.0, 0.0]]
    made = params([3.0, -4.0])
    assert optim.clip_grad_norm_(made[0], 1.0).item() == 5.0
    assert grads(made)[0] == pytest.approx([0.6, -0.8], rel=1e-5)
    optim.ClipGradByGlobalNorm()(params([1.0]))
    large = nn.Parameter(tenon.zeros([2], dtype=tenon.float16))
    large.grad = tenon.full([2], 300.0, dtype=tenon.float16)
    assert optim.clip_grad_norm_(large, 1.0).item() == pytest.approx(300 * 2**0.5)
    broken = params([math.nan])
    optim.clip_grad_norm_(broken, 1.0)
    with pytest.raises(
        ValueError, match="the norm of order 1.0 of the gradients is nan; expected it to"
    ):
        optim.clip_grad_norm_(broken, 1.0, 1.0, error_if_nonfinite=True)
