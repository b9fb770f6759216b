# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that are defined in Python."""

import threading

import pytest
import tenon
from devices import DEVICES


def leaf(values, dtype="float64"):
    return tenon.tensor(values, dtype=dtype, requires_grad=True)


def derivatives(op, *inputs):
    """Differentiable again, and also where gradcheck switches recording off."""
    with tenon.enable_grad():
        inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        return tenon.grad(op(*inputs).sum(), inputs, create_graph=True)


@tenon.op("pygrad::composed(Tensor x, Tensor g) -> Tensor")
def composed(x, g):
    return tenon.silu(x) * g


@tenon.op("pygrad::swiglu(Tensor x, Tensor g, *, float scale=1.0) -> Tensor")
def swiglu(x, g, *, scale):
    return tenon.silu(x) * g * scale


@swiglu.shape
def _(x, g, *, scale):
    return x


@swiglu.grad
def _(dout, x, g, *, scale):
    s = tenon.sigmoid(x)
    return {"x": dout * g * scale * s * (1 + x * (1 - s)), "g": dout * x * s * scale}


INPUTS = {
    "matrix": [[0.3, -0.7, 1.1], [2.0, 0.1, -0.4]],
    "0-d": 0.7,
    "empty": [[], []],
}


@pytest.mark.parametrize("values", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("op", [composed, swiglu], ids=["composed", "own"])
def test_gradcheck(op, values):
    x, g = leaf(values), leaf(values)
    assert tenon.autograd.gradcheck(op, (x, g * 1.5)) if x.size else True
    op(x, g).sum().backward()
    assert x.grad.shape == x.shape and g.grad.shape == g.shape


@pytest.mark.parametrize("op", [composed, swiglu], ids=["composed", "own"])
def test_views_and_transposes(op):
    x, g = leaf(INPUTS["matrix"]), leaf(INPUTS["matrix"])
    assert tenon.autograd.gradcheck(lambda x, g: op(x.T, g.T)[1:], (x, g))


@pytest.mark.parametrize("op", [composed, swiglu], ids=["composed", "own"])
def test_second_order(op):
    x, g = leaf([0.3, -0.7]), leaf([1.2, 0.4])

    def first(x, g):
        with_respect_to_x, with_respect_to_g = derivatives(op, x, g)
        return with_respect_to_x * 2 + with_respect_to_g

    assert tenon.autograd.gradcheck(first, (x, g))


def test_one_node_or_its_parts():
    x, g = leaf([1.0]), leaf([2.0])
    assert repr(swiglu(x, g)).endswith("grad_fn=<pygrad::swiglu>)")
    assert repr(composed(x, g)).endswith("grad_fn=<multiply>)")


@pytest.mark.parametrize("device", DEVICES)
def test_on_every_device(device):
    x = tenon.tensor([0.5, -1.0]).to(device).requires_grad_()
    g = tenon.tensor([2.0, 3.0]).to(device).requires_grad_()
    swiglu(x, g, scale=2.0).sum().backward()
    there = x.grad.cpu().tolist()
    x, g = leaf([0.5, -1.0], "float32"), leaf([2.0, 3.0], "float32")
    (composed(x, g) * 2).sum().backward()
    assert there == pytest.approx(x.grad.tolist(), rel=1e-5)


def test_only_what_is_wanted_is_asked_for():
    seen = []
    op = tenon.op("pygrad::needed(Tensor x, Tensor y, Tensor n) -> Tensor")(lambda x, y, n: x * y)
    op.shape(lambda x, y, n: x)

    @op.grad
    def _(dout, x, y, needs):
        seen.append(needs)
        return {name: dout * (y if name == "x" else x) for name in needs}

    x, y, n = leaf([2.0]), leaf([3.0]), tenon.tensor([1])
    op(x, y.detach(), n).backward()
    op(x, y, n).backward()
    assert seen == [{"x"}, {"x", "y"}]
    assert (x.grad.tolist(), y.grad.tolist()) == ([6.0], [2.0])


def define(grad, signature="(Tensor x, Tensor y) -> Tensor", body=lambda x, y: x * y, shape=None):
    op = tenon.op("pygrad::various" + signature)(body)
    op.shape(shape or (lambda x, y: x))
    op.grad(grad)
    return op


@pytest.mark.parametrize(
    "grad",
    [
        lambda dout, x, y: (dout * y, dout * x),
        lambda y, dout, x: [dout * y, dout * x],
        lambda dout, x, y: {"y": dout * x, "x": dout * y},
        lambda *, x, dout, y: {"y": dout * x, "x": dout * y},
    ],
)
def test_what_a_gradient_may_return(grad):
    x, y = leaf([2.0]), leaf([3.0])
    define(grad)(x, y).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0], [2.0])


