# SPDX-License-Identifier: Apache-2.0
"""tenon.compile(dynamic=True): calls of many sizes run few programs, and give what the function gives."""

import ctypes
import random

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.jit import open_sizes


def rand(*shape, seed=0):
    generator = np.random.default_rng(seed)
    return tenon.tensor(generator.standard_normal(shape).astype(np.float32))


def assert_same(a, b):
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def open_lines(compiled):
    return [line for line in compiled.explain().splitlines() if "a program of these sizes" in line]


def attention(x, mask):
    batch, length, width = x.shape
    heads = x.reshape(batch, length, 2, width // 2).transpose(1, 2)
    scores = heads @ heads.transpose(2, 3) + mask
    return (tenon.softmax(scores, -1) @ heads).transpose(1, 2).reshape(batch * length, width)


def test_random_shapes_make_few_programs():
    compiled = tenon.compile(attention, dynamic=True)
    draw = random.Random(1)
    for call in range(100):
        batch, length = draw.randint(1, 10), draw.randint(1, 40)
        x, mask = rand(batch, length, 8, seed=call), rand(length, length, seed=call)
        assert_same(compiled(x, mask), attention(x, mask))
    assert len(compiled.programs) <= 12, compiled.explain()
    assert "calls without a program" not in compiled.explain()


def test_a_recurrent_network():
    lstm = nn.LSTM(4, 6, batch_first=True)
    compiled = tenon.compile(lambda x: lstm(x)[0], dynamic=True)
    draw = random.Random(2)
    with tenon.no_grad():
        for call in range(60):
            x = rand(draw.randint(2, 6), draw.randint(2, 30), 4, seed=call)
            assert_same(compiled(x), lstm(x)[0])
    assert len(compiled.programs) <= 12, compiled.explain()


def test_gradients_pass_through():
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
    compiled = tenon.compile(lambda x: (model(x) ** 2).sum(), dynamic=True)

    def gradients(function, x):
        x = x.clone()
        x.requires_grad = True
        function(x).backward()
        found = [x.grad, *(p.grad for p in model.parameters())]
        for parameter in model.parameters():
            parameter.grad = None
        return found

    for rows in (3, 8, 5, 21, 8, 60):
        x = rand(rows, 5, seed=rows)
        for a, b in zip(
            gradients(compiled, x), gradients(lambda x: (model(x) ** 2).sum(), x), strict=True
        ):
            assert_same(a, b)
    assert len(open_lines(compiled)) == 1, compiled.explain()


def test_larger_sizes_are_recorded_again():
    compiled = tenon.compile(lambda x: (x * 2).cumsum(0), dynamic=True)
    for rows in (3, 5, 1000, 64, 700, 3000, 5, 3):
        x = rand(rows, 3)
        assert_same(compiled(x), (x * 2).cumsum(0))
    (line,) = open_lines(compiled)
    assert "([size0, 3]), size0 from 2 to 4096" in line


def test_a_function_that_cannot_run_large_sizes():
    rows = rand(24, 3)
    compiled = tenon.compile(lambda x: x + rows[: x.shape[0]], dynamic=True)
    for count in (4, 9, 6, 9, 20, 11):
        x = rand(count, 3, seed=count)
        assert_same(compiled(x), x + rows[:count])
    (line,) = open_lines(compiled)
    assert "size0 from 4 to 20" in line
    with pytest.raises(ValueError):  # the function's own error, at a size that it has no rows for
        compiled(rand(25, 3))


def test_sizes_that_turn_out_not_to_be_equal():
    compiled = tenon.compile(lambda x, y: x.sum(0) + y.sum(0), dynamic=True)
    for a, b in ((3, 3), (5, 5), (4, 4), (5, 2), (7, 9)):
        x, y = rand(a, 3), rand(b, 3)
        assert_same(compiled(x, y), x.sum(0) + y.sum(0))
    (line,) = open_lines(compiled)
    assert "([size0, 3], [size1, 3])" in line and "recorded 2 times" in line


def test_a_comparison_of_sizes_makes_a_signature_of_its_own():
    def function(x):
        return x * 2 if x.shape[0] > 8 else x * 3

    compiled = tenon.compile(function, dynamic=True)
    for rows in (9, 30, 20, 5, 6, 5, 11):
        x = rand(rows, 2)
        assert_same(compiled(x), function(x))


def test_what_a_program_does_not_take_is_told_by_the_function():
    table = rand(10, 4)
    compiled = tenon.compile(lambda i: tenon.index_select(table, i, 0) * 2, dynamic=True)
    for count in (3, 5, 7):
        assert compiled(tenon.arange(count)).shape == (count, 4)
    with pytest.raises(IndexError, match="index_select"):
        compiled(tenon.tensor([3, 4, 99, 1]))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: lambda x: (x * 2, x.shape[0]), "it returns (Tensor, "),
        (lambda: lambda x: x * float(x.shape[0]), "gives Python a plain number"),
    ],
)
def test_reasons(make, reason):
    function = make()
    compiled = tenon.compile(function, dynamic=True)
    for rows in (3, 7, 4):
        x = rand(rows, 2)
        result, expected = compiled(x), function(x)
        if isinstance(expected, tuple):
            assert result[1] == expected[1] == rows and type(result[1]) is int
            result, expected = result[0], expected[0]
        assert_same(result, expected)
    assert not open_lines(compiled)
    assert reason in compiled.explain(), compiled.explain()


