# SPDX-License-Identifier: Apache-2.0
"""Exported functions whose returns, assignments in expressions and branches become parts of a program."""

import re
import sys
import traceback

import pytest
import tenon

X = tenon.tensor([1.0, 2.0, -4.0])
VALUES = [X, -X, X + 10.0, X - 10.0, X * 0.0, X * 100.0]


def agree(function, *more, values=VALUES):
    """The program of a function gives what the function gives, whatever its branches take."""
    program = tenon.export(function, (X, *more))
    for value in values:
        want, got = function(value, *more), program(value, *more)
        assert type(got) is type(want)
        many = isinstance(want, tuple)
        for one, other in zip(got if many else [got], want if many else [want], strict=True):
            assert one.tolist() == other.tolist(), value
    return program


def returns_in_a_loop(x):
    for _ in range(3):
        if x.sum() > 0:
            if x.max() > 10:
                return x * 2
            x = x - 1
        x = x + 3
    return x


def returns_in_nested_loops(x):
    for i in range(2):
        if x[0] > 1:
            x = x * 2
            for j in range(2):
                if x.sum() > 20 * (j + 1):
                    return x - i
                x = x + j
            x = x + 5
        else:
            x = x - 7
        x = x + 1
    return -x


def returns_on_one_side(x):
    if x.sum() > 0:
        return x + 1
    y = x * 2
    if y[1] < -10:
        if y[0] < -10:
            return y - 1
        y = y - 5
    return y + x


def returns_with_a_statement_behind(x):
    total = x * 0
    while total.sum() < 5:
        if x.sum() < -20:
            if x.max() < 0:
                return total - 1
            total = total + 1
        total = total + 2
    return total + x


def returns_in_with_and_try(x):
    with tenon.no_grad():
        if x.sum() > 0:
            try:
                if x[0] > 5:
                    return x * 5
            finally:
                x = x + 1
        x = x * 3
    return x


@pytest.mark.parametrize(
    "function",
    [
        returns_in_a_loop,
        returns_in_nested_loops,
        returns_on_one_side,
        returns_with_a_statement_behind,
    ],
    ids=lambda each: each.__name__,
)
def test_what_follows_a_branch_with_a_return_runs(function):
    agree(function)


# -- := ---------------------------------------------------------------------------------------------


def named_on_both_sides(x, flag):
    y = (z := x + 1) if flag else (z := x * 2)
    return y + z


def named_in_an_and(x, flag):
    z = x
    if flag and (z := x * 3) is not None:
        z = z + 1
    return z


def named_in_a_comparison(x, n):
    if 0 < (m := n + 1) < 5:
        return x * m
    return x - m


def named_in_an_or(x, flag):
    value = flag or (z := 4)
    return x * value + (0 if flag else z)


def named_in_the_test_of_a_while(x, n):
    while (total := x.sum()) < n:
        x = x + 1
    return x * total


def named_in_the_test_of_a_while_with_a_break(x, n):
    while (total := x.sum()) < n:
        x = x + 1
        if x[0] > 3:
            break
    return x * total


@pytest.mark.parametrize("choice", [True, False])
@pytest.mark.parametrize(
    "function", [named_on_both_sides, named_in_an_and, named_in_an_or], ids=lambda f: f.__name__
)
def test_names_that_an_expression_assigns_are_those_of_the_function(function, choice):
    agree(function, choice)


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize(
    "function",
    [
        named_in_a_comparison,
        named_in_the_test_of_a_while,
        named_in_the_test_of_a_while_with_a_break,
    ],
    ids=lambda f: f.__name__,
)
def test_names_that_a_test_assigns(function, n):
    agree(function, n, values=[X, X * 0.5, X + 1])


def fails_in_the_test_of_a_while(x):
    y = x + 1

    while (z := y.reshape(7)).sum() < 3:
        y = z
    return y


def test_errors_in_a_test_have_its_line():
    with pytest.raises(ValueError) as error:
        tenon.export(fails_in_the_test_of_a_while, (X,))
    frames = traceback.extract_tb(error.value.__traceback__)
    lines = [f.lineno for f in frames if f.filename == __file__]
    first = fails_in_the_test_of_a_while.__code__.co_firstlineno
    assert lines[-1] == first + 3


def breaks_if(x, flag):
    while x.sum() < 7:
        x = x + 1
        if flag:
            break
    return x


