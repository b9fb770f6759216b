# SPDX-License-Identifier: Apache-2.0
"""NumPy's universal functions: elementwise, of the dtype of the operands together, with `out`,
`where` and `dtype`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._spellings import SPELLINGS
from tenon.compat._out import check_out, deliver
from tenon.compat._signature import table
from tenon.compat._signed import bound
from tenon.compat.numpy._convert import (
    as_tensor,
    common_dtype,
    float_of,
    kind_of,
    promote,
    unified,
)

# The kinds that a function computes in: of b(ool), i(nteger), f(loat), c(omplex) the first that holds the operands;
# "?" behind them: the result is bool. NumPy's name is the operator's, or one of the names that `opdefs` says
# NumPy has for it; those that have a word of their own here have kinds of their own.
_KINDS = """
bifc: abs add fmax fmin maximum minimum multiply
fc: acos acosh asin asinh atan atanh cos cosh divide exp exp2 expm1 log log10 log1p log2 rint sin
    sinh sqrt tan tanh
f: atan2 cbrt copysign deg2rad rad2deg fabs heaviside hypot logaddexp logaddexp2 nextafter
bi: bitwise_and bitwise_invert bitwise_or bitwise_xor
i: bitwise_left_shift bitwise_right_shift gcd lcm
bif: ceil floor trunc
ifc: conj negative positive pow sign square subtract
bifc?: equal greater greater_equal isfinite isinf isnan less less_equal logical_and logical_not
    logical_or logical_xor not_equal
if: floor_divide fmod remainder
f?: signbit
"""

# Of these NumPy has no loop for bool, though one of int8 would hold it.
_NOT_OF_BOOL = {"negative", "positive", "subtract", "sign"}
_NO_UNIVERSAL_FUNCTIONS = {"fix"}  # though NumPy's name for an operator that is one
# Of bool these are what they are given.
_OF_BOOL_ITSELF = {"abs", "ceil", "floor", "trunc"}
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_BINARY = set(
    """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot lcm less less_equal logaddexp logaddexp2
    logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract""".split()
)

_ONE = "x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None"
_TWO = _ONE.replace("x,", "x1, x2,")
_PAIR = "out=(None, None)"
_SIGNATURES = table(
    f"""one({_ONE})
    two({_TWO})
    one_and_two({_ONE.replace("out=None", _PAIR)})
    two_and_two({_TWO.replace("out=None", _PAIR)})"""
)


def computed_dtype(name: str, kinds: str, dtype: Any) -> Any:
    """The dtype that a function of `kinds` computes operands of `dtype` in."""
    kind = kind_of(dtype)
    if kind == "b" and name in _NOT_OF_BOOL:
        raise TypeError(
            f"tenon.compat.numpy.{name}(): expected numbers, got bool; NumPy has logical_not() and "
            f"logical_xor() for these"
        )
    if kind in kinds:
        return dtype
    if kind == "b" and "i" in kinds:
        return _core.int8
    if kind in "bi" and "f" in kinds:
        return float_of(dtype)
    if kind == "f" and "c" in kinds:
        return promote(dtype, _core.complex64)
    words = {"b": "bool", "i": "whole numbers", "f": "floats", "c": "complex numbers"}
    allowed = " or ".join(words[each] for each in kinds)
    raise TypeError(f"tenon.compat.numpy.{name}(): expected {allowed}, got {dtype}")


def _cast_once(name: str, dtype: Any, given: list[Any]) -> Any:
    """What `dtype=` names, checked: operands go there without changing their kind downwards."""
    wanted = {float: _core.float64, complex: _core.complex128, int: _core.int64}.get(dtype, dtype)
    wanted = _core.dtype(wanted)
    found = common_dtype(given)
    if "bifc".index(kind_of(found)) > "bifc".index(kind_of(wanted)):
        raise TypeError(
            f"tenon.compat.numpy.{name}(): expected a dtype that holds {found}, got {wanted}"
        )
    return wanted


def _made(name: str, operator: str, kinds: str) -> Callable[..., Any]:
    is_predicate = kinds.endswith("?")
    kinds = kinds.rstrip("?")

    def compute(*given: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
        if dtype is None or is_predicate:
            if dtype is not None and _core.dtype(dtype).name != "bool":
                raise TypeError(f"tenon.compat.numpy.{name}(): expected dtype bool, got {dtype}")
            found = _of_comparison(given) if operator in _COMPARISONS else common_dtype(given)
            if kind_of(found) == "i" and "i" not in kinds and operator != "divide":
                found = _of_floats(given)
        else:
            found = _cast_once(name, dtype, list(given))
        wanted = computed_dtype(name, kinds, found)
        values = unified(given, wanted)
        if operator == "pow" and wanted.is_integer and bool((values[1] < 0).any()):
            raise ValueError(
                f"tenon.compat.numpy.{name}(): expected powers of whole numbers to be at least 0, "
                f"got a negative one; make one of them a float"
            )
        if wanted == tenon.bool and operator in _OF_BOOL_ITSELF:
            return written(name, values[0].clone(), out, where)
        result = _core.operator(operator)(*values)
        if not is_predicate and result.dtype != wanted and not wanted.is_complex:
            result = result.to(dtype=wanted)
        return written(name, result, out, where)

    if operator in _BINARY:

        def two(x1: Any, x2: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
            return compute(x1, x2, out=out, where=where, dtype=dtype)

        two.__doc__ = f"tenon.{operator}."
        return named(name, two, "two")

    def one(x: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
        return compute(x, out=out, where=where, dtype=dtype)

    one.__doc__ = f"tenon.{operator}."
    return named(name, one, "one")


def named(name: str, function: Callable[..., Any], operands: str) -> Callable[..., Any]:
    """`function` of one or two operands behind the signature of all of these functions."""
    function.__name__ = function.__qualname__ = name
    return bound(f"tenon.compat.numpy.{name}", _SIGNATURES[operands], function)


def _of_floats(given: tuple[Any, ...]) -> Any:
    """The float that holds each of several whole numbers, which are not taken together first."""
    weak = (bool, int, float, complex)
    strong = [each for each in given if type(each) not in weak] or list(given)
    result = _core.float16
    for each in strong:
        result = promote(result, float_of(as_tensor(each).dtype))
    return result


def _of_comparison(given: tuple[Any, ...]) -> Any:
    """The dtype to compare in: one of Python's integers may be beyond what the other holds."""
    wanted = common_dtype(given)
    if wanted.is_integer:
        for each in given:
            if type(each) is int and not -(2**7) <= each < 2**7:
                return promote(wanted, as_tensor(each).dtype)
    return wanted


