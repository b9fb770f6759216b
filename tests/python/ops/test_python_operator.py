# SPDX-License-Identifier: Apache-2.0
"""tenon.op: operators in terms of others, their shape rules, what definitions refuse."""

import copy
import pickle

import numpy as np
import pytest
import tenon
from devices import DEVICES

X = tenon.tensor([[1.0, -2.0], [0.5, 3.0]])
G = tenon.tensor([[2.0, 1.0], [-1.0, 0.5]])


@tenon.op("pyops::swiglu(Tensor x, Tensor g, *, float limit=0.0) -> Tensor")
def swiglu(x, g, *, limit):
    """SwiGLU, clipped at `limit`. Zero: not clipped."""
    y = tenon.silu(x) * g
    return tenon.clip(y, -limit, limit) if limit else y


def expected_swiglu(x, g):
    x, g = x.numpy(), g.numpy()
    return x / (1 + np.exp(-x)) * g


# -- an operator like any other ---------------------------------------------------------------------


def test_it_is_an_ordinary_operator():
    assert isinstance(swiglu, tenon.Operator)
    assert tenon.ops.pyops.swiglu is swiglu
    assert "pyops::swiglu" in tenon.ops.names()
    assert repr(swiglu) == (
        "<operator pyops::swiglu(Tensor x, Tensor g, *, float limit=0.0) -> Tensor>"
    )
    assert swiglu.__doc__ == (
        "swiglu(Tensor x, Tensor g, *, float limit=0.0) -> Tensor\n\n"
        "SwiGLU, clipped at `limit`. Zero: not clipped."
    )
    assert swiglu.__name__ == "swiglu"
    assert swiglu.origin.startswith("test_python_operator.py:")
    assert pickle.loads(pickle.dumps(swiglu)) is swiglu
    assert copy.copy(swiglu) is swiglu
    assert tenon.explain(swiglu)["composite"] is True


def test_values_defaults_and_keywords():
    np.testing.assert_allclose(swiglu(X, G).numpy(), expected_swiglu(X, G), rtol=1e-5)
    np.testing.assert_allclose(swiglu(x=X, g=G).numpy(), expected_swiglu(X, G), rtol=1e-5)
    assert swiglu(X, G, limit=1).numpy().max() == 1.0
    with pytest.raises(TypeError, match="at most 2 positional arguments, got 3"):
        swiglu(X, G, 1.0)


@pytest.mark.parametrize("device", DEVICES)
def test_it_runs_on_every_device(device):
    result = swiglu(X.to(device), G.to(device))
    assert result.device == tenon.device(device)
    np.testing.assert_allclose(result.cpu().numpy(), expected_swiglu(X, G), rtol=1e-5)


def test_it_runs_on_the_meta_device():
    shape = (3, 0, 5)
    x = tenon.zeros(shape, device="meta", dtype="float64")
    assert (swiglu(x, x).shape, swiglu(x, x).dtype) == (shape, tenon.float64)