def lines_of(function, *arguments):
    """The lines of a function that a debugger sees while it is exported, counted from `def`."""
    seen = set()

    def trace(frame, event, argument):
        if event == "line" and frame.f_code.co_filename == __file__:
            seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        tenon.export(function, arguments)
    finally:
        sys.settrace(before)
    own = {line for *_, line in function.__code__.co_lines() if line}
    return {line - min(own) for line in seen if min(own) <= line <= max(own)}


def test_debuggers_see_the_lines_of_statements():
    """And neither the line of `def` between two of them nor one that does not run."""
    assert lines_of(named_in_the_test_of_a_while_with_a_break, X, 7) == {1, 2, 3, 4, 5}
    assert lines_of(breaks_if, X, False) == {1, 2, 3, 5}
    assert lines_of(breaks_if, X, True) == {1, 2, 3, 4, 5}


# -- branches whose values change from one recording to the next --------------------------------------


def test_a_first_call_that_sets_values_up_leaves_no_trace():
    numbers, calls = [1, 2], []

    def function(x):
        if x.sum() > 0:
            pair = (numbers[0], x * 2)
        else:
            pair = (numbers[1], x * 3)
        calls.append(0)
        result = pair[1] + pair[0]
        numbers[:] = [7, 7]
        return result

    program = tenon.export(function, (X,))
    for value in VALUES:
        assert program(value).tolist() == function(value).tolist()


def test_numbers_in_containers_stay_numbers():
    """Python computes with them in 64 bits, where tensors would round to 32."""

    def counted(x):
        state = (x, 0)
        while state[0].sum() < 50:
            state = (state[0] + 13, state[1] + 1)
        return x * (state[1] * 0.1 / 0.3)

    def chosen(x):
        if x.sum() > 0:
            state = {"n": 3, "x": x}
        else:
            state = {"n": 7, "x": -x}
        return state["x"] * (state["n"] * 0.1 / 0.3)

    agree(counted)
    agree(chosen)


def mixed_tests(x):
    if x[0] > 0 and x[1]:
        x = x + 1
    if x.sum() or x[0] > 3:
        x = x * 2
    while x[0] < 20 and x.abs().sum():
        x = x + 7
    if not (x[1] and x[2] > 0):
        x = -x
    return x


def test_a_test_may_join_values_of_several_kinds():
    agree(mixed_tests)


def test_tuples_that_loops_carry():
    def counted(x):
        state = (x, 0, 0)
        while state[0].sum() < 50:
            state = (state[0] + 13, state[1] + 1, state[1])
        return state[0] + state[1] * 10 + state[2]

    def nested(x):
        state = {"pair": (x, x * 0), "count": 0}
        while state["pair"][0].max() < 30:
            first, second = state["pair"]
            state = {"pair": (first + 4, second + first), "count": state["count"] + 2}
        return state["pair"][1] * state["count"]

    agree(counted)
    agree(nested)


# -- what compiled functions say of themselves ---------------------------------------------------------


def test_what_a_compiled_function_says():
    @tenon.compile
    def scaled(x, n):
        return (x * n).exp()

    x = tenon.ones([4])
    assert scaled.explain() == "scaled: 0 signatures"
    scaled(x, 2)
    assert scaled.explain() == (
        "scaled: 1 signatures\n  (float32[4], 2): 1 calls, 1 of 2 recordings made"
    )
    for _ in range(3):
        scaled(x, 2)
    scaled(x, n=3)
    first, one, *rest = scaled.explain().splitlines()
    assert first == "scaled: 2 signatures"
    assert re.fullmatch(
        r"  \(float32\[4\], 2\): 4 calls, a program of 2 steps, recorded in \d+\.\d ms", one
    )
    text = "\n".join(rest)
    assert re.search(
        r"results take at most \d+ KiB at once; \d+ KiB step by step, \d+ KiB if none were freed",
        text,
    )
    assert "  (float32[4], n=3): 1 calls, 1 of 2 recordings made" in rest
    assert repr(scaled).endswith(", 1 programs>")


def test_leaves_have_names():
    weight, bias = tenon.ones([3]), tenon.tensor([5.0, 6.0, 7.0])
    program = tenon.export(lambda x: x * weight + bias, (X,))
    assert list(program.leaves) == ["leaf.0", "leaf.1"]
    assert [each.tolist() for each in program.leaves.values()] == [weight.tolist(), bias.tolist()]
    layer = tenon.nn.Linear(3, 2)
    assert list(tenon.export(layer, (X,)).leaves) == ["weight", "bias"]
    mixed = tenon.export(lambda x: layer(x) * weight[:2], (X,))
    assert len(mixed.leaves) == 3
