# SPDX-License-Identifier: Apache-2.0
"""Averages of models, and statistics and rates that belong to them."""

import numpy as np
import pytest
import tenon
from tenon import nn, optim
from tenon.optim import swa_utils


def set_all(model, value):
    for parameter in model.parameters():
        nn.init.constant_(parameter, value)


def test_means_and_exponential_means():
    model = nn.Linear(2, 1)
    mean = swa_utils.AveragedModel(model)
    moving = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        set_all(model, value)
        mean.update_parameters(model)
        moving.update_parameters(model)
    assert mean.module.bias.tolist() == [3.0] and mean.n_averaged.item() == 3
    assert moving.module.bias.tolist() == [3.75]
    assert mean(tenon.ones(1, 2)).tolist() == [[9.0]]
    again = swa_utils.AveragedModel(nn.Linear(2, 1))
    again.load_state_dict(mean.state_dict())
    again.update_parameters(model)
    assert again.module.bias.tolist() == [3.75] and again.n_averaged.item() == 4
    with pytest.raises(ValueError, match="expected decay from 0 to 1, got 2"):
        swa_utils.get_ema_avg_fn(2.0)


def test_buffers_are_copied_or_averaged():
    model = nn.BatchNorm1d(1)
    copied = swa_utils.AveragedModel(model)
    averaged = swa_utils.AveragedModel(model, use_buffers=True)
    for value in (1.0, 3.0):
        model.running_mean.fill_(value)
        copied.update_parameters(model)
        averaged.update_parameters(model)
    assert copied.module.running_mean.tolist() == [3.0]
    assert averaged.module.running_mean.tolist() == [2.0]


def test_statistics_are_computed_afresh():
    x = np.random.default_rng(0).normal(size=(2, 8, 3)).astype(np.float32) + 5
    model = nn.Sequential(nn.BatchNorm1d(3)).eval()
    swa_utils.update_bn([(tenon.tensor(batch), None) for batch in x], model)
    np.testing.assert_allclose(model[0].running_mean.numpy(), x.mean((0, 1)), rtol=1e-5)
    assert not model.training and model[0].momentum == 0.1


def test_rates_go_to_that_of_the_average():
    optimizer = optim.SGD([nn.Parameter(tenon.ones([1]))], lr=1.0)
    schedule = swa_utils.SWALR(optimizer, 0.2, 4, "linear")
    rates = []
    for _ in range(6):
        rates.append(schedule.get_last_lr()[0])
        schedule.step()
    assert rates == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])
    with pytest.raises(ValueError, match="expected anneal_strategy 'cos' or 'linear'"):
        swa_utils.SWALR(optimizer, 0.2, anneal_strategy="square")


def test_averages_of_complex_parameters():
    class Model(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(tenon.tensor([1.0 + 2.0j]))

    model = Model()
    average = swa_utils.AveragedModel(model)
    average.update_parameters(model)
    model.weight.detach().copy_(tenon.tensor([3.0 - 2.0j]))
    average.update_parameters(model)
    assert average.module.weight.tolist() == [2 + 0j]