def written(name: str, result: Tensor, out: Any, where: Any) -> Tensor:
    """`result`, in `out` if that is given, and there only where the mask holds."""
    if out is None or (isinstance(out, tuple) and all(each is None for each in out)):
        if where is not True:
            raise TypeError(
                f"tenon.compat.numpy.{name}(): expected `out` beside `where`, which says what the "
                f"elements are where the mask does not hold"
            )
        return result
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if isinstance(target, Tensor):
        if tuple(target.shape) != tuple(result.shape):
            result = _core.operator("expand")(result, tuple(target.shape))
        if where is not True:
            check_out(f"tenon.compat.numpy.{name}", result, target)
            mask = as_tensor(where).to(dtype=tenon.bool)
            result = _core.operator("where")(mask, result.to(dtype=target.dtype), target)
    return deliver(f"tenon.compat.numpy.{name}", result, target)


def _all_made() -> dict[str, Callable[..., Any]]:
    kinds = {}
    for line in _KINDS.replace("\n    ", " ").strip().splitlines():
        of, _, names = line.partition(":")
        kinds.update(dict.fromkeys(names.split(), of))
    operators = {name: SPELLINGS["numpy"].get(name, name) for name in kinds}
    for name, operator in SPELLINGS["numpy"].items():
        if operator in kinds and name not in kinds and name not in _NO_UNIVERSAL_FUNCTIONS:
            kinds[name], operators[name] = kinds[operator], operator
    return {name: _made(name, operators[name], of) for name, of in kinds.items()}


FUNCTIONS = _all_made()
globals().update(FUNCTIONS)


