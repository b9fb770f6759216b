# SPDX-License-Identifier: Apache-2.0
"""Rewrites of programs: each that is known holds and is applied, wrong ones are refused, and what may not change stays."""

import contextlib
import re

import numpy as np
import pytest
import tenon
from tenon import graph

_NAMES = [each.name for each in graph.rewrites()]


@contextlib.contextmanager
def added(name, source, target, **promise):
    graph.rewrite(name, source, target, **promise)
    try:
        yield
    finally:
        graph.remove(name)


def _function_of(rewrite, arguments):
    """The source of a rewrite as a function of its tensors. The grammar is nearly Python's."""
    tensors = [name for name, value in arguments.items() if isinstance(value, tenon.Tensor)]
    scope = {}
    for word in set(re.findall(r"\b([a-z_]\w*)\(", rewrite.source)):
        scope[word] = getattr(tenon.ops, word)
    scope |= {"true": True, "false": False, "none": None}
    *steps, result = rewrite.source.split("\n")

    def function(*given):
        names = scope | arguments | dict(zip(tensors, given, strict=True))
        for step in steps:
            name, expression = step.split(" = ", 1)
            names[name] = eval(expression, {}, names)
        return eval(result, {}, names)

    return function, [arguments[name] for name in tensors]


def _arguments(rewrite):
    """Tensors and numbers that the names of a rewrite may stand for."""
    random = np.random.default_rng(0)
    numbers = {"a": 1, "eps": 1e-5, "s": 0.5}
    names = set(re.findall(r"\b([a-z]\w*)\b(?!\(| =)", rewrite.source)) - {"true", "false", "none"}
    names -= set(re.findall(r"^(\w+) = ", rewrite.source, re.MULTILINE))
    dtype = rewrite.dtypes[0]
    kind = "float32" if tenon.float32 in rewrite.dtypes else dtype
    if rewrite.name == "not_twice":
        kind = "bool"
    shapes = {"weight": [6], "bias": [6], "mask": [4, 4]}
    return {
        name: numbers[name]
        if name in numbers
        else tenon.tensor(random.normal(size=shapes.get(name, [4, 6])).astype(np.float32)).astype(
            kind
        )
        for name in sorted(names)
    }


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_each_holds(name, seed):
    graph.check(name, seed)


@pytest.mark.parametrize("rewrite", graph.rewrites(), ids=_NAMES)
def test_each_is_applied_and_keeps_its_promise(rewrite):
    function, tensors = _function_of(rewrite, _arguments(rewrite))

    def around(*given):  # a result of its own, so that the source may become one of its tensors
        return tenon.ops.stack([function(*given)])

    others = [name for name in _NAMES if name != rewrite.name]
    with tenon.no_grad():  # exact ones leave alone what gradients may pass through
        plain = tenon.export(around, tensors, passes=())
        program = tenon.export(around, tensors, numerics=rewrite.numerics, without=others)
    assert program.changes().startswith(f"{rewrite.name}: "), str(program)
    expected, got = plain(*tensors), program(*tensors)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    if rewrite.numerics == "exact":
        assert got.numpy().tobytes() == expected.numpy().tobytes()
    else:
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("source", "target", "promise", "text"),
    [
        ("x + 0", "x", {}, r"`x \+ 0` gives 0 and `x` gives -0 at index \d+, where x = b?float"),
        ("sqrt(square(x))", "x", {"numerics": "ulp", "units": 4}, "expected at most 4, where x = "),
        ("(x * y) / y", "x", {}, "gives .* at index"),
        ("softmax(x, a)", "softmax(x, -1)", {"numerics": "fast", "units": 9}, "a = -?[0-9]"),
        ("x - y", "y - x", {"dtypes": ["int64"]}, r"x = int64\[.*y = int64"),
        ("dropout(x)", "dropout(x)", {}, "at index"),  # draws anew on each side
        (
            "exp(x) * exp(y)",
            "exp(x + y)",
            {"numerics": "ulp", "units": 2},
            "units, expected at most 2|gives nan and",
        ),
    ],
)
def test_a_wrong_one_is_refused_with_a_counterexample(source, target, promise, text):
    with pytest.raises(RuntimeError, match="rewrite `wrong` does not hold") as caught:
        graph.rewrite("wrong", source, target, **promise)
    assert re.search(text, str(caught.value)), str(caught.value)
    assert "wrong" not in [each.name for each in graph.rewrites()]


