# SPDX-License-Identifier: Apache-2.0
"""Recomputation: the same gradients with less memory."""

import gc

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.autograd import Function
from tenon.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    recompute,
)


class Block(nn.Module):
    """A block of a GPT."""

    def __init__(self, width, heads, p=0.0):
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(p)
        self.calls = 0

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = tenon.scaled_dot_product_attention(q, k, v, causal=True)
        return self.project(y.permute(0, 2, 1, 3).reshape(batch, length, width))

    def forward(self, x, *, scale=1.0):
        self.calls += 1
        x = x + self.dropout(self.attend(self.norm1(x)))
        hidden = tenon.gelu(self.up(self.norm2(x)))
        return x + self.dropout(self.down(hidden)) * scale


@pytest.fixture
def block():
    tenon.manual_seed(1)
    return Block(16, 2)


def batch(shape=(2, 5, 16), seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype("float32")
    return tenon.tensor(values).requires_grad_()


def gradients(result, module, *inputs):
    tensors = [*inputs, *module.parameters()]
    return [g.numpy() for g in tenon.grad((result * result).sum(), tensors)]


def assert_same(got, expected):
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradients_are_those_without_checkpoint(block):
    x = batch()
    expected = gradients(block(x, scale=0.5), block, x)
    calls = block.calls
    result = checkpoint(block, x, scale=0.5)
    assert block.calls == calls + 1
    assert_same(gradients(result, block, x), expected)
    assert block.calls == calls + 2
    assert recompute is checkpoint
    with tenon.no_grad():
        assert not checkpoint(block, x).requires_grad


def test_random_numbers_are_the_same_again():
    tenon.manual_seed(3)
    block, x = Block(16, 2, p=0.3), batch()
    tenon.manual_seed(7)
    expected = gradients(block(x), block, x)
    after = tenon.random.get_state("cpu")
    tenon.manual_seed(7)
    result = checkpoint(block, x, use_reentrant=True)
    moved = tenon.rand(3)  # the numbers after the call are drawn before the second run
    assert_same(gradients(result, block, x), expected)
    tenon.manual_seed(7)
    gradients(block(x), block, x)
    assert tenon.random.get_state("cpu") == after
    assert tenon.rand(3).tolist() == moved.tolist()
    other = checkpoint(block, x, preserve_rng_state=False)
    assert any(
        (one != two).any()
        for one, two in zip(gradients(other, block, x), gradients(other_again(block, x), block, x))
    )


def other_again(block, x):
    return checkpoint(block, x)


def test_nested_checkpoints(block):
    second, x = Block(16, 2), batch()

    def both(x):
        return second(block(x))

    def nested(x):
        return checkpoint(second, checkpoint(block, x))

    class Pair(nn.Module):
        def __init__(self):
            self.a, self.b = block, second

    expected = gradients(both(x), Pair(), x)
    calls = block.calls, second.calls
    assert_same(gradients(checkpoint(nested, x), Pair(), x), expected)
    # Forward, the outer second run, which ends where the second block begins, and their own.
    assert (block.calls - calls[0], second.calls - calls[1]) == (3, 2)


def test_several_passes_and_higher_orders(block):
    x = batch((1, 3, 16))

    def second_order(result):
        (first,) = tenon.grad((result * result).sum(), [x], create_graph=True)
        return gradients(first, block, x)

    expected = second_order(block(x))
    for one, other in zip(second_order(checkpoint(block, x)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    result, calls = checkpoint(block, x).sum(), block.calls
    result.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    result.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * once, rtol=1e-6)
    assert block.calls == calls + 2
    parts = checkpoint(lambda x: (x.exp(), x.tanh()), x)  # one pass for each part
    (a,) = tenon.grad(parts[0].sum(), [x], retain_graph=True)
    (b,) = tenon.grad(parts[1].sum(), [x])
    np.testing.assert_array_equal(a.numpy(), x.detach().exp().numpy())
    np.testing.assert_allclose(b.numpy(), 1 - np.tanh(x.detach().numpy()) ** 2, atol=1e-6)


def test_the_second_run_ends_with_the_last_saved_tensor():
    reached = []

    def function(x):
        y = x.exp()
        z = y * 2.0
        reached.append("end")
        return z

    x = batch((2,))
    checkpoint(function, x).sum().backward()
    assert reached == ["end"]  # exp saves its result, and nothing after it is needed


def test_parts_of_a_graph_and_arguments_of_any_kind(block):
    ids = tenon.tensor([1, 0, 2])
    table = batch((3, 4))

    def look_up(table, ids, options, *, factor):
        assert options == {"shift": 1.0}
        return (table[ids] * factor).exp() + options["shift"]

    factor = batch((4,), seed=3)
    expected = tenon.grad(look_up(table, ids, {"shift": 1.0}, factor=factor).sum(), [table, factor])
    result = checkpoint(look_up, table, ids, {"shift": 1.0}, factor=factor)
    for tensor, gradient in zip((table, factor), expected, strict=True):
        (got,) = tenon.grad(result.sum(), [tensor], retain_graph=True)
        np.testing.assert_array_equal(got.numpy(), gradient.numpy())


def test_custom_functions_inside():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = batch((3,))
    checkpoint(lambda x: Square.apply(x.exp()), x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * x.detach().numpy()), rtol=1e-5)


def test_a_function_that_changes_is_an_error():
    x, turns = batch((3,)), []

    def fickle(x):
        turns.append(1)
        return x.exp() if len(turns) == 1 else x

    with pytest.raises(CheckpointError, match="saved 1 tensors .* and 0 when it was computed aga"):
        checkpoint(fickle, x).sum().backward()

    def growing(x):
        turns.append(1)
        return tenon.concat([x] * len(turns)).exp()

    with pytest.raises(CheckpointError, match=r"saved tensor 0 had shape \(9,\) .* shape \(12,\)"):
        checkpoint(growing, x).sum().backward()

    def failing(x):
        turns.append(1)
        if len(turns) > 6:
            raise KeyError("again")
        return x.exp()

    turns[:] = [1] * 5
    with pytest.raises(KeyError, match="again"):
        checkpoint(failing, x).sum().backward()


def test_tensors_from_outside_that_change_are_an_error(block):
    x = batch()
    result = checkpoint(block, x).sum()
    with tenon.no_grad():
        block.up.weight *= 2.0
    with pytest.raises(RuntimeError, match="modified in place since it was called: expected versi"):
        result.backward()
    y = batch((3,)) + 0
    result = checkpoint(tenon.exp, y).sum()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified in place"):
        result.backward()


def test_sequential():
    tenon.manual_seed(2)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(5)])
    x = batch((3, 4))
    expected = gradients(model(x), model, x)
    for functions, segments in ((model, 1), (model, 2), (list(model), 5)):
        got = gradients(checkpoint_sequential(functions, segments, x), model, x)
        assert_same(got, expected)
    with pytest.raises(ValueError, match="expected 1 to 5 segments, one or more .* got 6"):
        checkpoint_sequential(model, 6, x)