def test_out_is_written():
    out = tenon.zeros((2, 2))
    assert swiglu(X, G, out=out) is out
    np.testing.assert_allclose(out.numpy(), expected_swiglu(X, G), rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_no_elements_and_no_axes(shape):
    x = tenon.ones(shape)
    assert swiglu(x, x).shape == shape


def test_views_are_arguments():
    x = tenon.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(swiglu(x.T, x.T).numpy(), expected_swiglu(x, x).T, rtol=1e-5)


# -- kinds of arguments and results -----------------------------------------------------------------


def test_every_kind_of_argument_arrives_as_its_python_value():
    seen = {}

    @tenon.op(
        "pyops::kinds(Tensor x, Tensor? t, Tensor[] ts, int i, float f, bool b, Scalar s, str m, "
        "dtype d, device v, int[] n, float[] r, *, Tensor? u=none, int[] k=[1, 2], str o='a b', "
        "dtype p=float16, float q=inf, Scalar w=3) -> Tensor"
    )
    def kinds(x, t, ts, i, f, b, s, m, d, v, n, r, *, u, k, o, p, q, w):
        seen.update(locals())
        return x

    kinds(X, None, [X, G], 3, 4, True, 2.5, "text", "int8", "cpu", [1, 2], [0.5])
    assert seen["t"] is None and seen["u"] is None
    assert [type(t) for t in seen["ts"]] == [tenon.Tensor] * 2
    assert (seen["i"], seen["f"], seen["b"], seen["s"], seen["m"]) == (3, 4.0, True, 2.5, "text")
    assert type(seen["f"]) is float and seen["b"] is True
    assert (seen["d"], seen["v"]) == (tenon.int8, tenon.device("cpu"))
    assert (seen["n"], seen["r"]) == ((1, 2), (0.5,))
    assert (seen["k"], seen["o"], seen["p"]) == ((1, 2), "a b", tenon.float16)
    assert (seen["q"], seen["w"]) == (float("inf"), 3)
    kinds(X, G, [], 3, 4, True, 1 + 2j, "", "int8", "cpu", 7, [])
    assert (seen["ts"], seen["s"], seen["n"], seen["r"]) == ((), 1 + 2j, (7,), ())
    assert seen["t"].tolist() == G.tolist()


def test_several_results_have_names():
    @tenon.op("pyops::extremes(Tensor x, int axis=-1) -> (Tensor low, Tensor high)")
    def extremes(x, axis):
        return [tenon.min(x, axis), tenon.max(x, axis)]

    result = extremes(X)
    assert result.low.tolist() == [-2.0, 0.5] and result.high.tolist() == [1.0, 3.0]


def test_a_list_of_results():
    @tenon.op("pyops::halves(Tensor x) -> Tensor[]")
    def halves(x):
        return [x / 2, x / 4, x / 8]

    assert [t.tolist() for t in halves(tenon.tensor([8.0]))] == [[4.0], [2.0], [1.0]]


def test_creation_follows_its_dtype_and_device():
    @tenon.op("pyops::steps(int n, *, dtype dtype=float32, device? device=none) -> Tensor")
    def steps(n, *, dtype, device):
        return tenon.arange(n, dtype=dtype, device=device)

    @steps.shape
    def _(n, *, dtype, device):
        return (n,)

    assert steps(3, dtype="int16").tolist() == [0, 1, 2]
    assert steps(3, dtype="int16").dtype == tenon.int16
    assert steps(4, device="meta").shape == (4,)


def test_elementwise_operators_broadcast_promote_and_write_in_place():
    @tenon.op("pyops::blend(Tensor x, Tensor y) -> Tensor", elementwise=True)
    def blend(x, y):
        return x * 0.5 + y * 0.5

    x = tenon.tensor([1.0, 3.0])
    assert blend(x, tenon.tensor([[1.0], [3.0]])).tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert blend(x, 1).tolist() == [1.0, 2.0]
    tenon.ops.pyops.blend_(x, tenon.tensor([3.0, 5.0]))
    assert x.tolist() == [2.0, 4.0]
    blend(x, x, out=x)
    assert x.tolist() == [2.0, 4.0]


def test_functions_of_autograd_work_inside():
    class Twice(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 20

    @tenon.op("pyops::custom_inside(Tensor x) -> Tensor")
    def custom_inside(x):
        return Twice.apply(x) + x

    x = tenon.tensor([1.0], requires_grad=True)
    y = custom_inside(x)
    y.backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0], [21.0])


# -- shape rules ------------------------------------------------------------------------------------


def define_pair(name, rule, body=True):
    signature = f"pyops::{name}(Tensor x, int n=2) -> (Tensor a, Tensor b)"
    pair = tenon.op(signature)(
        (lambda x, n: [tenon.stack([x] * n), tenon.cast(x, "int64")]) if body else None
    )
    pair.shape(rule)
    return pair


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, n: [(n, *x.shape), (x.shape, "int64")],
        lambda x, n: [((n, *x.shape), x.dtype), (list(x.shape), tenon.int64)],
        lambda x, n: (
            tenon.zeros((n, *x.shape), device="meta"),
            tenon.zeros(x.shape, dtype="int64", device="meta"),
        ),
    ],
)
def test_what_a_shape_rule_may_return(rule):
    pair = define_pair("pair", rule)
    for device in ("cpu", "meta"):
        a, b = pair(X.to(device), n=3)
        assert (a.shape, a.dtype) == ((3, 2, 2), tenon.float32)
        assert (b.shape, b.dtype) == ((2, 2), tenon.int64)
    assert tenon.explain(pair)["composite"] is False


