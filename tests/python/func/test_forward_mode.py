# SPDX-License-Identifier: Apache-2.0
"""jvp by tensors that carry their tangents along: nesting, the other mode inside and around, writes, memory."""

import gc

import numpy as np
import pytest
import tenon
from tenon import _core, func, nn
from tenon.autograd import forward

rng = np.random.default_rng(11)


def random(*shape, dtype=tenon.float64):
    return tenon.tensor(rng.standard_normal(shape), dtype=dtype)


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=1e-12)


@pytest.fixture
def refusals(monkeypatch):
    """Texts of what the layer refused, after which two backward passes were made."""
    texts, refused = [], forward.Refused

    class Counted(refused):
        def __init__(self, text):
            super().__init__(text)
            texts.append(text)

    monkeypatch.setattr(forward, "Refused", Counted)
    return texts


def by_pulls(function, x, v):
    """Two backward passes, in PyTorch's words the double-backwards trick."""
    return func.linearize(function, x)[1](v)


def test_a_layered_function(refusals):
    model = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 3)).to(
        tenon.float64
    )
    x, v = random(4, 5), random(4, 5)
    value, tangent = func.jvp(model, (x,), (v,))
    close(value, model(x))
    close(tangent, by_pulls(model, x, v))
    assert refusals == []


def test_tangents_of_parameters(refusals):
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).to(
        tenon.float64
    )
    names = {name: each.detach() for name, each in model.named_parameters()}
    x, directions = random(2, 2, 4, 4), {name: random(*each.shape) for name, each in names.items()}

    def loss(parameters):
        return nn.functional.cross_entropy(
            func.functional_call(model, parameters, (x,)), tenon.tensor([0, 1])
        )

    value, tangent = func.jvp(loss, (names,), (directions,))
    gradients = func.grad(loss)(names)
    close(tangent, sum((gradients[name] * directions[name]).sum() for name in names))
    assert refusals == []


def test_levels_do_not_mix(refusals):
    # d/dx (x * d/dy (x + y)) is 1, and not 2 (Siskind and Pearlmutter, 2005).
    one = tenon.ones([], dtype=tenon.float64)

    def outer(x):
        return x * func.jvp(lambda y: x + y, (one,), (one,))[1]

    assert func.jvp(outer, (one,), (one,))[1].item() == 1.0
    x, v, w = random(3), random(3), random(3)
    second = func.jvp(lambda x: func.jvp(lambda x: tenon.sin(x) * x, (x,), (v,))[1], (x,), (w,))[1]
    close(second, (2 * tenon.cos(x) - x * tenon.sin(x)) * v * w)
    assert refusals == []


def test_forward_over_reverse(refusals):
    def f(x):
        return (tenon.tanh(x) ** 3).sum() + tenon.softmax(x, 0)[0] + tenon.exp(x).prod()

    x, v = random(4) * 0.5, random(4)
    value, product = func.jvp(func.grad(f), (x,), (v,))
    close(value, func.grad(f)(x))
    close(product, func.hvp(f, (x,), (v,))[1][0])
    with tenon.no_grad():
        close(func.jvp(func.grad(f), (x,), (v,))[1], product)
        (gradient, inner), tangents = func.jvp(func.grad_and_value(f), (x,), (v,))
        close(tangents[1], (gradient * v).sum())
        close(tangents[0], product)
    # An input that requires a gradient, and backward() inside of the function.
    y = x.detach().requires_grad_()

    def by_hand(z):
        out = f(z)
        return tenon.grad(out, [z])[0]

    close(func.jvp(by_hand, (y,), (v,))[1], product)
    assert refusals == []


def test_reverse_over_forward(refusals):
    x, v = random(4), random(4)

    def slope(x):
        return func.jvp(lambda x: (x**3 + tenon.sin(x)).sum(), (x,), (v,))[1]

    close(func.grad(slope)(x), (6 * x - tenon.sin(x)) * v)
    y = x.detach().requires_grad_()
    tangent = func.jvp(lambda x: tenon.exp(x).sum(), (y,), (v,))[1]
    tangent.backward()
    close(y.grad, tenon.exp(x) * v)
    # By what the function closes over, too.
    w = random(4).requires_grad_()
    func.jvp(lambda x: (w * x * x).sum(), (x,), (v,))[1].backward()
    close(w.grad, 2 * x * v)
    assert refusals == []


