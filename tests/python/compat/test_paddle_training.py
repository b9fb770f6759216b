# SPDX-License-Identifier: Apache-2.0
"""paddle.optimizer, io, metric and amp without PaddlePaddle: recorded numbers of its, states, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import tenon
from tenon.compat import paddle


def parameter(*values):
    return tenon.nn.Parameter(tenon.tensor(list(values)))


def stepped(optimizer, param, times=1):
    for _ in range(times):
        optimizer.clear_grad()
        (param**2).sum().backward()
        optimizer.step()
    return param.tolist()


def test_a_schedule_sets_the_rate_of_each_step():
    param = parameter(1.0)
    schedule = paddle.optimizer.lr.StepDecay(0.25, 1, 0.5)
    optimizer = paddle.optimizer.SGD(schedule, parameters=[param])
    assert stepped(optimizer, param) == [0.5]
    schedule.step()
    assert optimizer.get_lr() == 0.125
    assert stepped(optimizer, param) == [0.375]
    with pytest.raises(
        RuntimeError, match="expected a learning_rate that is a number, got StepDecay"
    ):
        optimizer.set_lr(0.1)


def test_states_go_on_with_their_schedule():
    first, second = parameter(1.0, -2.0), parameter(1.0, -2.0)

    def made(param):
        return paddle.optimizer.Adam(
            paddle.optimizer.lr.ExponentialDecay(0.1, 0.5), parameters=[param]
        )

    one, other = made(first), made(second)
    stepped(one, first, 3)
    one._learning_rate.step()
    second.data = first.detach().clone()
    other.set_state_dict(one.state_dict())
    assert other.get_lr() == 0.05
    assert stepped(one, first) == stepped(other, second)
    with pytest.raises(ValueError, match="expected the key 'LR_Scheduler'"):
        other.set_state_dict({"state": {}, "param_groups": []})


def test_limits_leave_the_gradients_of_parameters():
    param = parameter(3.0, 4.0)
    clip = paddle.nn.ClipGradByNorm(1.0)
    optimizer = paddle.optimizer.SGD(1.0, parameters=[param], grad_clip=clip)
    np.testing.assert_allclose(stepped(optimizer, param), [2.4, 3.2], rtol=1e-6)
    assert param.grad.tolist() == [6.0, 8.0]


def test_minimize_takes_the_gradients_that_are_there_and_clear_grad_keeps_zeros():
    param = parameter(1.0)
    optimizer = paddle.optimizer.SGD(0.25, parameters=[param])
    loss = (param**2).sum()
    assert optimizer.minimize(loss) == (None, [])
    loss.backward()
    assert optimizer.minimize(loss)[1][0][0] is param
    assert param.tolist() == [0.5]
    optimizer.clear_grad()
    assert param.grad.tolist() == [0.0]
    optimizer.clear_grad(set_to_zero=False)
    assert param.grad is None


def test_what_is_not_there_is_refused():
    params = [parameter(1.0)]
    with pytest.raises(NotImplementedError, match="expected apply_decay_param_fun=None"):
        paddle.optimizer.AdamW(parameters=params, apply_decay_param_fun=lambda name: True)
    with pytest.raises(NotImplementedError, match="expected rescale_grad=1.0, got 0.5"):
        paddle.optimizer.Momentum(parameters=params, rescale_grad=0.5)
    with pytest.raises(ValueError, match="expected parameters=layer.parameters"):
        paddle.optimizer.SGD(0.1)
    with pytest.raises(TypeError, match="expected weight_decay a number or L2Decay, got str"):
        paddle.optimizer.SGD(0.1, params, weight_decay="much")
    with pytest.raises(NotImplementedError, match="expected verbose=False"):
        paddle.optimizer.lr.StepDecay(0.1, 2, verbose=True)
    with pytest.raises(NotImplementedError, match="expected feed_list=None"):
        paddle.io.DataLoader([1, 2], feed_list=[])
    with pytest.raises(NotImplementedError, match="expected use_promote=True"):
        paddle.amp.auto_cast(use_promote=False)
    with pytest.raises(NotImplementedError, match="expected curve='ROC', got 'PR'"):
        paddle.metric.Auc("PR")


# PaddlePaddle 3.3.1 gives these for the same arrays.
def test_metrics():
    random = np.random.default_rng(0)
    pred = random.random((50, 6)).astype("float32")
    label = random.integers(0, 6, (50, 1))
    top = paddle.metric.Accuracy((1, 3))
    for part in (slice(0, 25), slice(25, 50)):
        now = top.update(top.compute(tenon.tensor(pred[part]), tenon.tensor(label[part])))
    assert now == pytest.approx([0.28, 0.6])
    assert top.accumulate() == pytest.approx([0.26, 0.54])
    assert top.name() == ["acc_top1", "acc_top3"]
    assert paddle.metric.accuracy(
        tenon.tensor(pred), tenon.tensor(label), 2
    ).item() == pytest.approx(0.36)
    score = random.random((80, 1)).astype("float32")
    truth = random.integers(0, 2, (80, 1))
    for kind, value in (("Precision", 0.6842105263157895), ("Recall", 0.5531914893617021)):
        metric = getattr(paddle.metric, kind)()
        assert metric.accumulate() == 0.0
        metric.update(score, truth)
        assert metric.accumulate() == pytest.approx(value)
    auc = paddle.metric.Auc(num_thresholds=20)
    auc.update(np.concatenate([1 - score, score], 1), truth)
    assert auc.accumulate() == pytest.approx(0.5983236621534493)


def test_samplers_and_datasets():
    rows = paddle.io.TensorDataset([tenon.arange(10), tenon.arange(10) * 2])
    sampler = paddle.io.BatchSampler(sampler=paddle.io.SequenceSampler(rows), batch_size=4)
    assert list(sampler) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [b[1].tolist() for b in paddle.io.DataLoader(rows, batch_sampler=sampler)][2] == [16, 18]
    assert len(paddle.io.DataLoader(rows, batch_size=4, drop_last=True)) == 2
    part = paddle.io.DistributedBatchSampler(rows, 3, 4, 3)
    assert list(part) == [[3, 7, 1]]
    both = paddle.io.ComposeDataset([rows, rows])
    assert [int(each) for each in both[2]] == [2, 4, 2, 4]
    assert sorted(map(len, paddle.io.random_split(rows, [3, 7]))) == [3, 7]


def test_scaled_losses_in_mixed_precision():
    param = parameter(1.0)
    optimizer = paddle.optimizer.SGD(0.25, parameters=[param])
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0)
    with paddle.amp.auto_cast(dtype="bfloat16"):
        assert paddle.amp.is_autocast_enabled()
        loss = (param**2).sum()
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.minimize(optimizer, scaled)
    assert param.tolist() == [0.5]
    assert not paddle.amp.is_autocast_enabled()
