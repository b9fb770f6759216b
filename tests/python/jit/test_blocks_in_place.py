# SPDX-License-Identifier: Apache-2.0
"""Steps that write in place, run block by block with the steps around them: the same bits as step by step."""

import numpy as np
import pytest
import tenon
from tenon.nn import functional as F

rng = np.random.default_rng(5)
# From 4,194,304 elements on, which no cache holds, these steps join a group.
SHAPE = (2100, 2000)
SIZE = 2100 * 2000


def rand(*shape, dtype="float32"):
    return tenon.tensor(rng.standard_normal(shape).astype("float32")).to(getattr(tenon, dtype))


def assert_same(a, b):
    a, b = (t.to(tenon.float64).numpy() for t in (a, b))
    np.testing.assert_array_equal(a, b)


def run_both(function, *args):
    """Runs the program and the function on copies of the same tensors, and compares results and arguments."""
    with tenon.no_grad():
        program = tenon.export(function, tuple(x.clone() for x in args))
        ours, theirs = ([x.clone() for x in args] for _ in range(2))
        for _ in range(3):
            got, expected = program(*ours), function(*theirs)
            for a, b in zip((got, *ours), (expected, *theirs), strict=True):
                assert_same(a, b)
    return program


def update(p, m, g):
    """Momentum: what a step writes is read by the next ones."""
    tenon.multiply(m, 0.9, out=m)
    tenon.add(m, g * 0.1, out=m)
    scaled = m * 0.01
    tenon.subtract(p, scaled, out=p)
    return p * 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("size", [1 << 22, SIZE + 3])
def test_updates(size, dtype, threads):
    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        program = run_both(update, *(rand(size, dtype=dtype) for _ in range(3)))
    finally:
        tenon.set_num_threads(before)
    assert "steps 0 to 5: one pass" in program.plan()
    assert "2 of 3 results stay in the cache" in program.plan()
    assert program.plan().endswith("3 write in place\n")


def test_tensors_that_a_cache_holds_and_pairs_of_steps_are_written_alone():
    program = run_both(update, *(rand((1 << 22) - 1) for _ in range(3)))
    assert "write in place" not in program.plan()

    def pair(v, g):
        tenon.lerp(v, g * g, 0.1, out=v)
        return v.sum()

    assert run_both(pair, rand(SIZE), rand(SIZE)).plan() == ""


def test_a_group_ends_before_its_own_results_are_written():
    def function(x, y):
        z = x * y + 1
        w = z * 2
        tenon.add(w, y, out=w)
        return (w * x).exp() - x

    first, second = run_both(function, rand(SIZE), rand(SIZE)).plan().splitlines()
    assert first.startswith("steps 0 to 2:") and "in place" not in first
    assert second.startswith("steps 3 to 6:") and second.endswith("1 write in place")


def test_other_dtypes_and_operands_that_repeat_are_written_alone():
    def function(x, y):
        tenon.multiply(y, y, out=y)  # a kernel may read one operand under its result
        return (x * y + 1) * 2

    program = run_both(function, rand(SIZE), rand(SIZE))
    assert "steps 1 to 3:" in program.plan()

    def truth(x, y):
        tenon.greater(x, y, out=y)
        return y.to(tenon.float32) * 2 + x.to(tenon.float32)

    masks = (rand(SIZE) > 0 for _ in range(2))
    assert "write in place" not in run_both(truth, *masks).plan()


def test_memory_that_overlaps_is_not_written_block_by_block():
    def function(p, g):
        tenon.subtract(p, g * 0.5, out=p)
        return (p + 1) * 2

    def arguments():
        x = tenon.arange(SIZE + 3000).to(tenon.float32)
        return x[3000:], x[:SIZE]  # a block of the first lies in the next blocks of the second

    with tenon.no_grad():
        program = tenon.export(function, (rand(SIZE), rand(SIZE)))
        assert "write in place" in program.plan()
        ours, theirs = arguments(), arguments()
        assert_same(program(*ours), function(*theirs))
        assert_same(ours[0], theirs[0])
        assert_same(ours[1], theirs[1])


def test_rows_of_what_is_written():
    def function(x):
        row = x[0]
        tenon.add(x, row * 0.5, out=x)
        return (x * 2 + row).exp()  # the row has changed

    run_both(function, rand(*SHAPE) * 0.1)


def test_views_of_what_is_written():
    def function(x):
        same = x.view(*SHAPE)
        flat = x.view(SIZE)
        tenon.multiply(flat, 0.5, out=flat)
        y = same * 2 + 1
        tenon.add(same, y * 0.1, out=same)
        return y * same

    run_both(function, rand(SIZE))


def test_writes_are_seen_by_gradients():
    """What autograd has saved and a program overwrites is found by its version."""
    weight, g = rand(SIZE), rand(SIZE)
    x = rand(SIZE)
    x.requires_grad = True

    def function(p, g):
        tenon.subtract(p, g * 0.5 * 0.1, out=p)
        return p * 2 + g

    with tenon.no_grad():
        program = tenon.export(function, (weight, g))
    assert "write in place" in program.plan()
    loss = (x * weight).sum()
    with tenon.no_grad():
        program(weight, g)
    with pytest.raises(RuntimeError, match="in place|version|overwritten|changed"):
        loss.backward()


class Moments(tenon.optim.Optimizer):
    """Running moments by operators, as optimizers outside of Tenon write them."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def new_state(self, param, group):
        return {"m": tenon.zeros_like(param), "v": tenon.zeros_like(param)}

    def update(self, param, grad, state, group):
        m, v = state["m"], state["v"]
        tenon.multiply(param, 0.999, out=param)
        tenon.lerp(m, grad, 0.1, out=m)
        tenon.lerp(v, grad * grad, 0.001, out=v)
        tenon.subtract(param, m * group["lr"] / (tenon.sqrt(v) + 1e-8), out=param)


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Moments"])
def test_training_steps(name):
    """Weights after steps of a compiled and of a plain function are the same bits."""
    options = {
        "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3},
        "AdamW": {"lr": 1e-2, "weight_decay": 1e-2, "capturable": True},
        "Moments": {"lr": 1e-2},
    }
    start = [rand(*SHAPE), rand(2100)]

    def train(wrap):
        weights = [w.clone() for w in start]
        for w in weights:
            w.requires_grad = True
        made = Moments if name == "Moments" else getattr(tenon.optim, name)
        optimizer = made(weights, **options[name])

        def step(x, target):
            optimizer.zero_grad()
            loss = F.mse_loss(F.linear(x, *weights), target)
            loss.backward()
            optimizer.step()
            return loss

        compiled = wrap(step)
        for x, target in data:
            compiled(x, target)
        return weights, compiled

    data = [(rand(8, 2000), rand(8, 2100)) for _ in range(4)]
    plain, _ = train(lambda step: step)
    weights, compiled = train(tenon.compile)
    # Updates of one operator write in place alone, which saves no tensor.
    assert ("write in place" in compiled.explain()) == (name == "Moments")
    for a, b in zip(weights, plain, strict=True):
        assert_same(a.detach(), b.detach())