def test_constants_have_no_tangent(refusals):
    x, v = random(3), random(3)
    assert func.jvp(lambda x: tenon.ones([2]), (x,), (v,))[1].tolist() == [0.0, 0.0]
    assert func.jvp(lambda x: x.detach() * 2, (x,), (v,))[1].tolist() == [0.0] * 3
    close(func.jvp(lambda x: x.detach() * x, (x,), (v,))[1], x * v)
    assert func.jvp(lambda x: tenon.argmax(x), (x,), (v,))[1].tolist() == 0
    value, tangent = func.jvp(lambda x: x, (x,), (v,))
    close(tangent, v)
    close(value, x)


def test_views_that_stop_gradients_are_constants(refusals):
    x, v = random(4), random(4)
    stop = tenon.stop_gradient
    for f, want in (
        (lambda x: stop(x), 0 * v),
        (lambda x: stop(x) * x, x * v),
        (lambda x: stop(x)[1:] * x[1:], (x * v)[1:]),
        (lambda x: stop(x[::2]) * x[::2], (x * v)[::2]),
        (lambda x: stop(x).reshape(2, 2).T * x.reshape(2, 2), x.reshape(2, 2).T * v.reshape(2, 2)),
        (lambda x: x + stop(tenon.round(x) - x), v),
        (lambda x: stop(x * x) * tenon.tanh(stop(x)) * x, x * x * tenon.tanh(x) * v),
    ):
        for point in (x, x.detach().requires_grad_()):
            close(func.jvp(f, (point,), (v,))[1], want)
    assert refusals == []


def test_views_that_stop_gradients_stop_those_of_later_writes(refusals):
    x, v = random(4), random(4)

    def f(x):
        y = tenon.zeros([4], dtype=tenon.float64)
        constant, view = tenon.stop_gradient(y), y[1:]
        part = constant[1:]
        y.copy_(x * x)
        return constant * x, part * x[1:], view * x[1:]

    whole, part, shown = func.jvp(f, (x,), (v,))[1]
    close(whole, x * x * v)
    close(part, (x * x * v)[1:])
    close(shown, (3 * x * x * v)[1:])
    assert refusals == []

    def written(x):
        y = x * 2
        tenon.stop_gradient(y)[:2].multiply_(3)
        return y * x

    want = func.grad(lambda x: (written(x) * v).sum())(x)
    close(func.jvp(written, (x,), (v,))[1], want)
    assert len(refusals) == 1


def test_levels_stop_on_their_own(refusals):
    x, v, one = random(3), random(3), tenon.ones([3], dtype=tenon.float64)

    def inner(x):  # d/dy (stop(y) * y) = y
        return func.jvp(lambda y: tenon.stop_gradient(y) * y, (x,), (one,))[1]

    close(func.jvp(lambda x: inner(x) * x, (x,), (v,))[1], x * v)

    def outer(x):  # the inner level gets a constant of the outer one
        return func.jvp(lambda y: y * y * x, (tenon.stop_gradient(x),), (one,))[1]

    close(func.jvp(outer, (x,), (v,))[1], 2 * x * v)
    assert refusals == []


def test_quantised_values_keep_the_gradients_of_their_steps(refusals):
    x, v = random(4, 16, dtype=tenon.float32), random(4, 16, dtype=tenon.float32)
    weight = tenon.ones([3, 16]).to(tenon.float8_e4m3)
    scale = tenon.ones([3])
    for f in (
        lambda x: tenon.fake_quantize(x, tenon.tensor(0.1), quant_min=-8, quant_max=7),
        lambda x: tenon.linear_fp8(x, weight, scale, activations="float8"),
    ):
        got = func.jvp(f, (x,), (v,))[1]
        close(got, by_pulls(f, x, v), rtol=1e-5)
    assert refusals == []


def test_values_may_be_read(refusals):
    def f(x):
        return x * 2 if x.sum().item() > 0 else x * 3

    for x, want in ((tenon.tensor([1.0]), 2.0), (tenon.tensor([-1.0]), 3.0)):
        assert func.jvp(f, (x,), (tenon.ones([1]),))[1].item() == want
    assert refusals == []


