# SPDX-License-Identifier: Apache-2.0
"""Groups of a program with steps along rows, such as sums and softmax: the same bits as step by step, some rows at a time."""

import pytest
import tenon
from random_programs import assert_same_bits, random_program
from test_blocks import assert_same, rand, run_both


def softmax(x):
    e = tenon.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm(x):
    moved = x - x.mean(-1, keepdim=True)
    return moved * tenon.rsqrt((moved * moved).mean(-1, keepdim=True) + 1e-5)


def standardised(x, weight, bias):
    return layer_norm(x) * weight + bias


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shape", [(4096, 32), (133, 1000), (40, 7, 3, 200), (9, 16384), (16384, 33)], ids=str
)
@pytest.mark.parametrize("function", [softmax, layer_norm])
def test_rows_give_the_same_bits(function, shape, threads):
    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        program = run_both(function, rand(*shape))
    finally:
        tenon.set_num_threads(before)
    assert program.plan().count("one pass") == 1
    assert "steps 0 to" in program.plan()


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [softmax, layer_norm])
def test_dtypes(function, dtype):
    assert "one pass" in run_both(function, rand(300, 500, dtype=dtype)).plan()


def test_integers_and_truth():
    def function(x):
        total = (x * 3).sum(-1, keepdim=True)
        return (x * 2 > total).any(-1, keepdim=True) & (x.max(-1, keepdim=True) > 3), total

    assert "one pass" in run_both(function, rand(500, 300, dtype="int32")).plan()


def test_weights_are_rows():
    program = run_both(standardised, rand(700, 200), rand(200), rand(200))
    assert program.plan().count("one pass") == 1


@pytest.mark.parametrize("axis", [-1, 1, [1, 2], [-2, -1], [2, 1]], ids=str)
def test_axes_together_are_a_row(axis):
    def function(x):
        y = x * 2 + 1
        return y - y.sum(axis, keepdim=True)

    assert is_one_pass(function, rand(4000, 40) if axis in (-1, 1) else rand(500, 8, 40))


def is_one_pass(function, *args):
    return "one pass" in run_both(function, *args).plan()


@pytest.mark.parametrize("axis", [0, [0, 2], None], ids=str)
def test_other_axes_end_a_group(axis):
    def function(x):
        y = x * 2 + 1
        return y - y.sum(axis, keepdim=True)

    program = run_both(function, rand(300, 20, 40))
    assert "steps 0 to 1:" in program.plan()


def test_kernels_of_whole_rows():
    def function(x, weight, bias):
        y = tenon.softmax(x * 2, -1) + x
        y = tenon.layer_norm(y, weight, bias) * 0.5
        return tenon.log_softmax(y + x, 1), tenon.logsumexp(y, -1), y.var(-1)

    program = run_both(function, rand(1400, 100), rand(100), rand(100))
    assert "steps 0 to" in program.plan() and program.plan().count("one pass") == 1


def test_rows_of_several_axes():
    def function(x, weight, bias):
        return tenon.layer_norm(x * 2, weight, bias, 2) + x

    assert is_one_pass(function, rand(250, 20, 30), rand(20, 30), rand(20, 30))


def test_columns_without_their_axis():
    def function(x):
        total = (x * x).sum(-1) + 1  # [rows]
        return (x / total.sqrt().unsqueeze(-1)) * 2, total

    program = run_both(function, rand(500, 300))
    assert program.plan().count("one pass") == 1
    assert "steps 0 to 6" in program.plan()


def test_a_square_is_not_taken_for_a_column():
    def function(x):
        total = x.sum(-1)  # a column, added as a row
        return x * 2 + total

    run_both(function, rand(400, 400))
    run_both(lambda x: (x.sum(-1) * 2 + x.sum(0)) + x, rand(400, 400))


def test_gradients_that_are_repeated_along_rows():
    def step(x, y):
        x = x.detach().requires_grad_()
        loss = (x * y).sum(-1).square().sum()
        return tenon.grad(loss, [x])[0]

    x, y = rand(500, 300), rand(500, 300)
    expected = step(x, y)
    program = tenon.export(step, (x, y))
    assert_same(program(x, y), expected)


def test_views_of_columns_that_others_read():
    def function(x):
        total = (x + 1).sum(-1)
        column = total.unsqueeze(1)
        return x - column, column, total

    program = run_both(function, rand(500, 300))
    assert "one pass" in program.plan()
    x = rand(500, 300)
    _, column, total = program(x)
    column += 1.0  # they share memory, as they do when the function runs
    assert_same(column[:, 0], total)


@pytest.mark.parametrize("size", [1, 16, 31])
def test_short_rows_are_left_alone(size):
    def function(x):
        y = x * 2 + 1
        return y - y.sum(-1, keepdim=True)

    plan = run_both(function, rand(200_000 // size, size)).plan()
    assert "steps 0 to 1:" in plan


def test_small_tensors_are_left_alone():
    assert "steps 0 to 1:" in run_both(lambda x: softmax(x * 2 + 1), rand(200, 300)).plan()


def test_reductions_alone_are_left_alone():
    assert run_both(lambda x: x.sum(-1).sqrt(), rand(500, 300)).plan() == ""


def test_not_a_number_and_infinity():
    x = rand(500, 300)
    x[3, 4], x[5, 6], x[7, 8] = float("nan"), float("inf"), float("-inf")
    x[9] = float("-inf")
    for function in (softmax, layer_norm):
        run_both(function, x)


def test_other_layouts_run_step_by_step():
    x = rand(300, 500)
    with tenon.no_grad():
        program = tenon.export(lambda x: softmax(x.T), (x,))
        assert_same(program(x), softmax(x.T))


def test_rows_take_no_memory():
    x = rand(1024, 1024)
    program = run_both(layer_norm, x)

    def peak(function):
        function(x)
        tenon.memory.reset_peak("cpu")
        start = tenon.memory.stats("cpu")["current"]
        function(x)
        return tenon.memory.stats("cpu")["peak"] - start

    with tenon.no_grad():
        assert peak(program) < 1.1 * x.nbytes
        assert peak(layer_norm) > 1.9 * x.nbytes


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    shape = [(1400, 100), (137, 1000), (50, 50, 64), (470, 300)][seed % 4]
    function, arguments = random_program(seed, shape, "cpu", rows=True)
    with tenon.no_grad():
        expected = function(*arguments)
        program = tenon.export(function, arguments)
        assert_same_bits(expected, program(*arguments))
