# SPDX-License-Identifier: Apache-2.0
"""Groups of elementwise steps of a program that run block by block: the same bits as step by step, and less memory."""

import numpy as np
import pytest
import tenon
from random_programs import assert_same_bits, random_program

rng = np.random.default_rng(3)


def rand(*shape, dtype="float32"):
    return tenon.tensor(rng.standard_normal(shape).astype("float32")).to(getattr(tenon, dtype))


def assert_same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    a, b = (t.to(tenon.float64) if t.dtype == tenon.bfloat16 else t for t in (a, b))
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def run_both(function, *args):
    """What the function and its program give, and how the program runs."""
    with tenon.no_grad():
        program = tenon.export(function, args)
        expected, got = function(*args), program(*args)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (expected, got)), strict=True):
        assert_same(a, b)
    return program


def chain(x, y):
    return ((x * 2 + y).relu() - 0.5).exp() * y


# Sizes below, at and above whole blocks; below 16,384 elements steps run one by one.
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [16384, 16385, 2048 * 9 - 1, 100_003])
def test_a_chain_gives_the_same_bits(size, threads):
    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        program = run_both(chain, rand(size), rand(size))
    finally:
        tenon.set_num_threads(before)
    assert "steps 0 to 5: one pass over float32" in program.plan()
    assert "5 of 6 results stay in the cache" in program.plan()


def test_small_tensors_run_together_too():
    assert "one pass over float32[100]" in run_both(chain, rand(100), rand(100)).plan()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int32", "int64"])
def test_dtypes(dtype):
    x, y = (rand(40, 500, dtype=dtype) for _ in range(2))
    program = run_both(lambda x, y: (x * y + x - 3) * (x + 1), x, y)
    assert "one pass" in program.plan()


def test_dtypes_change_within_a_group():
    def function(x, y):
        mask = (x > y) & (x < 1.5)
        wide = x.to(tenon.float64) * 3
        return tenon.where(mask, wide, -wide).to(tenon.bfloat16), mask.to(tenon.int32) + 1

    assert "one pass" in run_both(function, rand(30, 1000), rand(30, 1000)).plan()


@pytest.mark.parametrize(
    "shapes",
    [
        [(200, 300), (300,)],
        [(200, 300), (1, 300)],
        [(200, 300), (200, 1)],
        [(200, 300), (200, 1), (300,), ()],
        [(20, 30, 50), (30, 50)],
        [(20, 30, 50), (20, 1, 1), (1,)],
        [(200, 300), (1, 1)],
    ],
    ids=str,
)
def test_operands_are_broadcast(shapes):
    def function(x, *others):
        for other in others:
            x = (x * other + other).sigmoid()
        return x

    program = run_both(function, *(rand(*shape) for shape in shapes))
    assert program.plan().count("one pass") == 1


def test_groups_end_where_shapes_do_not_fit():
    def function(x, middle, row):
        y = x * 2 + 1
        z = (y + middle) * 3  # broadcast in a middle axis: no row, no column
        return (z + row).exp() - z

    x = rand(20, 30, 50)
    program = run_both(function, x, rand(20, 1, 50), rand(50))
    assert "steps 0 to 1:" in program.plan()
    assert "steps 3 to 6:" in program.plan()


def test_results_that_others_read_are_tensors():
    def function(x, y):
        a = x + y
        b = a * x
        c = b - a
        return a, c.sum(), c @ c.T

    program = run_both(function, rand(128, 256), rand(128, 256))
    assert "1 of 3 results stay in the cache (128 KiB)" in program.plan()


def test_other_layouts_run_step_by_step():
    x, y = rand(300, 200), rand(200, 300)
    with tenon.no_grad():
        program = tenon.export(lambda x, y: (x.T + y) * 2 - y, (x, y))
        assert "one pass" in program.plan()  # decided when it runs: x.T is not dense
        assert_same(program(x, y), (x.T + y) * 2 - y)


def test_one_tensor_given_twice():
    def function(x, y):
        return (x * y + y) * x

    x, y = rand(20000), rand(20000)
    with tenon.no_grad():
        assert_same(tenon.export(function, (x, y))(x, x), function(x, x))


def test_not_a_number_and_infinity():
    x = rand(20000)
    x[3], x[4], x[5] = float("nan"), float("inf"), float("-inf")
    run_both(chain, x, x.abs())


def test_intermediate_results_take_no_memory():
    x, y = rand(1 << 20), rand(1 << 20)
    with tenon.no_grad():
        program = tenon.export(chain, (x, y))

        def peak(function):
            function(x, y)
            tenon.memory.reset_peak("cpu")
            start = tenon.memory.stats("cpu")["current"]
            function(x, y)
            return tenon.memory.stats("cpu")["peak"] - start

        assert peak(chain) >= 2 * x.nbytes
        assert peak(program) <= 1.1 * x.nbytes


def test_layers_see_every_call():
    x, y = rand(20000), rand(20000)
    with tenon.no_grad():
        program = tenon.export(chain, (x, y))
        with tenon.profiler.profile() as profile:
            result = program(x, y)
        assert_same(result, chain(x, y))
    assert "multiply" in str(profile.table()) and "exp" in str(profile.table())


def test_gradients_pass_through_the_steps():
    x, y = rand(20000).requires_grad_(), rand(20000)
    program = tenon.export(chain, (x, y))
    program(x, y).sum().backward()
    got, x.grad = x.grad, None
    chain(x, y).sum().backward()
    assert_same(got, x.grad)


def test_groups_in_branches():
    def function(x, y):
        return tenon.jit.cond(x.sum() > 0, chain, lambda x, y: x - y, x, y)

    x, y = rand(20000), rand(20000)
    program = run_both(function, x, y)
    assert "one pass" in program.plan()
    with tenon.no_grad():
        assert_same(program(-x, y), function(-x, y))


def test_several_threads_run_one_program():
    import concurrent.futures

    x, y = rand(50000), rand(50000)
    with tenon.no_grad():
        program = tenon.export(chain, (x, y))
        expected = chain(x, y)

    def call(_):
        with tenon.no_grad():
            return program(x, y)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for result in pool.map(call, range(40)):
            assert_same(result, expected)


def test_compiled_functions_explain_their_groups():
    function = tenon.compile(chain)
    x, y = rand(20000), rand(20000)
    with tenon.no_grad():
        for _ in range(4):
            result = function(x, y)
        assert_same(result, chain(x, y))
    assert (
        "steps 0 to 5: one pass over float32[20000] cpu:0 in blocks of 2048" in function.explain()
    )


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_give_the_same_bits(seed):
    function, arguments = random_program(seed, (60, 300), "cpu")
    with tenon.no_grad():
        program = tenon.export(function, arguments)
        assert_same_bits(function(*arguments), program(*arguments))
