# SPDX-License-Identifier: Apache-2.0
"""How much memory the results of a program take: what it says, and what the allocator counts."""

import numpy as np
import tenon

rng = np.random.default_rng(3)


def rand(*shape):
    return tenon.tensor(rng.standard_normal(shape).astype("float32"))


def chain(x, y):
    return ((x * 2 + y).relu() - 0.5).exp() * y


def peak_of(action):
    """Bytes that the allocator of the host has handed out at most at once, beside those before."""
    action()  # what is made once
    tenon.memory.reset_peak()
    before = tenon.memory.stats()["current"]
    result = action()
    peak = tenon.memory.stats()["peak"] - before
    del result
    return peak


# Threads report what they have allocated in steps of 2 MiB (docs/runtime.md).
SLACK = 4 << 20
BIG = 1 << 22  # float32: 16 MiB


def test_memory_of_a_chain_is_what_it_takes():
    x, y = rand(BIG), rand(BIG)
    with tenon.no_grad():
        program = tenon.export(chain, (x, y))
        assert program.memory() == {
            "kept": 6 * 4 * BIG,
            "stepwise": 2 * 4 * BIG,
            "planned": 4 * BIG,
        }
        assert abs(peak_of(lambda: program(x, y)) - 4 * BIG) <= SLACK
        assert abs(peak_of(lambda: chain(x, y)) - 2 * 4 * BIG) <= SLACK


def test_memory_lives_as_long_as_its_views():
    def function(x):
        a = x @ x  # a storage that the view keeps alive
        row = a[0]
        b = a.sum()
        c = x @ x
        return c + row + b  # two steps that are one group

    x = rand(2048, 2048)
    size = 4 * 2048 * 2048
    with tenon.no_grad():
        program = tenon.export(function, (x,), passes=())
        memory = program.memory()
        assert memory["planned"] == 3 * size + 4  # a, c and the result; the sum is a number
        assert (
            memory["stepwise"] == 3 * size + 4
        )  # a, c, c + row; a is gone before the last is made
        assert memory["kept"] == 4 * size + 4
        assert abs(peak_of(lambda: program(x)) - memory["planned"]) <= SLACK


def test_memory_of_regions_and_of_results():
    def function(x):
        y = tenon.jit.cond(x.sum() > 0, lambda x: ((x @ x) @ x,), lambda x: (x @ x,), x)[0]
        return y, x.T  # a view takes nothing

    x = rand(64, 64)
    with tenon.no_grad():
        memory = tenon.export(function, (x,)).memory()
    size = 4 * 64 * 64
    assert 2 * size <= memory["planned"] <= 2 * size + 64
    assert memory["stepwise"] == memory["planned"]
    assert memory["kept"] == memory["planned"] + 4  # the sum, which is gone before the regions run


def test_compiled_functions_explain_their_memory():
    function = tenon.compile(chain)
    x, y = rand(1 << 20), rand(1 << 20)
    with tenon.no_grad():
        for _ in range(3):
            function(x, y)
    expected = (
        "results take at most 4096 KiB at once; 8192 KiB step by step, 24576 KiB if none were freed"
    )
    assert expected in function.explain()


def test_a_recording_lets_go_of_what_no_call_can_name_again():
    def steps(x):
        kept = []
        for i in range(60):
            x = (x * 0.5 + i).relu()
            view = x[:4]  # a view of memory that nothing else holds
            if i % 20 == 0:
                kept.append(view)
        return x, *kept

    x = rand(BIG // 4)
    with tenon.no_grad():
        function, recording = (
            peak_of(lambda: steps(x)),
            peak_of(lambda: tenon.jit.program._record(steps, (x,), [x])),
        )
        program = tenon.export(steps, (x,))
        for a, b in zip(program(x), steps(x), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    made = 180 * 4 * BIG // 4
    assert recording < function + (48 << 20) + SLACK < made / 4


def test_addresses_of_tensors_that_a_recording_let_go_are_used_again():
    def steps(x, weight):
        for i in range(40):  # the allocator hands the same memory out again and again
            gone = x * float(i)
            x = gone @ weight + x
            del gone
        return x

    x, weight = rand(2048, 512), rand(512, 512) * 0.01
    with tenon.no_grad():
        program = tenon.export(steps, (x, weight))
        np.testing.assert_array_equal(program(x, weight).numpy(), steps(x, weight).numpy())
    assert str(program).count("= tenon::matmul(") == 40
