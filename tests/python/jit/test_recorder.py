# SPDX-License-Identifier: Apache-2.0
"""tenon.jit.program.Recorder: programs of calls that are made anyway."""

import itertools

import numpy
import pytest
import tenon
from tenon.jit.program import Recorder


def counted(function):
    calls = []

    def call(*inputs):
        calls.append(inputs)
        return function(*inputs)

    return call, calls


def test_two_calls_are_recorded_and_the_third_is_the_program():
    function, calls = counted(lambda x, y: (tenon.exp(x) + y, {"sum": x.sum()}))
    recorder = Recorder(function)
    numbers, ones = [tenon.tensor([1.0 * n, 2.0]) for n in range(5)], tenon.ones([2])
    for at, x in enumerate(numbers):
        out, more = recorder(x, ones)
        assert len(calls) == min(at + 1, 2) and (recorder.program is None) == (at < 1)
        assert numpy.allclose(out.numpy(), numpy.exp(x.numpy()) + 1)
        assert more["sum"].item() == at + 2.0


def test_what_calls_write_is_written_once_by_each():
    def add(x, total):
        total += x
        return total * 2

    recorder, total = Recorder(add), tenon.zeros([2])
    for at in range(1, 6):
        assert recorder(tenon.tensor([1.0, 2.0]), total).tolist() == [2.0 * at, 4.0 * at]
    assert total.tolist() == [5.0, 10.0]


def test_the_first_call_may_differ():
    functions = iter([tenon.exp, tenon.sin, tenon.sin])
    recorder = Recorder(lambda x: next(functions)(x))
    x = tenon.tensor([0.5])
    made = [recorder(x).item() for _ in range(4)]
    assert made[1:] == [tenon.sin(x).item()] * 3 and made[0] == tenon.exp(x).item()


def test_calls_that_go_on_differing_are_refused():
    functions = iter([tenon.exp, tenon.sin, tenon.cos])
    recorder = Recorder(lambda x: next(functions)(x))
    x = tenon.tensor([0.5])
    recorder(x), recorder(x)
    with pytest.raises(
        RuntimeError, match="the function does something else when it is called again"
    ):
        recorder(x)


def test_an_error_leaves_no_recording_behind():
    recorder = Recorder(lambda x: x.reshape([3]))
    with pytest.raises(ValueError):
        recorder(tenon.tensor([1.0, 2.0]))
    assert recorder(tenon.tensor([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("is_export", [False, True], ids=["recorder", "export"])
def test_other_results_beside_tensors_are_refused(is_export):
    numbers = itertools.count()

    def function(x):
        return x * 2, next(numbers)

    x = tenon.tensor([1.0])
    recorder = Recorder(function)
    with pytest.raises(RuntimeError, match="the function returns something else when it is called"):
        for _ in range(3):
            tenon.export(function, (x,)) if is_export else recorder(x)