@pytest.mark.parametrize(
    "result, error, text",
    [
        (
            None,
            TypeError,
            "its shape rule returned None; expected a shape, .shape, dtype. or a Tensor",
        ),
        ("ab", TypeError, "its shape rule returned 'ab'; expected a shape"),
        ((1.5,), TypeError, r"its shape rule returned \(1.5,\); expected a shape"),
        (
            (-1, 2),
            ValueError,
            r"its shape rule returned the shape \(-1, 2\); expected no negative size",
        ),
        (((2,), 7), TypeError, r"its shape rule returned \(\(2,\), 7\); expected a shape"),
        (((2,), "float99"), ValueError, "expected the name of a dtype, such as 'float32'"),
        ((1,) * 33, ValueError, "its shape rule returned 33 axes; expected at most 32"),
        ((1 << 70,), OverflowError, "cannot fit"),
    ],
)
def test_what_a_shape_rule_may_not_return(result, error, text):
    @tenon.op("pyops::wrong_shape(Tensor x) -> Tensor")
    def wrong_shape(x):
        return x + 0

    wrong_shape.shape(lambda x: result)
    with pytest.raises(error, match=text):
        wrong_shape(X)


@pytest.mark.parametrize(
    "result, text",
    [
        (
            (2, 2),
            r"its shape rule returned 2; expected a shape, \(shape, dtype\) or a Tensor for each",
        ),
        ([(2,)], "its shape rule returned 1 results; expected 2"),
        (7, "expected a shape, .shape, dtype. or a Tensor for each result"),
    ],
)
def test_several_results_need_a_shape_each(result, text):
    with pytest.raises((TypeError, ValueError), match=text):
        define_pair("pair_wrong", lambda x, n: result)(X)


def test_without_a_dtype_to_go_by_the_rule_must_name_one():
    bare = tenon.op("pyops::bare(int n) -> Tensor")(lambda n: tenon.zeros(n))
    bare.shape(lambda n: (n,))
    with pytest.raises(ValueError, match="no argument has a dtype; return .shape, dtype."):
        bare(3)
    bare.shape(lambda n: ((n,), "float32"))
    assert bare(3).tolist() == [0.0, 0.0, 0.0]


def test_numbers_given_for_tensors_reach_the_shape_rule_as_tensors():
    scaled = tenon.op("pyops::scaled(Tensor x, Tensor y) -> Tensor")(lambda x, y: x * y)
    seen = []

    @scaled.shape
    def _(x, y):
        seen.append(y)
        return x.shape

    assert scaled(X, 2.0).tolist() == (X * 2).tolist()
    assert seen[0].shape == () and seen[0].item() == 2.0  # its own, also after the call


def test_a_body_that_returns_its_argument_is_copied():
    same = tenon.op("pyops::same(Tensor x) -> Tensor")(lambda x: x)
    same.shape(lambda x: x)
    x = X.clone()
    y = same(x)
    y += 1
    assert x.tolist() == X.tolist() and y.tolist() == (X + 1).tolist()


# -- what bodies may not return, and errors in them -------------------------------------------------


@pytest.mark.parametrize(
    "results, value, text",
    [
        ("Tensor", None, "pyops::wrong: its body returned NoneType; expected a Tensor"),
        ("Tensor", 3.5, "pyops::wrong: its body returned float; expected a Tensor"),
        ("Tensor", np.ones(2), "its body returned numpy.ndarray; expected a Tensor"),
        ("(Tensor a, Tensor b)", X, "its body returned tenon.Tensor; expected a list of Tensors"),
        ("(Tensor a, Tensor b)", [X], "its body returned 1 results; expected 2"),
        (
            "(Tensor a, Tensor b)",
            [X, 1],
            "its body returned int; expected a Tensor for each result",
        ),
        ("Tensor[]", X, "its body returned tenon.Tensor; expected a list of Tensors"),
        ("Tensor[]", [X, None], "its body returned NoneType; expected a Tensor"),
    ],
)
def test_wrong_results_are_errors(results, value, text):
    wrong = tenon.op(f"pyops::wrong(Tensor x) -> {results}")(lambda x: value)
    with pytest.raises((TypeError, ValueError), match=text):
        wrong(X)