@pytest.mark.parametrize("grad", [lambda dout: (dout, None), lambda dout: {"x": dout}])
def test_none_is_zero(grad):
    x, y = leaf([2.0]), leaf([3.0])
    (define(grad)(x, y) + y * 0).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0], [0.0])


def test_the_result_is_there_for_the_gradient():
    op = tenon.op("pygrad::exponential(Tensor x) -> Tensor")(tenon.exp)
    op.shape(lambda x: x)
    op.grad(lambda dout, out: dout * out)
    x = leaf([0.5, -1.0])
    assert tenon.autograd.gradcheck(op, (x,))
    assert tenon.autograd.gradcheck(lambda x: derivatives(op, x)[0], (x,))


def test_several_results_each_have_a_gradient():
    op = tenon.op("pygrad::both(Tensor x) -> (Tensor a, Tensor b)")(lambda x: [x * 2, x * 3])
    op.shape(lambda x: [x, x])
    seen = []

    @op.grad
    def _(da, db):
        seen.append((da, db))
        return (da * 2 if da is not None else 0) + (db * 3 if db is not None else 0)

    x = leaf([1.0])
    a, b = op(x)
    (a + b * 10).backward()
    assert x.grad.tolist() == [32.0]
    op(x).b.backward()
    assert seen[1][0] is None and x.grad.tolist() == [35.0]


def test_lists_of_tensors_have_lists_of_gradients():
    op = tenon.op("pygrad::total(Tensor[] xs, Tensor w) -> Tensor")(lambda xs, w: sum(xs) * w)
    op.shape(lambda xs, w: w)
    op.grad(lambda dout, xs, w: ([dout * w, None, dout * w], dout * sum(xs)))
    xs, w = [leaf([float(i)]) for i in range(3)], leaf([5.0])
    op(xs, w).backward()
    assert [x.grad and x.grad.tolist() for x in xs] == [[5.0], None, [5.0]]
    assert w.grad.tolist() == [3.0]
    op.grad(lambda dout, w: ([dout * w], None))
    with pytest.raises(ValueError, match="its gradient returned 1 tensors for `xs`; expected 3"):
        op(xs, w).backward()
    op.grad(lambda dout, w: (dout * w, None))
    with pytest.raises(
        TypeError, match="returned tenon.Tensor for `xs`; expected a list of Tensors"
    ):
        op(xs, w).backward()


def test_elementwise_operators_need_no_shape_rule_for_a_gradient():
    op = tenon.op("pygrad::cube(Tensor x, Tensor y) -> Tensor", elementwise=True)(
        lambda x, y: x**3 * y
    )
    assert tenon.explain(op)["composite"] is True
    op.grad(lambda dout, x, y: (dout * 3 * x * x * y, dout * x**3))
    assert tenon.explain(op)["composite"] is False
    x, y = leaf([[1.0, 2.0], [0.5, -1.0]]), leaf([3.0, 0.5])
    assert tenon.autograd.gradcheck(op, (x, y))  # broadcast: the engine sums


