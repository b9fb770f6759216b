# SPDX-License-Identifier: Apache-2.0
"""tenon.compile and what hangs on tensors and threads beside their elements: hooks, histories of gradients, `.grad`,
vmap, the state of random numbers."""

import gc

import numpy as np
import pytest
import tenon
from tenon import autograd, func, nn

X = tenon.tensor([1.0, 2.0, 3.0])


def compiled_of(function, *args, calls=4):
    compiled = tenon.compile(function)
    for _ in range(calls):
        compiled(*args)
    return compiled


def gradients(function, weight):
    """Of the weight and of an argument, through the function's result."""
    x = X.clone().requires_grad_()
    weight.grad = None
    result = function(x)
    result.sum().backward()
    return result.detach().numpy().tolist(), weight.grad.numpy().tolist(), x.grad.numpy().tolist()


@pytest.mark.parametrize("transform", [func.grad, func.jacrev, func.jacfwd, func.hessian])
def test_transformations_of_a_compiled_function(transform):
    function = lambda x: (x**3).sum()
    compiled = compiled_of(function, X)
    for _ in range(3):
        np.testing.assert_array_equal(
            transform(compiled)(X).detach().numpy(), transform(function)(X).detach().numpy()
        )


def test_vmap_of_a_compiled_function():
    rows, weight = tenon.stack([X, X * 2]), tenon.tensor([3.0])
    function = lambda x: (x**3).sum() * weight
    compiled = compiled_of(function, X)
    for transform in (func.vmap, lambda f: func.vmap(func.grad(lambda x: f(x).sum()))):
        for _ in range(3):
            got, want = transform(compiled)(rows), transform(function)(rows)
            np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
    assert "or vmap, may mean something else" in compiled.explain()

    def over_captured(row):
        inner = tenon.compile(lambda: row * 2)
        return [inner() for _ in range(4)][-1]

    np.testing.assert_array_equal(func.vmap(over_captured)(rows).numpy(), (rows * 2).numpy())


def step_of(weight):
    def step(x):
        weight.grad = None
        (weight * x).exp().sum().backward()
        return weight.grad.clone()

    return step


def test_a_hook_that_comes_after_compilation_is_called():
    weight = nn.Parameter(X.clone())
    step = step_of(weight)
    compiled = compiled_of(step, X)
    assert compiled.programs
    plain = step(X).numpy()
    handle = weight.register_hook(lambda grad: grad * 10)
    for _ in range(4):
        np.testing.assert_array_equal(compiled(X).numpy(), step(X).numpy())
    assert not np.array_equal(compiled(X).numpy(), plain)
    handle.remove()
    for _ in range(4):
        np.testing.assert_array_equal(compiled(X).numpy(), plain)


def test_a_hook_after_accumulation_that_comes_later_is_called():
    weight, calls = nn.Parameter(X.clone()), []
    compiled = compiled_of(step_of(weight), X)
    handle = weight.register_post_accumulate_grad_hook(lambda parameter: calls.append(parameter))
    compiled(X)
    assert len(calls) == 1
    handle.remove()


def test_the_state_of_a_hook_is_captured():
    weight, options = nn.Parameter(X.clone()), {"scale": 2.0}
    weight.register_hook(lambda grad: grad * options["scale"])
    step = step_of(weight)
    compiled = compiled_of(step, X)
    options["scale"] = 7.0
    for _ in range(4):
        np.testing.assert_array_equal(compiled(X).numpy(), step(X).numpy())


def test_arguments_with_hooks_run_the_function():
    def step(x):
        x.grad = None
        (x * 2).sum().backward()
        return x.grad.clone()

    x = X.clone().requires_grad_()
    compiled = compiled_of(step, x)
    assert compiled.programs
    x.register_hook(lambda grad: grad * 10)
    assert compiled(x).numpy().tolist() == step(x).numpy().tolist() == [20.0] * 3
    assert "without hooks" in compiled.explain()


def hooked(weight):
    def function(x):
        y = weight * x
        if y.requires_grad:
            y.register_hook(lambda grad: grad * 10)
        return y * 1

    return function


def hooks_on_saved_tensors(weight):
    def function(x):
        with autograd.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 2):
            return weight * x

    return function


@pytest.mark.parametrize("make", [hooked, hooks_on_saved_tensors])
def test_hooks_that_the_function_hangs_are_in_its_gradients(make):
    weight = nn.Parameter(X.clone())
    function = make(weight)
    compiled, want = tenon.compile(function), gradients(function, weight)
    for _ in range(5):
        assert gradients(compiled, weight) == want
    assert "hangs a hook on a gradient" in compiled.explain()
    program = tenon.export(function, X)
    with pytest.raises(NotImplementedError, match="hangs a hook on a gradient"):
        program(X)
    with tenon.no_grad():
        np.testing.assert_array_equal(program(X).numpy(), function(X).numpy())