@pytest.mark.parametrize(
    "rule, text",
    [
        (lambda x: (3,), r"float32 of shape \(3,\) on cpu:0"),
        (lambda x: (x.shape, "int64"), r"int64 of shape \(2, 2\) on cpu:0"),
    ],
)
def test_a_body_returns_what_the_shape_rule_says(rule, text):
    op = tenon.op("pyops::broken_promise(Tensor x) -> Tensor")(lambda x: x + 1)
    op.shape(rule)
    returned = r"pyops::broken_promise: its body returned float32 of shape \(2, 2\) on cpu:0"
    with pytest.raises(ValueError, match=f"{returned}; expected {text}, as its shape rule says"):
        op(X)


def test_a_body_returns_where_its_arguments_are():
    op = tenon.op("pyops::elsewhere(Tensor x) -> Tensor")(lambda x: x.to("meta"))
    op.shape(lambda x: x)
    with pytest.raises(ValueError, match=r"on meta:0; expected float32 of shape \(2, 2\) on cpu:0"):
        op(X)


def test_an_elementwise_body_returns_the_broadcast_shape():
    op = tenon.op("pyops::unequal(Tensor x, Tensor y) -> Tensor", elementwise=True)(
        lambda x, y: y + 1
    )
    op.grad(lambda dout: (dout, dout))
    assert op(tenon.ones((3, 1)), tenon.ones((2, 3, 4))).shape == (2, 3, 4)
    with pytest.raises(
        ValueError,
        match=r"returned float32 of shape \(3, 1\) on cpu:0; expected a tensor of shape \(2, 3, 4\)",
    ):
        op(tenon.ones((2, 3, 4)), tenon.ones((3, 1)))


class Unlucky(Exception):
    pass


def test_exceptions_come_out_as_themselves():
    raised = Unlucky("as it is")

    def fail(x):
        raise raised

    body = tenon.op("pyops::fails(Tensor x) -> Tensor")(fail)
    outer = tenon.op("pyops::fails_outside(Tensor x) -> Tensor")(lambda x: body(x) + 1)
    for call in (body, outer):
        with pytest.raises(Unlucky) as caught:
            call(X)
        assert caught.value is raised
        assert any(entry.name == "fail" for entry in caught.traceback)
    shape = tenon.op("pyops::fails_shape(Tensor x) -> Tensor")(lambda x: x)
    shape.shape(fail)
    with pytest.raises(Unlucky) as caught:
        shape(X)
    assert caught.value is raised
    assert swiglu(X, G).shape == (2, 2)  # and nothing is left behind


# -- definitions that are refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "signature, text",
    [
        (
            "swiglu(Tensor x) -> Tensor",
            "column 7: expected `::` after the namespace `swiglu`, got `.`",
        ),
        ("pyops::f(Tensr x) -> Tensor", "got `Tensr`; did you mean `Tensor`?"),
        ("pyops::f(Tensor x)", "column 19: expected `->`, got the end"),
        (
            "pyops::f(int n=0.5) -> Tensor",
            "default of `n`: expected a value of type int, got `0.5`",
        ),
    ],
)
def test_wrong_signatures(signature, text):
    with pytest.raises(ValueError, match="operator signature 'p?.*" + text.replace("?", r"\?")):
        tenon.op(signature)


def test_the_namespace_of_tenon_is_taken():
    for name in ("add", "pyops_new"):
        with pytest.raises(ValueError, match=f"tenon::{name}: the namespace tenon is reserved"):
            tenon.op(f"tenon::{name}(Tensor x) -> Tensor")(lambda x: x)


def test_operators_have_at_most_so_many_parameters_and_results():
    params = ", ".join(f"int n{i}" for i in range(33))
    results = ", ".join(f"Tensor y{i}" for i in range(9))
    for text, problem in (
        (f"({params}) -> Tensor", "expected at most 32 parameters, got 33"),
        (f"(int n) -> ({results})", "at most 32 parameters and 8 results, got 1 and 9"),
    ):
        with pytest.raises(ValueError, match=problem):
            tenon.op(f"pyops::wide{text}")(lambda *args: None)