@pytest.mark.parametrize(
    "grad, error, text",
    [
        (
            lambda dout: dout,
            ValueError,
            "its gradient returned tenon.Tensor; expected a dict, or a tuple of 2",
        ),
        (
            lambda dout: (dout,),
            ValueError,
            "its gradient returned 1 gradients; expected a dict, or a tuple of 2",
        ),
        (
            lambda dout: (dout, 3),
            TypeError,
            "returned int for `y`; expected a Tensor made by operators, or None",
        ),
        (
            lambda dout: {"x": dout.detach().numpy()},
            TypeError,
            "returned numpy.ndarray for `x`; expected a Tensor",
        ),
        (
            lambda dout: {"z": dout},
            ValueError,
            "a dict with 'z'; expected tensor arguments: `x`, `y`",
        ),
        (lambda dout: {0: dout}, ValueError, "a dict with 0; expected tensor arguments: `x`, `y`"),
    ],
)
def test_what_a_gradient_may_not_return(grad, error, text):
    y = define(grad)(leaf([2.0]), leaf([3.0]))
    with pytest.raises(error, match="pygrad::various: .*" + text):
        y.backward()


def test_gradients_take_what_they_name():
    op = define(lambda dout: None)
    with pytest.raises(
        TypeError, match="its gradient takes `dx`; expected some of needs, x, y, out, dout"
    ):
        op.grad(lambda dx: None)
    with pytest.raises(TypeError, match=r"its gradient takes `\*\*all`"):
        op.grad(lambda **all: None)
    with pytest.raises(TypeError, match="its gradient takes no parameters; expected some of needs"):
        op.grad(lambda: None)
    clash = tenon.op("pygrad::clash(Tensor dout) -> Tensor")(None)
    with pytest.raises(
        ValueError, match="`dout` is the gradient of result `out` and a name in the sig"
    ):
        clash.grad(lambda dout: dout)


def test_a_wrong_shape_is_an_error():
    y = define(lambda dout, x, y: (tenon.zeros(7, dtype="float64"), None))(
        leaf([2.0, 3.0]), leaf([3.0, 1.0])
    )
    with pytest.raises(ValueError, match="various"):
        y.sum().backward()


def test_without_a_gradient_the_error_says_what_to_add():
    op = tenon.op("pygrad::no_rule(Tensor x) -> Tensor")(lambda x: x * 2)
    op.shape(lambda x: x)
    x = leaf([1.0])
    y = op(x)
    text = "pygrad::no_rule has no gradient; add one with @no_rule.grad, or call it under tenon.no_grad"
    with pytest.raises(NotImplementedError, match=text):
        y.backward()
    with tenon.no_grad():
        assert not op(x).requires_grad


def test_operators_that_never_have_gradients():
    op = tenon.op("pygrad::steps(Tensor x) -> Tensor", differentiable=False)(
        lambda x: tenon.sign(x)
    )
    op.shape(lambda x: x)
    assert not op(leaf([1.0])).requires_grad


class Unlucky(Exception):
    pass


def test_exceptions_in_backward_come_out_as_themselves():
    raised = Unlucky("in the gradient")

    def fail(dout):
        raise raised

    y = define(fail)(leaf([2.0]), leaf([3.0]))
    with pytest.raises(Unlucky) as caught:
        (y * 2).backward()
    assert caught.value is raised
    assert any(entry.name == "fail" for entry in caught.traceback)
    caught = []

    def work():
        try:
            define(fail)(leaf([2.0]), leaf([3.0])).backward()
        except Unlucky as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert caught == [raised]


def test_a_graph_keeps_the_gradient_that_it_was_made_with():
    signature = "pygrad::redefined(Tensor x) -> Tensor"
    x = leaf([1.0])

    def make(signature, factor):
        op = tenon.op(signature)(lambda x, *n: x * factor)
        op.shape(lambda x, *n: x)
        op.grad(lambda dout: dout * factor)
        return op

    first = make(signature, 2)(x)
    second = make(signature, 3)(x)
    third = make("pygrad::redefined(Tensor x, int n=0) -> Tensor", 4)(x)
    last = tenon.op(signature)(lambda x: x * 5)(x)
    got = []
    for y in (first, second, third, last):
        got.append(tenon.grad(y, x)[0].item())
    assert got == [2.0, 3.0, 4.0, 5.0]
