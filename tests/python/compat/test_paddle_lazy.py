# SPDX-License-Identifier: Apache-2.0
"""paddle.LazyGuard: parameters that get their memory and values later."""

import pytest
import tenon
from tenon.compat import paddle


def test_parameters_are_initialised_one_by_one():
    tenon.manual_seed(4)
    ready = paddle.nn.Linear(6, 5)
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(6, 5)
    assert {each.device.kind for each in layer.parameters()} == {"meta"}
    assert [list(each.shape) for each in layer.parameters()] == [[6, 5], [5]]
    optimizer = tenon.optim.SGD(layer.parameters(), 0.1)
    tenon.manual_seed(4)
    for each in layer.parameters():
        each.initialize()
    assert layer.weight.tolist() == ready.weight.tolist() and layer.bias.tolist() == [0.0] * 5
    assert type(layer.weight) is tenon.nn.Parameter and layer.weight.requires_grad
    layer(tenon.ones([2, 6])).sum().backward()
    optimizer.step()
    assert layer.bias.tolist() == pytest.approx([-0.2] * 5)


def test_blocks_end_and_nest():
    guard = paddle.LazyGuard()
    with guard, paddle.LazyGuard():
        pass
    assert paddle.nn.Linear(2, 2).weight.device.kind == "cpu"
    frozen = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(3.0), trainable=False)
    with guard:
        layer = paddle.nn.Embedding(4, 2, weight_attr=frozen)
        with guard:
            pass
        inner = paddle.nn.Linear(2, 2)
    assert inner.weight.device.kind == "meta"
    layer.weight.initialize()
    assert layer.weight.tolist() == [[3.0, 3.0]] * 4 and not layer.weight.requires_grad


def test_rows_of_padding_are_zeros_anyhow():
    with paddle.LazyGuard():
        layer = paddle.nn.Embedding(4, 2, padding_idx=1)
    layer.weight.initialize()
    ready = paddle.nn.Embedding(4, 2, padding_idx=1)
    for weight in (layer.weight, ready.weight):
        assert weight[1].tolist() == [0.0, 0.0] and weight[0].abs().sum().item() > 0


def test_what_is_not_initialised_is_an_error():
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(2, 2)
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match="meta"):
        layer(tenon.ones([1, 2])).tolist()


def test_values_that_are_loaded_stay():
    with paddle.LazyGuard():
        layer = paddle.nn.Sequential(paddle.nn.Linear(2, 3))
    layer.set_state_dict({"0.weight": tenon.full([2, 3], 5.0), "0.bias": tenon.ones([3])})
    assert layer(tenon.ones([1, 2])).tolist() == [[11.0] * 3]


def test_parameters_are_initialised_in_the_dtype_of_their_layer():
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(2, 3)
    layer.to(dtype=tenon.float64)
    layer.weight.initialize()
    assert layer.weight.dtype == tenon.float64