def test_a_hook_whose_backward_pass_runs_inside_is_part_of_the_program():
    weight = nn.Parameter(X.clone())

    def step(x):
        weight.grad = None
        y = weight * x
        y.register_hook(lambda grad: grad * 10)
        y.sum().backward()
        return weight.grad.clone()

    compiled = compiled_of(step, X)
    assert compiled.programs
    np.testing.assert_array_equal(compiled(X * 2).numpy(), (X * 20).numpy())


def test_gradients_that_are_on_inside_and_off_around():
    weight = nn.Parameter(X.clone())

    def function(x):
        with tenon.enable_grad():
            return weight * x

    compiled = tenon.compile(function)
    for _ in range(4):
        with tenon.no_grad():
            assert compiled(X).requires_grad
    assert "it records gradients though they are off around it" in compiled.explain()


def test_a_leaf_that_the_function_makes():
    def function(x):
        leaf = x.detach().requires_grad_()
        return leaf * 2, leaf

    compiled = tenon.compile(function)
    for _ in range(4):
        result, leaf = compiled(X)
        result.sum().backward()
        assert leaf.grad.numpy().tolist() == [2.0] * 3
    assert "gradients pass to a tensor that it has made" in compiled.explain()


def numbers_of(function, calls=5):
    results = []
    for i in range(calls):
        tenon.manual_seed(i)
        results.append(function(X).numpy().tolist())
    return results


def fork(x):
    with tenon.random.fork_rng():
        y = tenon.rand(3)
    return x + y + tenon.rand(3)


def reads_the_seed(x):
    return x + float(tenon.random.initial_seed())


def reads_the_state(x):
    return x + tenon.random.get_state()[0]


def sets_the_same_state(x):
    state = tenon.random.get_state()
    y = tenon.rand(3)
    tenon.random.set_state(state)
    return x + y + tenon.rand(3)


@pytest.mark.parametrize("function", [fork, reads_the_seed, reads_the_state, sets_the_same_state])
def test_compiled_functions_follow_the_state_of_random_numbers(function):
    assert numbers_of(tenon.compile(function)) == numbers_of(function)


@pytest.mark.parametrize("function", [fork, sets_the_same_state])
def test_exported_functions_do_not_set_the_state_of_random_numbers(function):
    with pytest.raises(NotImplementedError, match="sets the seed of random numbers"):
        tenon.export(function, X)


def test_a_generator_that_is_set_outside():
    generator = tenon.random.Generator(seed=0)

    def function(x):
        with generator:
            return x + tenon.rand(3)

    compiled = tenon.compile(function)
    for seed in (0, 0, 0, 0, 9):
        results = []
        for each in (function, compiled):
            generator.manual_seed(seed)
            results.append(each(X).numpy().tolist())
        assert results[0] == results[1]


def test_settings_that_a_function_asks_for():
    compiled = tenon.compile(lambda x: x * tenon.get_num_threads())
    before = tenon.get_num_threads()
    try:
        for threads in [1] * 4 + [2] * 4:
            tenon.set_num_threads(threads)
            assert compiled(tenon.ones([1])).item() == threads
    finally:
        tenon.set_num_threads(before)
    assert len(compiled.programs) == 2


def test_programs_of_older_operators_are_let_go():
    compiled = tenon.compile(lambda x: tenon.ops.renewed.scaled(x) + 1)
    for scale in range(1, 20):
        tenon.op("renewed::scaled(Tensor x) -> Tensor")(lambda x, scale=scale: x * scale)
        for _ in range(4):
            assert compiled(tenon.ones([1])).item() == scale + 1
    assert len(compiled.programs) == 1
    held = [each for each in gc.get_referents(compiled) if type(each).__name__ == "Entry"]
    assert len(held) <= 1


def test_a_function_that_defines_an_operator_in_each_call():
    def function(x):
        tenon.op("renewed::inside(Tensor x) -> Tensor")(lambda x: x * 2)
        return tenon.ops.renewed.inside(x)

    compiled = tenon.compile(function)
    for _ in range(20):
        assert compiled(tenon.ones([1])).item() == 2
    assert not compiled.programs


def test_a_program_lets_go_of_gradients_before_it_makes_others():
    weight = tenon.ones(1 << 21, requires_grad=True)
    x = tenon.ones(1 << 21)

    def step(x):
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        return loss.detach()

    program = tenon.export(step, (x,))
    program(x)
    gc.collect()
    before = tenon.memory.stats("cpu")["current"]  # with weight.grad
    tenon.memory.reset_peak("cpu")
    program(x)
    grown = tenon.memory.stats("cpu")["peak"] - before
    grad, reported = 4 * x.numel(), 1 << 21  # what is in use is reported in steps
    assert grown <= program.memory()["planned"] - grad + reported
    assert weight.grad.numpy().tolist()[:2] == [1.0, 1.0]


def test_a_gradient_that_is_an_input_stays_until_it_was_read():
    weight = tenon.ones(3, requires_grad=True)

    def step(x):
        weight.grad = None
        (weight * 2).sum().backward()
        return x + 1

    program = tenon.export(step, (X,))
    for _ in range(3):
        weight.grad = tenon.full([3], 7.0)
        assert program(weight.grad).numpy().tolist() == [8.0] * 3
        assert weight.grad.numpy().tolist() == [2.0] * 3