@pytest.mark.parametrize(
    ("source", "target", "promise", "text"),
    [
        ("x + ", "x", {}, "rewrite bad:1: from: expected a value, got the end"),
        ("x", "x + 1", {}, "from: expected a call of an operator, got `x`"),
        ("x + 1", "y", {}, "to: expected names that `from` has, got `y`"),
        ("no_such(x)", "x", {}, "from: operator `no_such` is unknown"),
        ("exp(x, 1)", "x", {}, r"`exp\(x, 1\)`: argument 2 does not fit"),
        ("x + 1", "x + 1", {"units": 2}, "expected numerics exact with 0 units"),
        ("x + 1", "x + 1", {"numerics": "ulp"}, "or ulp or fast with more, got 1 with 0"),
        (["y = x + 1", "z = y + 1"], "x", {}, "for all but the last line, which is the result"),
        ("softmax(x, y)", "x + y", {}, None),
    ],
)
def test_what_is_no_rewrite_is_an_error(source, target, promise, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        graph.rewrite("bad", source, target, **promise)


def test_arguments_that_both_sides_take_must_exist():
    with pytest.raises(RuntimeError, match="of 600 draws of arguments 0 gave tensors of one type"):
        graph.rewrite("never", "x + 1", "cast(x, int8)")


def test_a_name_is_taken_once():
    with added("mine", "x + x", "x * 2"):
        with pytest.raises(ValueError, match="`mine` exists already"):
            graph.rewrite("mine", "x + x", "x * 2")
    with pytest.raises(tenon.NotFoundError, match="there is no rewrite `mine`"):
        graph.remove("mine")
    with pytest.raises(ValueError, match="numerics 'exact', 'ulp' or 'fast', got 'loose'"):
        graph.rewrite("mine", "x + x", "x * 2", numerics="loose")


x = tenon.tensor([[-2.0, 0.5], [1.0, 3.0]])


def _gelu(t):
    return 0.5 * t * (1 + tenon.tanh(0.7978845608028654 * (t + 0.044715 * t**3)))


def test_levels_and_names_choose():
    assert tenon.export(_gelu, x).changes() == ""
    changed = tenon.export(_gelu, x, numerics="fast")
    assert re.fullmatch(
        r"gelu_of_tanh: 8 steps became tenon::gelu at .*test_rewrites.py:\d+\n", changed.changes()
    )
    assert "approximate=true" in str(changed)
    np.testing.assert_allclose(changed(x).numpy(), _gelu(x).numpy(), rtol=1e-6)
    assert tenon.export(_gelu, x, numerics="fast", without=["gelu_of_tanh"]).changes() == ""
    with pytest.raises(tenon.NotFoundError, match="there is no rewrite `guelu`"):
        tenon.export(_gelu, x, without=["guelu"])
    with pytest.raises(ValueError, match="expected numerics 'exact', 'ulp' or 'fast', got 'quick'"):
        tenon.export(_gelu, x, numerics="quick")
    with pytest.raises(ValueError, match="'rewrites', which is not among the passes"):
        tenon.export(_gelu, x, numerics="fast", passes=("dce",))


def test_compile_applies_them():
    compiled = tenon.compile(_gelu, numerics="fast")
    for _ in range(3):
        result = compiled(x)
    np.testing.assert_allclose(result.numpy(), _gelu(x).numpy(), rtol=1e-6)
    assert "gelu_of_tanh: 8 steps became tenon::gelu" in compiled.explain()
    with pytest.raises(ValueError, match="got 'quick'"):
        tenon.compile(_gelu, numerics="quick")


def _silu_and_its_gate(t):
    gate = tenon.sigmoid(t)
    return t * gate, gate


def _silu_of_what_is_written(t):
    gate = tenon.sigmoid(t)
    result = t * gate
    tenon.add(gate, 1, out=gate)
    return result, gate + 1


def _double_negative_of_input(t):
    return tenon.negative(tenon.negative(t))


def _times_one_of_another_dtype(t):
    return tenon.ops.stack([t.astype("int32") * 1.0])


@pytest.mark.parametrize(
    "function",
    [
        _silu_and_its_gate,  # a part is a result
        _silu_of_what_is_written,
        _double_negative_of_input,  # the result would be the input itself
        _times_one_of_another_dtype,
    ],
)
def test_it_is_not_applied_where_others_would_see_it(function):
    program = tenon.export(function, x, numerics="fast")
    assert program.changes() == ""
    expected, got = function(x), program(x)
    for a, b in zip(
        *[[t] if isinstance(t, tenon.Tensor) else t for t in (expected, got)], strict=True
    ):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_a_step_that_a_variable_reads_stays():
    def doubled(x):
        y = -tenon.exp(x)
        return y + y  # x + (-y), of which x is -y

    x = tenon.randn(3)
    with tenon.no_grad():
        program = tenon.export(doubled, (x,))
        assert program(x).numpy().tobytes() == doubled(x).numpy().tobytes()


def test_exact_ones_spare_what_gradients_may_pass_through():
    weight = tenon.tensor([[0.3, -0.7], [0.2, 0.9]], requires_grad=True)

    def function(t):
        return ((t * 1) * (weight * weight)).sum()

    program = tenon.export(function, x)
    assert program.changes() == ""
    function(x).backward()
    expected, weight.grad = weight.grad.numpy(), None
    program(x).backward()
    assert weight.grad.numpy().tobytes() == expected.tobytes()
    with tenon.no_grad():
        assert tenon.export(function, x).changes().count("\n") == 2
    assert tenon.export(function, x, numerics="ulp").changes().count("\n") == 2


def test_gradients_through_others_are_those_of_the_target():
    weight = tenon.tensor([[0.3, -0.7], [0.2, 0.9]], requires_grad=True)

    def function(t):
        gate = t * weight
        return (gate * tenon.sigmoid(gate)).sum()

    program = tenon.export(function, x, numerics="ulp")
    assert program.changes().startswith("silu: 2 steps became tenon::silu")
    function(x).backward()
    expected, weight.grad = weight.grad.numpy(), None
    program(x).backward()
    np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-5)