def test_writes_in_place(refusals):
    x, v = random(4), random(4)

    def whole(x):
        y = x * 2
        y.multiply_(x)
        y += 1
        tenon.add(y, x, out=y)
        return y

    close(func.jvp(whole, (x,), (v,))[1], 4 * x * v + v)

    def forgotten(x):
        y = x * 2
        y.copy_(tenon.ones([4], dtype=tenon.float64))
        return y * x

    close(func.jvp(forgotten, (x,), (v,))[1], v)
    assert refusals == []

    def part(x):
        y = tenon.zeros([4], dtype=tenon.float64)
        y[1:3] = x[:2] * x[2:]
        return y

    # What the layer refuses is given to two backward passes, and is as right.
    want = tenon.zeros([4], dtype=tenon.float64)
    want[1:3] = v[:2] * x[2:] + x[:2] * v[2:]
    close(func.jvp(part, (x,), (v,))[1], want)
    assert len(refusals) == 1 and "a part of a tensor" in refusals[0]


def test_views_show_their_bases_tangent(refusals):
    x, v = random(6), random(6)

    def f(x):
        y = x * 1
        view = y[::2]  # taken before the write
        y.multiply_(y)
        return view * 1

    close(func.jvp(f, (x,), (v,))[1], (2 * x * v)[::2])

    def later(x):
        y = tenon.zeros([6], dtype=tenon.float64)
        view = y.reshape(2, 3)
        y.copy_(x * x)
        return view.sum(1)

    close(func.jvp(later, (x,), (v,))[1], (2 * x * v).reshape(2, 3).sum(1))
    assert refusals == []


