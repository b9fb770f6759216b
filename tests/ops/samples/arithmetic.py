# SPDX-License-Identifier: Apache-2.0
"""Element-by-element operators: mathematics, comparison, logic, activation."""

import math

import numpy as np
from case import Case, booleans, integers, normal, spread

# name: (NumPy function, lowest and highest argument)
UNARY = {
    "negative": (np.negative, -3, 3),
    "positive": (np.positive, -3, 3),
    "abs": (np.abs, 0.2, 3),
    "sign": (np.sign, 0.2, 3),
    "square": (np.square, -3, 3),
    "reciprocal": (np.reciprocal, 0.5, 3),
    "exp": (np.exp, -3, 3),
    "exp2": (np.exp2, -3, 3),
    "expm1": (np.expm1, -3, 3),
    "log": (np.log, 0.2, 5),
    "log2": (np.log2, 0.2, 5),
    "log10": (np.log10, 0.2, 5),
    "log1p": (np.log1p, -0.5, 5),
    "sqrt": (np.sqrt, 0.2, 5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.2, 5),
    "cbrt": (np.cbrt, 0.2, 5),
    "sin": (np.sin, -3, 3),
    "cos": (np.cos, -3, 3),
    "tan": (np.tan, -1, 1),
    "asin": (np.arcsin, -0.8, 0.8),
    "acos": (np.arccos, -0.8, 0.8),
    "atan": (np.arctan, -3, 3),
    "sinh": (np.sinh, -2, 2),
    "cosh": (np.cosh, -2, 2),
    "tanh": (np.tanh, -2, 2),
    "asinh": (np.arcsinh, -3, 3),
    "acosh": (np.arccosh, 1.2, 4),
    "atanh": (np.arctanh, -0.8, 0.8),
    "erf": (np.vectorize(math.erf, otypes=[float]), -2, 2),
    "erfc": (np.vectorize(math.erfc, otypes=[float]), -2, 2),
    "lgamma": (np.vectorize(math.lgamma, otypes=[float]), 0.5, 4),
    "floor": (np.floor, 0.1, 0.9),
    "ceil": (np.ceil, 0.1, 0.9),
    "round": (np.round, 0.1, 0.4),
    "trunc": (np.trunc, 0.1, 0.9),
    "frac": (lambda x: x - np.trunc(x), 0.1, 0.9),
    "isnan": (np.isnan, -3, 3),
    "isinf": (np.isinf, -3, 3),
    "isfinite": (np.isfinite, -3, 3),
    "signbit": (np.signbit, -3, 3),
    "logical_not": (np.logical_not, -3, 3),
    "nan_to_num": (np.nan_to_num, -3, 3),
    "real": (np.real, -3, 3),
    "imag": (np.imag, -3, 3),
    "conj": (np.conj, -3, 3),
    "contiguous": (lambda x: x, -3, 3),
    "clone": (lambda x: x, -3, 3),
}
BOOLEAN = {"isnan", "isinf", "isfinite", "signbit", "logical_not"}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def gelu(x, approximate=False):
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# By order, at 0.5, 1, 2.5, -0.3 and -2.75, from 50 digits.
POLYGAMMA = {
    1: [
        4.934802200544679,
        1.6449340668482264,
        0.49035775610023485,
        13.945160267805722,
        19.433868949488463,
    ],
    2: [
        -16.82879664423432,
        -2.4041138063191885,
        -0.2362040516417274,
        67.63908119988317,
        -124.11765305971518,
    ],
    3: [
        97.40909103400244,
        6.493939402266829,
        0.22390584881725206,
        766.6198904191685,
        1558.4897512832936,
    ],
}