def test_functions_must_take_the_operators_parameters():
    define = tenon.op("pyops::takes(Tensor x, *, int n=1) -> Tensor")
    with pytest.raises(
        TypeError,
        match=r"pyops::takes: expected a body with the parameters \(x, \*, n\), got \(x\)",
    ):
        define(lambda x: x)
    with pytest.raises(TypeError, match="pyops::takes: expected a function as a body, got int"):
        define(3)
    op = define(lambda x, *, n=5: x)
    with pytest.raises(TypeError, match=r"expected a shape rule with the parameters \(x, \*, n\)"):
        op.shape(lambda x, m: x)
    with pytest.raises(TypeError, match="expected a function as a shape rule, got NoneType"):
        op.shape(None)


def test_built_in_operators_have_their_shape_and_gradient_elsewhere():
    with pytest.raises(
        ValueError, match="tenon::exp is not defined with tenon.op: its shape rule is"
    ):
        tenon.exp.shape(lambda x: x)
    with pytest.raises(
        ValueError, match="tenon::exp is not defined with tenon.op: its gradient is"
    ):
        tenon.exp.grad(lambda x: x)


def test_lists_of_results_are_bodies_alone():
    with pytest.raises(ValueError, match=r"an operator that returns Tensor\[\] needs a body"):
        tenon.op("pyops::parts(Tensor x) -> Tensor[]")(None)
    parts = tenon.op("pyops::parts(Tensor x) -> Tensor[]")(lambda x: [x])
    with pytest.raises(ValueError, match=r"returns Tensor\[\]: it is made of other operators"):
        parts.shape(lambda x: x)
    with pytest.raises(ValueError, match="an elementwise operator has one Tensor as its result"):
        tenon.op("pyops::parts(Tensor x) -> Tensor[]", elementwise=True)


def test_gradients_and_kernels_of_a_composite_need_a_shape_rule():
    op = tenon.op("pyops::shapeless(Tensor x) -> Tensor")(lambda x: x)
    text = "is made of other operators, and gradients come from them; give it a shape rule with @shapeless.shape before its "
    with pytest.raises(ValueError, match=text + "gradient"):
        op.grad(lambda dout: dout)
    with pytest.raises(ValueError, match=text + "kernels"):
        op.kernel("cpu")(lambda x: x)


def test_without_a_body_and_a_kernel_there_is_nothing_to_run():
    @tenon.op("pyops::declared(Tensor x) -> Tensor")
    def declared(x):
        """Only declared."""

    assert declared.__doc__.endswith("Only declared.")
    with pytest.raises(
        NotImplementedError, match="declared has no shape rule; add one with @declared.sh"
    ):
        declared(X)
    declared.shape(lambda x: x)
    assert declared(X.to("meta")).shape == X.shape
    with pytest.raises(
        NotImplementedError, match="no kernel for float32 on cpu.*, and no decomposition"
    ):
        declared(X)


# -- results that share memory ------------------------------------------------------------------------


def test_two_results_that_are_one_tensor_become_two():
    made = tenon.op("pyops::pair(Tensor x) -> (Tensor a, Tensor b)")(lambda x: [x * 2] * 2)
    made.shape(lambda x: [x.shape, x.shape])
    parts = tenon.op("pyops::parts(Tensor x) -> (Tensor a, Tensor b)")(halves)
    parts.shape(lambda x: [(x.shape[0] // 2, x.shape[1])] * 2)
    for operator in (made, parts):
        a, b = operator(X)
        assert a.numpy().tolist() == b.numpy().tolist()
        before = b.numpy().tolist()
        a.fill_(7.0)
        assert b.numpy().tolist() == before

    def function(x):
        a, b = made(x)
        a.add_(1)
        return a, b

    program = tenon.export(function, X)
    for got, want in zip(program(X), function(X), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def halves(x):
    both = x[:1] * 2
    return both[:1], both.reshape(1, -1)


def test_results_of_an_operator_made_of_others_are_what_its_body_returns():
    made = tenon.op("pyops::both(Tensor x) -> (Tensor a, Tensor b)")(lambda x: [x * 2] * 2)
    a, b = made(X)
    a.fill_(7.0)
    assert b.numpy().tolist() == [[7.0, 7.0], [7.0, 7.0]]