def test_a_function_that_writes_is_never_run_once_more():
    weight, runs = rand(3), []

    def step(x):
        runs.append(x.shape[0])
        weight.add_(x.sum(0))
        return weight * 2

    compiled = tenon.compile(lambda x: step(x), dynamic=True)
    for rows in (3, 5, 3, 5, 4):
        before = weight.clone()
        x = rand(rows, 3, seed=rows)
        assert_same(compiled(x), (before + x.sum(0)) * 2)
        assert_same(weight, before + x.sum(0))
    assert len(runs) <= 5


def test_a_function_without_a_program_is_not_run_at_other_sizes():
    runs = ctypes.c_int(0)  # state that is not seen

    def function(x):
        runs.value += 1
        return x * float(runs.value)

    compiled = tenon.compile(function, dynamic=True)
    for call, rows in enumerate((3, 3, 3, 5, 4, 5), 1):
        x = rand(rows, 2)
        assert_same(compiled(x), x * float(call))
    assert not open_lines(compiled)


def test_gradients_that_only_other_sizes_read():
    weight = nn.Parameter(rand(2))
    weight.grad = tenon.ones([2])

    def function(x):
        return x if x.shape[0] == 7 else x * weight.grad

    compiled = tenon.compile(function, dynamic=True)
    with tenon.no_grad():
        for call, rows in enumerate((7, 30, 40, 20, 40)):
            weight.grad = tenon.full([2], float(call))
            x = rand(rows, 2)
            assert_same(compiled(x), function(x))
    assert "it reads .grad that it did not read at another size" in compiled.explain()


class Scale:
    factor = 2.0


def test_what_another_thread_changes_once_is_no_reason(monkeypatch):
    """Such as the methods of tensors, which are made when they are first used."""
    compiled = tenon.compile(lambda x: x * Scale.factor, dynamic=True)
    resized = open_sizes.resized

    def changing(*args):
        Scale.other = None
        monkeypatch.setattr(open_sizes, "resized", resized)
        return resized(*args)

    monkeypatch.setattr(open_sizes, "resized", changing)
    for rows in (3, 5, 8, 9):
        x = rand(rows, 2)
        assert_same(compiled(x), x * 2)
    assert open_lines(compiled), compiled.explain()


def test_operators_that_are_defined_anew_leave_room():
    """Sizes that were left open for operators of before do not count for the limit."""
    compiled = tenon.compile(lambda x: x * 2, dynamic=True, limit=1)
    for name, sizes in (("first", (3, 5, 8)), ("second", (3, 5, 8, 9))):
        tenon.op(f"test_open_sizes::{name}(Tensor x) -> Tensor")(lambda x: x)
        for rows in sizes:
            x = rand(rows, 2)
            assert_same(compiled(x), x * 2)
        (line,) = open_lines(compiled)
        assert f": {len(sizes) - 1} calls" in line


def training(kind, optimizer):
    """A model, and its step, which takes a batch of sequences."""
    tenon.manual_seed(0)
    if kind == "lstm":
        model = nn.LSTM(4, 6, batch_first=True)
        forward = lambda x: model(x)[0]
    else:
        model = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        forward = model
    if optimizer == "adam":
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.01)
    else:
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(x):
        loss = (forward(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_training_steps_of_many_sizes(kind, optimizer):
    (expected, function), (model, step) = training(kind, optimizer), training(kind, optimizer)
    compiled = tenon.compile(step, dynamic=True)
    draw = random.Random(3)
    for call in range(40):
        x = rand(draw.randint(1, 16), draw.randint(1, 32), 4, seed=call)
        assert_same(compiled(x), function(x))
    for a, b in zip(model.parameters(), expected.parameters()):
        assert_same(a, b)
        assert_same(a.grad, b.grad)
    assert open_lines(compiled), compiled.explain()
    assert len(compiled.programs) <= 12 and "calls without a program" not in compiled.explain()


def test_what_a_step_writes_is_put_back_after_recordings():
    """Other sizes are recorded by running the step."""
    weight = rand(3)
    weight.grad = tenon.ones([3])

    def step(x):
        weight.add_(x.sum(0))
        weight.grad = x[0] * 2
        return weight * 2

    compiled = tenon.compile(lambda x: step(x), dynamic=True)
    for call, rows in enumerate((3, 5, 8, 4, 9)):
        before, x = weight.clone(), rand(rows, 3, seed=call)
        assert_same(compiled(x), (before + x.sum(0)) * 2)
        assert_same(weight, before + x.sum(0))
        assert_same(weight.grad, x[0] * 2)
    assert open_lines(compiled), compiled.explain()


def test_random_numbers_are_drawn_once_a_call():
    def function(x):
        return x + tenon.rand([x.shape[0]])

    compiled = tenon.compile(function, dynamic=True)
    results = []
    for each in (compiled, function):
        tenon.manual_seed(5)
        results.append([each(tenon.zeros([count])) for count in (3, 6, 5, 9)])
    for a, b in zip(*results, strict=True):
        assert_same(a, b)
    assert open_lines(compiled)


def test_weights_are_used_as_they_are():
    weight = rand(3)
    compiled = tenon.compile(lambda x: x * weight, dynamic=True)
    for rows in (3, 5, 4, 5):
        x = rand(rows, 3)
        assert_same(compiled(x), x * weight)
        with tenon.no_grad():
            weight.add_(1)


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="compile: expected dynamic to be True or False, got 'yes'"):
        tenon.compile(lambda x: x, dynamic="yes")


def test_what_is_written_at_some_sizes_alone_is_put_back():
    count = tenon.zeros(1)

    def function(x):
        if x.shape[0] > 4:
            count.add_(1)
        return x * 2

    compiled = tenon.compile(function, dynamic=True)
    for size in (3, 3, 4, 6, 7):
        compiled(tenon.ones(size, 2))
    assert count.item() == 2
    assert "assigns .grad, at some sizes alone" in compiled.explain()