def peak_of(function):
    gc.collect()
    tenon.memory.trim()
    before = tenon.memory.stats()["current"]
    tenon.memory.reset_peak()
    function()
    return tenon.memory.stats()["peak"] - before


def test_memory_of_a_deep_model(block):
    blocks, x = [Block(32, 2) for _ in range(12)], batch((4, 32, 32))

    def train(call):
        def run():
            y = x
            for block in blocks:
                y = call(block, y)
            y.sum().backward()

        return run

    plain = train(lambda block, y: block(y))
    plain()  # .grad exists from here on
    assert peak_of(train(checkpoint)) < 0.35 * peak_of(plain)


def test_a_timeline_says_which_operators_took_memory():
    x = tenon.ones(1000, dtype=tenon.float32)
    with tenon.memory.timeline() as line:
        y = x + 1.0
        z = (y * 2.0).exp()
        del y
        z.sum()
    assert [point.operator for point in line.points] == ["add", "multiply", "exp", "sum"]
    assert line.points[0].change >= 4000 and line.points[1].change >= 4000
    assert line.peak.current == max(point.current for point in line.points)
    assert {name: calls for name, calls, _ in line.total()} == dict.fromkeys(
        ("add", "multiply", "exp", "sum"), 1
    )
    assert str(line).splitlines()[-1].startswith(f"peak {line.peak.current:,} bytes after call ")
    with tenon.memory.timeline() as line:
        pass
    assert str(line) == "no operator calls"
    with pytest.raises(ValueError, match="expected operator calls in the block"):
        line.peak


# -- what decides how operators compute ---------------------------------------------------------------


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("inner", ["bfloat16", "float16", None])
def test_the_region_of_autocast_is_that_of_the_call(inner, outer):
    """Backward outside of the region, and inside of another one."""
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    x = batch((3, 4))

    def run(call):
        with tenon.amp.autocast(inner or "bfloat16", enabled=inner is not None):
            result = call(layer, x).float().square().sum()
        with tenon.amp.autocast("float16", enabled=outer):
            return [g.numpy() for g in tenon.grad(result, [x, *layer.parameters()])]

    plain, again = run(lambda f, x: f(x)), run(checkpoint)
    for one, other in zip(plain, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_backward_goes_on_outside_of_every_region_after_a_checkpoint():
    """The caller's region has no effect in the steps behind the one that computes again."""
    first, x, seen = nn.Linear(4, 4), batch((3, 4)), []

    class Seen(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((grad @ grad.T).dtype)
            return grad

    with tenon.amp.autocast("bfloat16"):
        y = checkpoint(first, Seen.apply(x)).float().sum()
        y.backward()
        assert (x @ x.T).dtype == tenon.bfloat16
    assert seen == [tenon.float32]


def test_settings_of_the_program_are_those_of_the_call():
    seen = []

    def function(x):
        seen.append((tenon.get_default_dtype(), tenon._core.is_deterministic()))
        return (x * tenon.linspace(0.0, 1.0, 4, dtype=tenon.get_default_dtype())).sin()

    x = batch((3, 4))
    tenon.set_default_dtype(tenon.float64)
    tenon.use_deterministic_algorithms(True)
    try:
        y = checkpoint(function, x).sum()
    finally:
        tenon.set_default_dtype(tenon.float32)
        tenon.use_deterministic_algorithms(False)
    y.backward()
    assert seen == [(tenon.float64, True)] * 2
    assert tenon.get_default_dtype() == tenon.float32 and not tenon._core.is_deterministic()


def test_an_error_in_the_second_run_leaves_settings_and_regions_as_they_were():
    calls = []

    def function(x):
        calls.append(x)
        if len(calls) == 2:
            raise ValueError("not again")
        return (x @ x.T).sin()

    x = batch((3, 4))
    with tenon.amp.autocast():
        y = checkpoint(function, x).sum()
    with pytest.raises(ValueError, match="not again"):
        y.backward()
    assert tenon.amp.is_autocast_enabled() is False
    assert (x @ x.T).dtype == tenon.float32
