# SPDX-License-Identifier: Apache-2.0
"""Operators of single elements that take more than one node of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenon.onnx.exporter import lines
from tenon.onnx.exporter.converters import exports
from tenon.onnx.exporter.program_text import Step, Value
from tenon.onnx.exporter.writer import FLOATING, INTEGERS, Refusal, Writer, tensors_of


class Elements:
    """Arithmetic on names, in one dtype: numbers among the arguments become constants."""

    def __init__(self, g: Writer, dtype: str) -> None:
        self.g, self.dtype = g, dtype

    def __getattr__(self, op: str) -> Callable[..., str]:
        def call(*arguments: str | float | bool, **attributes: Any) -> str:
            names = [
                each if isinstance(each, str) else self.g.constant(each, self.dtype)
                for each in arguments
            ]
            return self.g.node(op, *names, **attributes)

        return call


def _math(g: Writer, step: Step) -> tuple[Elements, list[str]]:
    """What computes in the dtype of the result, and the operands so."""
    dtype = step.results[0].dtype
    operands = [*step.operands, *step.named.values()]
    step.read |= set(step.named)
    return Elements(g, dtype), [g.operand(each, dtype) for each in operands]


# Expressions in the operands, which are x, and y and z where there are more.
_EXPRESSIONS: dict[str, Callable[..., str]] = {
    "silu": lambda m, x: m.Mul(x, m.Sigmoid(x)),
    "hardsigmoid": lambda m, x: m.HardSigmoid(x, alpha=1 / 6, beta=0.5),
    "log_sigmoid": lambda m, x: m.Neg(m.Softplus(m.Neg(x))),
    "tanhshrink": lambda m, x: m.Sub(x, m.Tanh(x)),
    "exp2": lambda m, x: m.Pow(2.0, x),
    "rsqrt": lambda m, x: m.Reciprocal(m.Sqrt(x)),
    "square": lambda m, x: m.Mul(x, x),
    "divide": lambda m, x, y: m.Div(x, y),
    "flat_sqrt": lambda m, x: m.Sqrt(x),
    "deg2rad": lambda m, x: m.Mul(x, math.pi / 180),
    "rad2deg": lambda m, x: m.Mul(x, 180 / math.pi),
    "log2": lambda m, x: m.Div(m.Log(x), math.log(2)),
    "log10": lambda m, x: m.Div(m.Log(x), math.log(10)),
    "erfc": lambda m, x: m.Sub(1.0, m.Erf(x)),
    "ndtr": lambda m, x: m.Mul(0.5, m.Add(1.0, m.Erf(m.Mul(x, math.sqrt(0.5))))),
    "lerp": lambda m, x, y, z: m.Add(x, m.Mul(z, m.Sub(y, x))),
    "xlogy": lambda m, x, y: m.g.node(
        "Where",
        m.g.node("And", m.Equal(x, 0.0), m.g.node("Not", m.IsNaN(y))),
        m.Mul(x, 0.0),
        m.Mul(x, m.Log(y)),
    ),
    "fmax": lambda m, x, y: m.g.node(
        "Where", m.IsNaN(x), y, m.g.node("Where", m.IsNaN(y), x, m.Max(x, y))
    ),
    "fmin": lambda m, x, y: m.g.node(
        "Where", m.IsNaN(x), y, m.g.node("Where", m.IsNaN(y), x, m.Min(x, y))
    ),
    "prelu": lambda m, x, y: m.g.node("Where", m.Greater(x, 0.0), x, m.Mul(x, y)),
}
_OF_FLOATS = {name for name in _EXPRESSIONS if name not in ("square", "fmax", "fmin")}


def _expression(name: str) -> Any:
    def convert(g: Writer, step: Step) -> str:
        if name in _OF_FLOATS and step.results[0].dtype not in FLOATING:
            raise Refusal(f"of {step.results[0].dtype}; cast to float32")
        m, operands = _math(g, step)
        return _EXPRESSIONS[name](m, *operands)

    return convert


for _name in _EXPRESSIONS:
    exports(_name)(_expression(_name))


@exports("selu")
def _selu(g: Writer, step: Step) -> str:
    return g.node("Selu", g.operand(step.operands[0], step.results[0].dtype))


@exports("gelu")
def _gelu(g: Writer, step: Step) -> str:
    line = lines.find(step.op, g.opset)
    if line:
        return lines.write(line, g, step)
    m = Elements(g, step.results[0].dtype)
    x = g.operand(step.operands[0], m.dtype)
    if step.given(1, "approximate", False):
        cubed = m.Mul(m.Mul(x, x), x)
        inner = m.Mul(math.sqrt(2 / math.pi), m.Add(x, m.Mul(0.044715, cubed)))
        return m.Mul(m.Mul(0.5, x), m.Add(1.0, m.Tanh(inner)))
    return m.Mul(m.Mul(0.5, x), m.Add(1.0, m.Erf(m.Mul(x, math.sqrt(0.5)))))


@exports("softplus")
def _softplus(g: Writer, step: Step) -> str:
    m = Elements(g, step.results[0].dtype)
    x = g.operand(step.operands[0], m.dtype)
    beta = float(step.given(1, "beta", 1.0))
    return m.Softplus(x) if beta == 1 else m.Div(m.Softplus(m.Mul(x, beta)), beta)


@exports("pow")
def _pow(g: Writer, step: Step) -> str:
    dtype = step.results[0].dtype
    if dtype == "bool":
        raise Refusal("of bool; cast to int64")
    return g.node("Pow", *(g.operand(step.given(i, name), dtype) for i, name in enumerate("xy")))


def _of_two(name: str, of_bool: str) -> Any:
    def convert(g: Writer, step: Step) -> str:
        dtype = step.results[0].dtype
        operands = [g.operand(step.given(i, key), dtype) for i, key in enumerate("xy")]
        return g.node(of_bool if dtype == "bool" else name, *operands)

    return convert


exports("maximum")(_of_two("Max", "Or"))
exports("minimum")(_of_two("Min", "And"))
exports("subtract")(_of_two("Sub", "Xor"))


@exports("clip_range", "clip_below", "clip_above", "hardtanh")
def _clip(g: Writer, step: Step) -> str:
    dtype = step.results[0].dtype
    low_name, high_name = ("min", "max") if step.op == "tenon::hardtanh" else ("low", "high")
    both = step.op in ("tenon::clip_range", "tenon::hardtanh")
    standard = (-1.0, 1.0) if step.op == "tenon::hardtanh" else (None, None)
    x = g.operand(step.given(0, "x"), dtype)
    if step.op != "tenon::clip_above":
        x = g.node("Max", x, g.operand(step.given(1, low_name, standard[0]), dtype))
    if step.op != "tenon::clip_below":
        high = step.given(2 if both else 1, high_name, standard[1])
        x = g.node("Min", x, g.operand(high, dtype))
    return x


@exports("not_equal")
def _not_equal(g: Writer, step: Step) -> str:
    to = lines.promoted(step)
    return g.node(
        "Not", g.node("Equal", *(g.operand(step.given(i, n), to) for i, n in enumerate("xy")))
    )


@exports("isinf", "isposinf", "isneginf", "isfinite")
def _infinities(g: Writer, step: Step) -> str:
    value = step.operands[0]
    x = g.name(value)
    if value.dtype not in FLOATING:
        raise Refusal(f"of {value.dtype}, which holds no infinities; leave it out")
    if value.dtype not in ("float32", "float64"):
        x = g.cast(x, value.dtype, "float32")
    match step.op:
        case "tenon::isposinf":
            return g.node("IsInf", x, detect_negative=0)
        case "tenon::isneginf":
            return g.node("IsInf", x, detect_positive=0)
        case "tenon::isfinite":
            return g.node("Not", g.node("Or", g.node("IsInf", x), g.node("IsNaN", x)))
    return g.node("IsInf", x)


@exports("cast")
def _cast(g: Writer, step: Step) -> str:
    value, to = step.operands[0], step.results[0].dtype
    return (
        g.node("Identity", g.name(value))
        if value.dtype == to
        else g.cast(g.name(value), value.dtype, to)
    )


@exports("masked_fill")
def _masked_fill(g: Writer, step: Step) -> str:
    x, mask, value = (step.given(i, n) for i, n in enumerate(("x", "mask", "value")))
    dtype = step.results[0].dtype
    return g.node("Where", g.operand(mask, "bool"), g.operand(value, dtype), g.operand(x, dtype))


@exports("remainder", "fmod", "floor_divide")
def _remainders(g: Writer, step: Step) -> str:
    m, (x, y) = _math(g, step)
    if m.dtype not in (*FLOATING, "int32", "int64", "int8", "int16"):
        raise Refusal(f"of {m.dtype}; cast to int64")
    if step.op == "tenon::fmod":
        return m.Mod(x, y, fmod=1)
    # Of the divisor's sign; the quotient that belongs to it is exact for integers.
    if m.dtype not in FLOATING:
        rest = m.Mod(x, y)
        return rest if step.op == "tenon::remainder" else m.Div(m.Sub(x, rest), y)
    if step.op == "tenon::floor_divide":
        raise Refusal("of floats; use tenon.floor(x / y)")
    rest = m.Mod(x, y, fmod=1)
    differs = g.node("Xor", m.Less(rest, 0.0), m.Less(y, 0.0))
    moves = g.node("And", differs, g.node("Not", m.Equal(rest, 0.0)))
    return g.node("Where", moves, m.Add(rest, y), rest)


@exports("log1p", "expm1")
def _near_zero(g: Writer, step: Step) -> str:
    """Kahan's forms: rounding `1 + x`, or `exp(x)`, is undone by the function of what was rounded."""
    m, (x,) = _math(g, step)
    if m.dtype not in ("float32", "float64"):
        raise Refusal(f"of {m.dtype}; cast to float32")
    if step.op == "tenon::log1p":
        u = m.Add(1.0, x)
        y = m.Div(m.Mul(m.Log(u), x), m.Sub(u, 1.0))
        y = g.node("Where", g.node("IsInf", u), m.Log(u), y)
        return g.node("Where", m.Equal(u, 1.0), x, y)
    u = m.Exp(x)
    y = m.Div(m.Mul(m.Sub(u, 1.0), x), m.Log(u))
    is_edge = g.node("Or", g.node("IsInf", u), m.Equal(m.Sub(u, 1.0), -1.0))
    return g.node("Where", m.Equal(u, 1.0), x, g.node("Where", is_edge, m.Sub(u, 1.0), y))


