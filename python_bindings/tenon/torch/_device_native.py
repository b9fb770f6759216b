# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch that have no line because a program could not have them: shapes that depend on data, random numbers from the
device's generators, writes.

Each takes `call`, which runs an operator, and the call's arguments by position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenon.jit.foreign_calls import Refused
from tenon.torch import _native
from tenon.torch._device_record import Real, Record, Value

# Arguments that PyTorch writes although their call does not say so.
HIDDEN_WRITES = {"native_batch_norm": (3, 4)}


def _zero(call: Record, self: Value) -> Value:
    return call("full_like", self, 0)


# Numbers of these that are handed on as they are.
FREE = {"add.Tensor": frozenset(["alpha"]), "sub.Tensor": frozenset(["alpha"])}


# -- sums, whose factor is another one in each step of training -------------------------------------------


def _sum_of(call: Record, operator: str, self: Any, other: Any, alpha: Any) -> Value:
    if not isinstance(alpha, Real) and alpha == 1:
        return call(operator, self, other)
    return call(operator, self, call("multiply", other, alpha))


def _add(call: Record, self: Any, other: Any, alpha: Any) -> Value:
    return _sum_of(call, "add", self, other, alpha)


def _subtract(call: Record, self: Any, other: Any, alpha: Any) -> Value:
    return _sum_of(call, "subtract", self, other, alpha)


# -- shapes that depend on data ---------------------------------------------------------------------------


def _nonzero(call: Record, self: Value) -> Value:
    return call("nonzero", self)


def _masked_select(call: Record, self: Value, mask: Value) -> Value:
    return call("masked_select", self, mask)


def _without_masks(call: Record, indices: Any) -> list[Any]:
    """Indices with the positions of what masks choose instead of masks."""
    listed: list[Any] = []
    for each in indices:
        if each is None or _native._dtype_name(each) not in ("bool", "uint8"):
            listed.append(each)
            continue
        positions = call("nonzero", each)
        listed += [call("select", positions, 1, axis) for axis in range(each.ndim)]
    return listed


def _index(call: Record, self: Value, indices: Any) -> Value:
    return _native.index(call, self, _without_masks(call, indices))


def _index_put(
    call: Record, self: Value, indices: Any, values: Any, accumulate: bool, unsafe: bool = False
) -> Value:
    if not isinstance(values, Value):
        values = call("full", [], values, dtype=self.dtype)
    values = _native._cast(call, values, self.dtype)
    return _native.index_put(call, self, _without_masks(call, indices), values, accumulate)


def _equal(call: Record, self: Value, other: Value) -> bool:
    if self.shape != other.shape:
        return False
    return bool(call("all", call("equal", self, other)).tensor.item())


# -- ranges -----------------------------------------------------------------------------------------------


def _target_dtype(call: Record, default: str) -> str:
    return default if call.target_dtype is None else str(call.target_dtype).removeprefix("torch.")


def _arange_out(call: Record, start: Any, end: Any, step: Any) -> Value:
    return call("arange", start, end, step, dtype=_target_dtype(call, "float32"))


def _linspace_out(call: Record, start: Any, end: Any, steps: int) -> Value:
    return call("linspace", start, end, steps, dtype=_target_dtype(call, "float32"))


def _eye_out(call: Record, n: int, m: int | None = None) -> Value:
    return call("eye", n, m, dtype=_target_dtype(call, "float32"))


def _randperm_out(call: Record, n: int, generator: Any = None) -> Value:
    return call("randperm", n, dtype="int64")


# -- random numbers, from the generator that the bridge has put in place ----------------------------------


def _floats(call: Record, self: Value) -> str:
    name = _native._dtype_name(self)
    if not name.startswith(("float", "bfloat")):
        raise Refused(f"it draws numbers of dtype {name}")
    return name


def _uniform(call: Record, self: Value, low: float, high: float, generator: Any) -> Value:
    return call("uniform", self.shape, low, high, dtype=_floats(call, self))


def _normal(call: Record, self: Value, mean: float, std: float, generator: Any) -> Value:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    return call("normal", self.shape, mean, std, dtype=_floats(call, self))


def _normal_tensors(call: Record, mean: Any, std: Any, generator: Any) -> Value:
    like = mean if isinstance(mean, Value) else std
    drawn = call("normal", like.shape, 0.0, 1.0, dtype=_floats(call, like))
    return call("add", call("multiply", drawn, std), mean)


def _bernoulli(call: Record, self: Value, generator: Any) -> Value:
    return call("bernoulli", self)


def _bernoulli_p(call: Record, self: Value, p: Any, generator: Any) -> Value:
    if isinstance(p, Value):
        drawn = call("bernoulli", p)
        return call("expand", drawn, self.shape)
    return call("bernoulli", call("full", self.shape, float(p), dtype="float32"))


def _random(call: Record, self: Value, generator: Any) -> Value:
    bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "bool": 1, "uint8": 8}
    bits |= {"int8": 7, "int16": 15, "int32": 31, "int64": 62}
    return _random_from(call, self, 0, 1 << bits[_native._dtype_name(self)], generator)


def _random_to(call: Record, self: Value, to: int, generator: Any) -> Value:
    return _random_from(call, self, 0, to, generator)


def _random_from(call: Record, self: Value, low: int, to: int | None, generator: Any) -> Value:
    if to is None:
        raise Refused("it draws whole numbers without an upper bound")
    if to <= low:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={to}"
        )
    return call("randint", low, to, self.shape, dtype="int64")


def _exponential(call: Record, self: Value, lambd: float, generator: Any) -> Value:
    drawn = call("uniform", self.shape, 0.0, 1.0, dtype=_floats(call, self))
    return call("divide", call("log1p", call("negative", drawn)), -lambd)


def _log_normal(call: Record, self: Value, mean: float, std: float, generator: Any) -> Value:
    return call("exp", _normal(call, self, mean, std, generator))


def _multinomial(
    call: Record, self: Value, num_samples: int, replacement: bool, generator: Any
) -> Value:
    return call("multinomial", self, num_samples, replacement)


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "add.Tensor": _add,
    "sub.Tensor": _subtract,
    "zero": _zero,
    "nonzero": _nonzero,
    "masked_select": _masked_select,
    "index.Tensor": _index,
    "index_put": _index_put,
    "_index_put_impl": _index_put,
    "_unsafe_index.Tensor": _index,
    "_unsafe_index_put": _index_put,
    "equal": _equal,
    "arange.start_out": _arange_out,
    "linspace.out": _linspace_out,
    "eye.out": _eye_out,
    "eye.m_out": _eye_out,
    "randperm.out": _randperm_out,
    "randperm.generator_out": _randperm_out,
    "uniform": _uniform,
    "normal": _normal,
    "normal_functional": _normal,
    "normal.Tensor_float": _normal_tensors,
    "normal.float_Tensor": _normal_tensors,
    "normal.Tensor_Tensor": _normal_tensors,
    "bernoulli": _bernoulli,
    "bernoulli.p": _bernoulli_p,
    "bernoulli.float": _bernoulli_p,
    "bernoulli.Tensor": _bernoulli_p,
    "random": _random,
    "random.to": _random_to,
    "random.from": _random_from,
    "exponential": _exponential,
    "log_normal": _log_normal,
    "multinomial": _multinomial,
}