def _reciprocal(x: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Tensor:
    """1 / x; of whole numbers the whole part."""
    wanted = common_dtype([x]) if dtype is None else _cast_once("reciprocal", dtype, [x])
    wanted = computed_dtype("reciprocal", "ifc", wanted)
    value = as_tensor(x, wanted)
    if wanted.is_integer:
        result = _core.operator("where")(
            value.abs() == 1, value, _core.operator("zeros_like")(value)
        )
    else:
        result = _core.operator("reciprocal")(value)
    return written("reciprocal", result, out, where)


def _float_power(x1: Any, x2: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Tensor:
    """Powers in float64 or complex128."""
    found = common_dtype([x1, x2]) if dtype is None else _core.dtype(dtype)
    values = unified([x1, x2], promote(found, _core.float64))
    return written("float_power", _core.operator("pow")(*values), out, where)


def _ldexp(x1: Any, x2: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Tensor:
    """x1 * 2**x2."""
    power = as_tensor(x2)
    # One of Python's numbers takes the dtype of the function's first loop beside an array.
    is_weak = type(x1) in (bool, int, float) and type(x2) is not int and power.dtype.is_integer
    x = as_tensor(x1, _core.float16) if is_weak and dtype is None else as_tensor(x1)
    if not power.dtype.is_integer and power.dtype.name != "bool":
        raise TypeError(
            f"tenon.compat.numpy.ldexp(): expected whole numbers for x2, got {power.dtype}"
        )
    found = x.dtype if dtype is None else _cast_once("ldexp", dtype, [x1])
    wanted = computed_dtype("ldexp", "f", found)
    result = _core.operator("ldexp")(x.to(dtype=wanted), power)
    return written("ldexp", result.to(dtype=wanted), out, where)


def _bitwise_count(x: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Tensor:
    """The number of ones in the absolute value, as uint8."""
    if dtype is not None and _core.dtype(dtype) != _core.uint8:
        raise TypeError(f"tenon.compat.numpy.bitwise_count(): expected dtype uint8, got {dtype}")
    value = as_tensor(x)
    value = value.to(dtype=computed_dtype("bitwise_count", "i", value.dtype))
    rest = value.abs() if value.dtype.name.startswith("int") else value
    count = _core.operator("zeros_like")(rest)
    # The absolute value of the lowest number is itself: shifts must not carry its sign along.
    mask = as_tensor(2 ** (8 * value.dtype.itemsize - 1) - 1, value.dtype)
    for _ in range(8 * value.dtype.itemsize):
        count = count + (rest & 1)
        rest = (rest >> 1) & mask
    return written("bitwise_count", count.to(dtype=_core.uint8), out, where)


def _divmod(x1: Any, x2: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Floor division and its remainder."""
    divided = FUNCTIONS["floor_divide"](x1, x2, dtype=dtype)
    return divided, FUNCTIONS["remainder"](x1, x2, dtype=dtype)


def _modf(x: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Fraction and whole part, both with the sign of the number."""
    wanted = computed_dtype("modf", "f", common_dtype([x]))
    value = as_tensor(x, wanted if dtype is None else _cast_once("modf", dtype, [x]))
    whole, where = _core.operator("trunc")(value), _core.operator("where")
    zero = _core.operator("zeros_like")(value)
    fraction = where(_core.operator("isinf")(value), zero, value - whole)
    return _core.operator("copysign")(fraction, value), whole


def _frexp(x: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Mantissa, from 1/2 to below 1, and exponent of two, as int32."""
    wanted = computed_dtype("frexp", "f", common_dtype([x]))
    value = as_tensor(x, wanted if dtype is None else _cast_once("frexp", dtype, [x]))
    mantissa, exponent = _core.operator("frexp")(value)
    return mantissa.to(dtype=value.dtype), exponent.to(dtype=_core.int32)


reciprocal = named("reciprocal", _reciprocal, "one")
float_power = named("float_power", _float_power, "two")
ldexp = named("ldexp", _ldexp, "two")
bitwise_count = named("bitwise_count", _bitwise_count, "one")

divmod = named("divmod", _divmod, "two_and_two")
modf = named("modf", _modf, "one_and_two")
frexp = named("frexp", _frexp, "one_and_two")

_WRITTEN = "reciprocal float_power ldexp bitwise_count divmod modf frexp".split()
__all__ = sorted({*FUNCTIONS, *_WRITTEN})