def test_those_that_undo_each_other_come_to_an_end():
    with added("there", "exp2(x) + 1", "1 + exp2(x) * 1"), added("back", "exp2(x) * 1", "exp2(x)"):
        with tenon.no_grad():
            program = tenon.export(lambda t: tenon.exp2(t) + 1, x, without=["times_one"])
        assert program.changes().count("there") > 10
        assert program(x).numpy().tobytes() == (tenon.exp2(x) + 1).numpy().tobytes()


def test_attention_by_hand():
    random = np.random.default_rng(1)
    q, k, v = (tenon.tensor(random.normal(size=(2, 3, 8, 16)).astype(np.float32)) for _ in range(3))

    def attention(q, k, v):
        scores = q @ k.swapaxes(-1, -2) / 4.0
        weights = tenon.exp(scores - scores.max(-1, keepdim=True))
        return (weights / weights.sum(-1, keepdim=True)) @ v

    program = tenon.export(attention, (q, k, v), numerics="fast")
    assert [line.split(":")[0] for line in program.changes().splitlines()] == [
        "softmax",
        "attention_of_quotients",
    ]
    assert "scaled_dot_product_attention(%0, %1, %2, scale=0.25)" in str(program)
    np.testing.assert_allclose(
        program(q, k, v).numpy(), attention(q, k, v).numpy(), rtol=2e-5, atol=1e-6
    )

    def other(q, k, v):  # not a transpose of the last two axes
        return (tenon.nn.functional.softmax(q @ k.reshape(2, 3, 16, 8) * 0.25, -1)) @ v

    assert tenon.export(other, (q, k, v), numerics="fast").changes() == ""


@pytest.mark.parametrize("by_variance", [False, True])
def test_layer_norm_by_hand(by_variance):
    weight, bias = tenon.rand(6), tenon.rand(6)
    t = tenon.rand(4, 6)

    def norm(t):
        distance = t - t.mean(-1, keepdim=True)
        variance = (
            tenon.ops.var(t, -1, 0.0, True)
            if by_variance
            else (distance * distance).mean(-1, keepdim=True)
        )
        return distance / tenon.sqrt(variance + 1e-5) * weight + bias

    program = tenon.export(norm, t, numerics="fast")
    assert "tenon::layer_norm" in program.changes()
    np.testing.assert_allclose(program(t).numpy(), norm(t).numpy(), rtol=1e-4, atol=1e-5)
    wide = tenon.rand(4, 6)  # a weight for each element is no layer_norm

    def other(t):
        distance = t - t.mean(-1, keepdim=True)
        return (
            distance / tenon.sqrt((distance * distance).mean(-1, keepdim=True) + 1e-5) * wide + bias
        )

    program = tenon.export(other, t, numerics="fast")
    assert "layer_norm_scaled" not in program.changes() and "multiply" in str(program)
    np.testing.assert_allclose(program(t).numpy(), other(t).numpy(), rtol=1e-4, atol=1e-5)


def test_in_branches_and_loops():
    def function(t):
        return tenon.jit.cond(t.sum() > 0, lambda s: s * tenon.sigmoid(s), lambda s: s * 2, t)

    program = tenon.export(function, x, numerics="ulp")
    assert program.changes().startswith("silu: ")
    for given in (x, -x):
        np.testing.assert_allclose(program(given).numpy(), function(given).numpy(), rtol=1e-6)


def test_what_was_rewritten_is_saved(tmp_path):
    program = tenon.export(_gelu, x, numerics="fast")
    program.save(tmp_path / "gelu.tenon")
    loaded = tenon.jit.load(tmp_path / "gelu.tenon")
    assert loaded(x).numpy().tobytes() == program(x).numpy().tobytes()


def test_bisect_names_the_rewrite():
    def function(t):
        return _gelu(t * tenon.sigmoid(t)) + 1

    close = graph.bisect(
        function,
        x,
        numerics="fast",
        is_right=lambda y: np.allclose(y.numpy(), function(x).numpy(), rtol=1e-5),
    )
    assert close.culprit is None
    with added("marked", "x + 1", "x + 1.0000001", numerics="fast", units=4, dtypes=["float32"]):
        found = graph.bisect(lambda t: tenon.exp(t) + 1, x, numerics="fast")
    assert found.culprit == "rewrites: marked", str(found)
    assert str(found).endswith("WRONG  rewrites: marked\nrewrites: marked changes the results")
    assert found.program.changes() == ""


def test_bisect_finds_nothing_where_nothing_is_wrong():
    found = graph.bisect(lambda t: tenon.negative(tenon.negative(t)) * 2, x)
    assert found.culprit is None and all(is_right for _, is_right in found.steps)
    assert str(found).endswith("no pass changes the results")