def test_a_function_with_a_gradient_of_its_own_keeps_it(refusals):
    class Straight(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return tenon.round(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    x, v = random(3), random(3)
    close(func.jvp(lambda x: Straight.apply(x) * 2, (x,), (v,))[1], 2 * v)
    assert len(refusals) == 1 and "Straight has a gradient of its own" in refusals[0]


def test_complex_functions(refusals):
    z = tenon.complex(random(4), random(4))
    w = tenon.complex(random(4), random(4))
    close(func.jvp(lambda z: tenon.exp(z) * z, (z,), (w,))[1], tenon.exp(z) * (1 + z) * w)
    close(func.jvp(lambda z: tenon.abs(z), (z,), (w,))[1], (tenon.conj(z) * w).real / tenon.abs(z))
    close(
        func.jvp(lambda z: tenon.conj(z) * z, (z,), (w,))[1], tenon.conj(w) * z + tenon.conj(z) * w
    )
    assert refusals == []


def test_dtypes_and_broadcasting(refusals):
    for dtype in (tenon.float16, tenon.bfloat16, tenon.float32):
        x, y = random(3, 1).to(dtype), random(4)
        value, tangent = func.jvp(lambda x, y: x * y + x, (x, y), (x, y))
        assert value.shape == tangent.shape == (3, 4) and value.dtype == tangent.dtype
    for shape in ((), (0,), (2, 0)):
        x = random(*shape)
        assert func.jvp(lambda x: tenon.sin(x).sum(), (x,), (x,))[1].shape == ()
    x = random(3, 4).T
    close(func.jvp(lambda x: tenon.exp(x), (x,), (x,))[1], tenon.exp(x) * x)
    infinite = tenon.tensor([np.inf, np.nan, 0.0])
    got = func.jvp(lambda x: x * 2, (infinite,), (tenon.ones([3]),))[1]
    assert got.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="jvp: expected vectors of the shapes"):
        func.jvp(lambda x: x, (random(3),), (random(4),))
    assert refusals == []


def test_inside_programs_and_vmap():
    x, v = random(5), random(5)
    f = tenon.compile(lambda x, v: func.jvp(lambda x: tenon.sin(x) * x, (x,), (v,))[1])
    want = (tenon.cos(x) * x + tenon.sin(x)) * v
    for _ in range(4):
        close(f(x, v), want)
    inner = tenon.compile(lambda x: tenon.sin(x) * x)
    for _ in range(4):
        close(func.jvp(inner, (x,), (v,))[1], want)
    batch = random(3, 5)
    close(
        func.vmap(lambda x: func.jvp(lambda x: tenon.sin(x), (x,), (v,))[1])(batch),
        tenon.cos(batch) * v,
    )
    both = func.jvp(lambda x: func.vmap(lambda y: tenon.sin(y) * x)(batch), (x,), (v,))[1]
    close(both, tenon.sin(batch) * v)


def test_an_operator_without_a_gradient_is_named():
    @tenon.op("forward_tests::twice(Tensor x) -> Tensor")
    def twice(x):
        return x * 2

    @twice.shape
    def _(x):
        return x.shape

    x = tenon.ones([2])
    with pytest.raises(NotImplementedError, match="twice"):
        func.jvp(lambda x: twice(x), (x,), (x,))


def test_memory_is_that_of_the_function_twice():
    def f(x):
        for _ in range(30):
            x = tenon.tanh(x * 1.01)
        return x

    x = tenon.ones([1 << 18])
    peaks = []
    with tenon.no_grad():
        for call in (lambda: f(x), lambda: func.jvp(f, (x,), (x,))):
            call()
            tenon.memory.reset_peak("cpu")
            before = tenon.memory.stats("cpu")["current"]
            call()
            peaks.append(tenon.memory.stats("cpu")["peak"] - before)
    assert peaks[1] <= 3 * peaks[0] + 4096


def test_no_memory_is_kept_when_a_level_has_ended(refusals, frozen_heap):
    x, v, w = random(256), random(256), random(256).requires_grad_()

    def nested(x):
        return func.jvp(lambda y: tenon.tanh(w * y) * x, (x,), (v,))[1]

    def fails(x):
        kept.append(tenon.exp(w * x))
        raise KeyError("mine")

    def failing():
        with pytest.raises(KeyError):
            func.jvp(fails, (x,), (v,))
        kept.clear()

    kept = []
    for call in (
        lambda: func.jvp(lambda x: tenon.tanh(w * x), (x,), (v,)),
        lambda: func.jvp(nested, (x,), (v,)),
        lambda: func.jvp(func.grad(lambda x: tenon.exp(w * x).sum()), (x,), (v,)),
        lambda: func.jvp(lambda x: tenon.tanh(w * x), (x,), (v,))[1].sum().backward(),
        failing,
    ):
        amounts = []
        for _ in range(4):
            call()
            gc.collect()
            amounts.append(tenon.memory.stats("cpu")["current"])
        assert amounts[-1] == amounts[1]
    assert refusals == []


def test_results_are_differentiated_when_their_level_has_ended(refusals):
    x, v, w = random(4), random(4), random(4).requires_grad_()
    value, tangent = func.jvp(lambda x: tenon.tanh(w * x), (x,), (v,))
    slope = 1 - tenon.tanh(w * x) ** 2
    close(tangent, slope * w * v)
    (first,) = tenon.grad(tangent.sum(), [w], create_graph=True)
    close(first, (slope - 2 * tenon.tanh(w * x) * slope * w * x) * v)
    (second,) = tenon.grad(first.sum() + value.sum(), [w])
    direct = (1 - tenon.tanh(w * x) ** 2) * w * v
    (again,) = tenon.grad(direct.sum(), [w], create_graph=True)
    close(second, tenon.grad(again.sum() + tenon.tanh(w * x).sum(), [w])[0])
    assert refusals == []


def test_inner_levels_get_what_views_show_of_their_bases(refusals):
    x, v, one = random(4), random(4), tenon.ones([2, 2], dtype=tenon.float64)

    def f(x):
        y = tenon.zeros([4], dtype=tenon.float64)
        view = y.reshape(2, 2)
        y.copy_(x * x)
        return func.jvp(lambda z: z * z, (view,), (one,))[1]

    close(func.jvp(f, (x,), (v,))[1], (4 * x * v).reshape(2, 2))
    assert refusals == []


def test_a_level_ends_where_the_function_fails():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        func.jvp(fails, (tenon.ones([1]),), (tenon.ones([1]),))
    assert _core._forward_level() == 0


def test_a_tensor_that_is_several_results():
    x, v = random(3), random(3)

    def twice(x):
        y = x * 2
        return y, {"again": y}, y.sum()

    _, (first, second, total) = func.jvp(twice, (x,), (v,))
    close(first, 2 * v)
    close(second["again"], 2 * v)
    close(total, (2 * v).sum())