# Points far from every kink.
_points = np.array([[-3.7, -2.2, -1.3, -0.7, -0.2], [0.3, 0.8, 1.4, 2.6, 4.1]])
_seven = np.array([[-3.7, -2.2, -1.3, -0.7, -0.2], [0.3, 0.8, 1.4, 2.6, 7.1]])
ACTIVATIONS = [
    Case("relu", (_points,), reference=lambda x: np.maximum(x, 0)),
    Case("relu6", (_seven,), reference=lambda x: np.clip(x, 0, 6)),
    Case("leaky_relu", (_points, 0.1), reference=lambda x, s: np.where(x > 0, x, s * x)),
    Case("prelu", (_points, normal(5)), reference=lambda x, w: np.where(x > 0, x, w * x)),
    Case("elu", (_points, 1.5), reference=elu),
    Case("selu", (_points,), reference=lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    Case("celu", (_points, 1.5), reference=lambda x, a: elu(x / a) * a),
    Case("sigmoid", (_points,), reference=sigmoid),
    Case("log_sigmoid", (_points,), reference=lambda x: np.log(sigmoid(x))),
    Case("silu", (_points,), reference=lambda x: x * sigmoid(x)),
    Case("gelu", (_points,), reference=gelu),
    Case("gelu", (_points, True), reference=gelu, label="tanh"),
    Case("mish", (_points,), reference=lambda x: x * np.tanh(softplus(x))),
    Case("softplus", (_points, 1.5), reference=lambda x, b: softplus(b * x) / b),
    Case("softsign", (_points,), reference=lambda x: x / (1 + np.abs(x))),
    Case("hardtanh", (_points,), reference=lambda x: np.clip(x, -1, 1)),
    Case("hardsigmoid", (_points,), reference=lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    Case("hardswish", (_points,), reference=lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    Case("hardshrink", (_points,), reference=lambda x: np.where(np.abs(x) <= 0.5, 0, x)),
    Case(
        "softshrink",
        (_points,),
        reference=lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    ),
    Case("tanhshrink", (_points,), reference=lambda x: x - np.tanh(x)),
    Case("glu", (normal(2, 6),), reference=lambda x: x[:, :3] * sigmoid(x[:, 3:])),
    Case("glu", (normal(4, 3), 0), reference=lambda x, a: x[:2] * sigmoid(x[2:]), label="rows"),
    Case("softmax", (normal(3, 4),), reference=softmax),
    Case("softmax", (normal(3, 4, 2), 1), reference=softmax, label="middle"),
    Case("log_softmax", (normal(3, 4),), reference=lambda x: np.log(softmax(x))),
    Case(
        "log_softmax", (normal(3, 4), 0), reference=lambda x, a: np.log(softmax(x, a)), label="rows"
    ),
]

# name: (NumPy function, x, y)
_x, _y = spread(3, 4), spread(3, 4) + 0.04
BINARY = {
    "add": (np.add, normal(3, 4), normal(3, 4)),
    "subtract": (np.subtract, normal(3, 4), normal(3, 4)),
    "multiply": (np.multiply, normal(3, 4), normal(3, 4)),
    "divide": (np.divide, normal(3, 4), normal(3, 4, low=0.5, high=2)),
    "pow": (np.power, normal(3, 4, low=0.5, high=2), normal(3, 4)),
    "maximum": (np.maximum, _x, _y),
    "minimum": (np.minimum, _x, _y),
    "fmax": (np.fmax, _x, _y),
    "fmin": (np.fmin, _x, _y),
    "floor_divide": (np.floor_divide, np.array([2.5, -2.5, 7.1]), np.array([1.2, 1.2, 2.0])),
    "remainder": (np.remainder, np.array([2.5, -2.5, 7.1]), np.array([1.2, 1.2, -2.0])),
    "fmod": (np.fmod, np.array([2.5, -2.5, 7.1]), np.array([1.2, 1.2, -2.0])),
    "copysign": (np.copysign, normal(3, 4, low=0.5, high=2), normal(3, 4)),
    "nextafter": (np.nextafter, normal(3, 4), normal(3, 4)),
    "hypot": (np.hypot, normal(3, 4, low=0.5, high=2), normal(3, 4, low=0.5, high=2)),
    "atan2": (np.arctan2, normal(3, 4, low=0.5, high=2), normal(3, 4, low=0.5, high=2)),
    "logaddexp": (np.logaddexp, normal(3, 4), normal(3, 4)),
    "xlogy": (lambda x, y: x * np.log(y), normal(3, 4), normal(3, 4, low=0.5, high=2)),
}
COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
BITWISE = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
# Why a case has no gradient.
TRUTH = "its results are truth values"
STEPS = "it is a step function: its gradient is zero where there is one"
NOT_DIFFERENTIABLE = {"nextafter"}

_bounds = (normal(4, low=-1, high=-0.3), normal(3, 1, low=0.3, high=1))
CASES = [
    *(
        Case(
            name,
            (normal(3, 4, low=low, high=high),),
            reference=function,
            grad=() if name in BOOLEAN else None,
            why=TRUTH if name in BOOLEAN else "",
            rtol=1e-10,
        )
        for name, (function, low, high) in UNARY.items()
    ),
    *(
        Case(
            name,
            (x, y),
            reference=function,
            grad=() if name in NOT_DIFFERENTIABLE else None,
            why=STEPS if name in NOT_DIFFERENTIABLE else "",
        )
        for name, (function, x, y) in BINARY.items()
    ),
    *(
        Case(
            name,
            (x, y),
            reference=function,
            label="broadcast",
            grad=() if name in NOT_DIFFERENTIABLE else None,
            why=STEPS if name in NOT_DIFFERENTIABLE else "",
        )
        for name, (function, x, y) in (
            (name, (function, x, y[:1, :2] if y.ndim == 2 else y[:1]))
            for name, (function, x, y) in BINARY.items()
        )
        for x in [x[:, :1] if x.ndim == 2 else x]
    ),
    *(
        Case(name, (integers(0, 3, 3, 4), integers(0, 3, 4)), reference=f)
        for name, f in COMPARE.items()
    ),
    *(
        Case(name, (integers(-9, 9, 3, 4), integers(-9, 9, 4)), reference=f)
        for name, f in BITWISE.items()
    ),
    *(
        Case(name, (booleans(3, 4), booleans(4)), reference=f, label="bool")
        for name, f in BITWISE.items()
    ),
    Case("bitwise_invert", (integers(-9, 9, 3),), reference=np.invert),
    Case("bitwise_invert", (booleans(3),), reference=np.invert, label="bool"),
    Case("bitwise_left_shift", (integers(0, 9, 3), integers(0, 5, 3)), reference=np.left_shift),
    Case(
        "bitwise_right_shift", (integers(-99, 99, 3), integers(0, 5, 3)), reference=np.right_shift
    ),
    Case("pow", (normal(3, 4), 3), reference=np.power, label="int exponent"),
    Case("pow", (normal(3, 4), 0), reference=np.power, label="zero exponent"),
    Case("pow", (normal(3, 4, low=0.5, high=2), 2.5), reference=np.power, label="float exponent"),
    Case("pow", (2.0, normal(3)), reference=np.power, label="number base"),
    Case(
        "add",
        (integers(0, 9, 3), 2.5),
        reference=lambda x, y: (x + y).astype(np.float32),
        label="weak",
    ),
    Case("add", (booleans(3), booleans(3)), reference=np.add, label="bool"),
    Case("multiply", (booleans(3), booleans(3)), reference=np.multiply, label="bool"),
    Case(
        "digamma",
        (np.array([0.5, 1.0, 2.5]),),
        reference=lambda x: np.array(
            [-1.9635100260214235, -0.5772156649015329, 0.7031566406452432]
        ),
        rtol=1e-9,
    ),
    *(
        Case(
            "polygamma",
            (n, np.array([0.5, 1.0, 2.5, -0.3, -2.75])),
            reference=lambda n, x: np.array(POLYGAMMA[n]),
            label=f"order {n}",
            rtol=1e-11,
        )
        for n in (1, 2, 3)
    ),
    Case("clip", (spread(3, 4), *_bounds), reference=np.clip),
    Case("clip", (spread(3, 4), -0.31, 0.33), reference=np.clip, label="numbers"),
    Case("clip", (spread(3, 4), None, 0.33), reference=np.clip, label="above"),
    Case("clip", (spread(3, 4), None, spread(4) + 0.03), reference=np.clip, label="above a tensor"),
    Case("clip", (spread(3, 4), -0.31), reference=lambda x, low: np.maximum(x, low), label="below"),
    Case(
        "lerp", (normal(3, 4), normal(3, 4), normal(4)), reference=lambda x, y, w: x + w * (y - x)
    ),
    Case("where", (booleans(3, 4), normal(4), normal(3, 1)), reference=np.where),
    Case(
        "masked_fill",
        (normal(3, 4), booleans(4), normal(3, 1)),
        reference=lambda x, m, v: np.where(m, v, x),
        label="a tensor",
    ),
    Case(
        "masked_fill", (normal(3, 4), booleans(4), 2.0), reference=lambda x, m, v: np.where(m, v, x)
    ),
    Case(
        "isclose",
        (np.array([1.0, 2, np.nan, np.inf]), np.array([1 + 1e-9, 2.1, np.nan, np.inf])),
        reference=np.isclose,
        grad=(),
        why=TRUTH,
    ),
    Case(
        "allclose",
        (normal(3), normal(3)),
        reference=lambda x, y: np.asarray(np.allclose(x, y)),
        grad=(),
        why=TRUTH,
    ),
    Case(
        "cast",
        (normal(3, 4) * 4, "int32"),
        reference=lambda x, d: x.astype(d),
        grad=(),
        why="its results are integers",
        dtype="int32",
    ),
    Case(
        "stop_gradient",
        (normal(3),),
        reference=lambda x: x,
        grad=(),
        why="its gradient is not that of its values, which is its purpose",
    ),
    *ACTIVATIONS,
]
