# SPDX-License-Identifier: Apache-2.0
"""The lines of PyTorch's calls (opdefs/aten), without PyTorch."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
import tenon
from tenon import _core
from tenon.jit.foreign_calls import Refused, bound
from tenon.torch import _lines
from tenon.torch._lines import CALLS, CORE, NATIVE, PARAMETERS


def told(name, *arguments, **keywords):
    """The operator calls of an ATen call, as (operator, arguments, keywords)."""
    calls = []

    def add(operator, *args, **kwargs):
        calls.append((operator, args, kwargs))
        return f"value {len(calls)}"

    result = _lines.tell(add, name, arguments, keywords)
    return calls, result


def test_every_core_call_is_told_or_refused_with_a_reason():
    assert len(CORE) > 150
    assert [name for name in CORE if name not in CALLS] == []
    for name in CORE:
        reason = _lines.reason(name)
        assert reason is None or len(reason) > 10, name


def test_functions_of_the_bridge_are_there_and_take_the_lines_parameters():
    used = set()
    for name, call in CALLS.items():
        for case in call.cases:
            if not case.native:
                continue
            used.add(case.native)
            inspect.signature(NATIVE[case.native]).bind(None, **dict.fromkeys(call.names))
            assert {parameter.name for parameter in PARAMETERS[name]} >= set(call.names)
    assert set(NATIVE) == used


@pytest.mark.parametrize("includes_last", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_of_rows(mode, includes_last):
    weight = np.random.default_rng(0).normal(size=(6, 3)).astype("f4")
    indices, offsets = np.array([0, 2, 2, 5, 1]), np.array([0, 3, 3, *[5] * includes_last])
    builder = _core.ProgramBuilder(None)
    inputs = [builder.input(str(x.dtype), list(x.shape)) for x in (weight, indices, offsets)]
    (bags,) = _lines.tell(
        builder.call, "_embedding_bag", [*inputs, False, mode, False, None, includes_last, 5], {}
    )
    (got,) = builder.finish([bags]).run([tenon.tensor(x) for x in (weight, indices, offsets)])
    reduce = (np.sum, np.mean, np.max)[mode]
    want = [reduce(weight[[0, 2, 2]], 0), np.zeros(3), weight[1]]  # 5 does not count
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_a_line_by_position_and_by_case():
    assert told("relu", "x") == ([("relu", ("x",), {})], "value 1")
    assert told("add.Tensor", "x", "y")[0] == [("add", ("x", "y"), {})]
    assert told("add.Tensor", "x", "y", alpha=2)[0] == [
        ("multiply", ("y", 2), {}),
        ("add", ("x", "value 1"), {}),
    ]
    assert told("max.dim", "x", 1)[0] == [
        ("max", ("x", [1], False), {}),
        ("argmax", ("x", 1, False), {}),
    ]
    assert told("gelu", "x", approximate="tanh")[0] == [("gelu", ("x", True), {})]


class Number:
    """What the lines ask of a tensor."""

    def __init__(self, dtype, ndim):
        self.dtype, self.ndim = dtype, ndim


def test_parameters_count_whatever_they_are_called():
    assert told("nan_to_num", "x", 5.0)[0] == [("nan_to_num", ("x", 5.0, None, None), {})]
    assert told("nan_to_num", "x")[0] == [("nan_to_num", ("x", 0.0, None, None), {})]


def test_whole_quotients_stay_whole():
    x = Number("int64", 1)
    assert [name for name, _, _ in told("div.Tensor_mode", x, x, rounding_mode="trunc")[0]] == [
        "fmod",
        "subtract",
        "floor_divide",
    ]


def test_what_is_scaled_by_zero_is_not_read():
    calls, _ = told("addmm", "x", "a", "b", beta=0)
    assert calls == [
        ("zeros_like", ("x",), {}),
        ("addmm", ("value 1", "a", "b"), {"alpha": 1}),
    ]


def test_a_tensor_without_axes_gets_the_others_dtype_unless_its_kind_is_later():
    x, number = Number("float32", 1), Number("float64", 0)
    assert told("eq.Tensor", x, number)[0][0] == ("cast", (number, "float32"), {})
    assert told("eq.Tensor", number, x)[0][0] == ("cast", (number, "float32"), {})
    whole = Number("int32", 1)
    assert told("eq.Tensor", whole, number)[0] == [("equal", (whole, number), {})]
    assert told("add.Tensor", x, number)[0] == [("add", (x, number), {})]


def test_checks_hold_or_are_refused():
    assert told("_assert_scalar", True, "n is even") == ([], None)
    with pytest.raises(Refused, match="the model's check does not hold: n is even"):
        told("_assert_scalar", False, "n is even")
    with pytest.raises(Refused, match="a value that only a run knows"):
        told("_assert_scalar", "x", "n is even")


@pytest.mark.parametrize(
    ("name", "arguments", "keywords", "text"),
    [
        ("nonzero", ("x",), {}, "depends on data"),
        ("frobnicate", ("x",), {}, "there is no line for it"),
        (
            "avg_pool2d",
            ("x", [2, 2]),
            {"divisor_override": 3},
            "`divisor_override` is 3, and only None",
        ),
        ("elu", ("x", 1.0, 2.0), {}, "no case is for .*alpha=1.0, scale=2.0"),
        ("relu", ("x", "y"), {}, "expected at most 1 arguments, got 2"),
        ("relu", (), {}, "its argument `self` is missing"),
        ("relu", ("x",), {"other": 1}, "no parameter `other`"),
    ],
)
def test_what_is_refused(name, arguments, keywords, text):
    with pytest.raises(Refused, match=text):
        told(name, *arguments, **keywords)


def test_defaults_are_filled_in():
    values = bound(PARAMETERS["add.Tensor"], ("x", "y"), {})
    assert values == {"self": "x", "other": "y", "alpha": 1}


def test_importing_tenon_does_not_import_pytorch():
    program = "import sys, tenon, tenon.torch; assert 'torch' not in sys.modules; print('none')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "none\n"


def test_the_report_of_nothing():
    assert isinstance(tenon.torch.report(), list)