@exports("sign")
def _sign(g: Writer, step: Step) -> str:
    value = step.operands[0]
    return g.node("Identity" if value.dtype == "bool" else "Sign", g.name(value))


@exports("trunc", "frac")
def _trunc(g: Writer, step: Step) -> str:
    value = step.operands[0]
    m = Elements(g, value.dtype)
    x = g.name(value)
    if value.dtype not in FLOATING:
        if step.op == "tenon::frac":
            raise Refusal(f"of {value.dtype}; cast to float32")
        return g.node("Identity", x)
    whole = m.Mul(m.Sign(x), m.Floor(m.Abs(x)))
    return whole if step.op == "tenon::trunc" else m.Sub(x, whole)


@exports("threshold")
def _threshold(g: Writer, step: Step) -> str:
    m = Elements(g, step.results[0].dtype)
    x = g.operand(step.operands[0], m.dtype)
    above = m.Greater(x, float(step.given(1, "limit")))
    return g.node("Where", above, x, g.constant(step.given(2, "value"), m.dtype))


@exports("bitwise_left_shift", "bitwise_right_shift")
def _shift(g: Writer, step: Step) -> str:
    m, (x, y) = _math(g, step)
    if m.dtype not in INTEGERS or not m.dtype.startswith("u"):
        raise Refusal(f"of {m.dtype}: ONNX shifts unsigned integers alone; cast to uint64")
    return g.node("BitShift", x, y, direction="LEFT" if "left" in step.op else "RIGHT")


@exports("real", "conj", "clone", "stop_gradient", "imag")
def _same(g: Writer, step: Step) -> str:
    value = tensors_of(step)[0]
    if step.op == "tenon::imag" or value.dtype.startswith("complex"):
        raise Refusal("ONNX has no operators of complex tensors; compute with both parts")
    return g.node("Identity", g.name(value))


@exports("expect_between")
def _expect_between(g: Writer, step: Step) -> str:
    """A check, which has no form; ONNX's operators check indices themselves."""
    value = step.operands[0]
    assert isinstance(value, Value)
    if not step.given(5, "is_index", False):
        raise Refusal(
            f"it checks {step.given(4, 'what')} of {step.given(3, 'op')}, and ONNX has no checks of data; "
            "leave the operator out of what is exported"
        )
    return g.node("Identity", g.name(value))
