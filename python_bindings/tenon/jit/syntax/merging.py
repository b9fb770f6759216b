# SPDX-License-Identifier: Apache-2.0
"""What becomes of a variable that two ways of a program leave with two values: one value, made of tensors where they
differ, or none, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.jit.control_flow import _Suspended
from tenon.jit.syntax.numbers import Number

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Unset:
    """Stands in a variable that has no value, or none that a program could know."""

    __slots__ = ("_name", "reason")

    def __init__(self, name: str, reason: str = "") -> None:
        self._name, self.reason = name, reason

    def error(self) -> Exception:
        if self.reason:
            return ValueError(f"export: {self.reason}")
        return UnboundLocalError(
            f"cannot access local variable {self._name!r} where it is not associated with a value"
        )


class Mismatch(Exception):
    """Two values that cannot be one: "float32[3]" and "float32[6]", and how to fix it."""

    def __init__(self, one: str, other: str, fix: str) -> None:
        super().__init__(one, other, fix)
        self.one, self.other, self.fix = one, other, fix


class NotAsPlanned(Exception):
    """A value is of another kind than it was when the branch or loop was tried."""


@dataclass(frozen=True)
class Keep:
    """The same on both ways."""

    value: Any


@dataclass(frozen=True)
class Leaf:
    """A tensor on both ways, or a number that becomes one."""

    dtype: Any
    shape: tuple[int, ...]
    device: Any
    is_number: bool = False  # Python's, and a Number in the program


@dataclass(frozen=True)
class Items:
    kind: Any
    keys: tuple[Any, ...]
    rules: tuple[Any, ...]


@dataclass(frozen=True)
class Lost:
    reason: str


Rule = Keep | Leaf | Items | Lost


See = Callable[
    [Any], Any
]  # what a list or dictionary held, of which the contents were put back since


def as_it_is(value: Any) -> Any:
    return value


def merge(one: Any, other: Any, see: See = as_it_is, see_other: See = as_it_is) -> Rule:
    """The rule for two values. Raises Mismatch."""
    if is_same(one, other):
        return Keep(one)
    one, other = see(one), see_other(other)
    if _is_number(one) and _is_number(other):
        return _merge_numbers(one, other)
    if _is_tensor(one) and _is_tensor(other):
        a, b = leaf_of(one), leaf_of(other)
        if a != b:
            fix = "assign tensors of one shape, dtype and device"
            raise Mismatch(describe(one), describe(other), fix)
        return a
    if _is_tensor(one) or _is_tensor(other):
        tensor, value = (one, other) if _is_tensor(one) else (other, one)
        leaf = leaf_of(tensor)
        if not fits(value, leaf):
            fix = f"make both tensors, such as tenon.zeros({list(leaf.shape)}, dtype={leaf.dtype.name!r})"
            raise Mismatch(describe(one), describe(other), fix)
        return leaf
    if type(one) is type(other) and type(one) in (list, tuple, dict):
        keys = list(one) if isinstance(one, dict) else list(range(len(one)))
        others = list(other) if isinstance(other, dict) else list(range(len(other)))
        if keys == others:
            return Items(
                type(one), tuple(keys), tuple(merge(one[k], other[k], see, see_other) for k in keys)
            )
        fix = "change no number of items there: write into a tensor, or use tenon.jit.scan"
        raise Mismatch(describe(one), describe(other), fix)
    raise Mismatch(describe(one), describe(other), "what depends on a tensor has to be one")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, Number)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, Number))


def _merge_numbers(one: Any, other: Any) -> Leaf:
    dtypes = [
        value.dtype
        if isinstance(value, Number)
        else {bool: tenon.bool, float: tenon.float64}.get(type(value), tenon.int64)
        for value in (one, other)
    ]
    if dtypes[0] != dtypes[1] or type(one) is float or type(other) is float:
        fix = "a number of one kind on both ways, bool or int"
        if tenon.float64 in dtypes:
            fix = "make it a tensor of the dtype that you want, such as tenon.tensor(0.5)"
        raise Mismatch(describe(one), describe(other), fix)
    return Leaf(dtypes[0], (), tenon.device("cpu"), is_number=True)


def leaves(rule: Rule) -> Iterator[Leaf]:
    """Those for which `take` finds tensors, in its order."""
    if isinstance(rule, Leaf):
        yield rule
    elif isinstance(rule, Items):
        for each in rule.rules:
            yield from leaves(each)


def rule_of(value: Any, see: See = as_it_is) -> Rule:
    """The rule for a value that is there on one way only, and not read on the other."""
    value = see(value)
    if isinstance(value, Tensor):
        return leaf_of(value)
    if type(value) in (list, tuple, dict):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        return Items(type(value), tuple(keys), tuple(rule_of(value[key], see) for key in keys))
    return Keep(value)


def same_rules(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Keep):
        return is_same(one.value, other.value) or isinstance(one.value, Unset)
    if isinstance(one, Items):
        return (
            one.kind is other.kind
            and one.keys == other.keys
            and all(map(same_rules, one.rules, other.rules))
        )
    return bool(one == other)


def take(rule: Rule, value: Any, tensors: list[Tensor], see: See = as_it_is) -> None:
    """Append the tensors of a value. Raises NotAsPlanned."""
    if isinstance(rule, Lost):
        return
    if isinstance(rule, Keep):
        is_free = isinstance(rule.value, Unset) or isinstance(value, Unset)
        if not is_free and not is_same(rule.value, value):
            raise NotAsPlanned
    elif isinstance(rule, Leaf):
        tensors.append(_tensor(rule, value))
    elif isinstance(value, Unset):
        for each in rule.rules:
            take(each, value, tensors)
    else:
        value = see(value)
        if type(value) is not rule.kind or len(value) != len(rule.keys):
            raise NotAsPlanned
        if rule.kind is dict and tuple(value) != rule.keys:
            raise NotAsPlanned
        for key, each in zip(rule.keys, rule.rules, strict=True):
            take(each, value[key], tensors, see)


def put(rule: Rule, tensors: Iterator[Tensor], name: str) -> Any:
    """The value with tensors where the rule has them."""
    if isinstance(rule, Lost):
        return Unset(name, rule.reason)
    if isinstance(rule, Keep):
        return rule.value
    if isinstance(rule, Leaf):
        return next(tensors)
    made = [put(each, tensors, name) for each in rule.rules]
    return dict(zip(rule.keys, made, strict=True)) if rule.kind is dict else rule.kind(made)


def leaf_of(tensor: Tensor) -> Leaf:
    return Leaf(tensor.dtype, shape_of(tensor), tensor.device, isinstance(tensor, Number))


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Plain numbers, which a program of many sizes does not follow."""
    with _Suspended():
        return tuple(tensor.shape)


def fits(value: Any, leaf: Leaf) -> bool:
    """Whether a number can be the tensor."""
    if not _is_number(value) or leaf.shape != ():
        return False
    kind = 2 if type(value) is float else 0 if type(value) is bool else 1
    if isinstance(value, Number):
        kind = {"bool": 0, "int64": 1}.get(value.dtype.name, 2)
    name = leaf.dtype.name
    if kind == 0 or name == "bool":
        return kind == 0 and name == "bool"
    return kind == 1 or not name.startswith(("int", "uint"))


def _tensor(leaf: Leaf, value: Any) -> Tensor:
    if isinstance(value, Unset):
        return tenon.zeros(leaf.shape, dtype=leaf.dtype, device=leaf.device)
    if isinstance(value, Tensor) and leaf_of(value) == leaf:
        return value
    if not fits(value, leaf) or (leaf.is_number and _number_dtype(value) != leaf.dtype):
        raise NotAsPlanned
    if isinstance(value, Number):
        return value.to(leaf.dtype)
    return tenon.full((), value, dtype=leaf.dtype, device=leaf.device)


def _number_dtype(value: Any) -> Any:
    if isinstance(value, Number):
        return value.dtype
    return tenon.bool if type(value) is bool else tenon.int64


def is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or not isinstance(one, _PLAIN):
        return False
    return bool(one == other) or (one != one and other != other)


def describe(value: Any) -> str:
    """For messages: "float32[3]", "(1, float32[2])"."""
    if isinstance(value, Number):
        return "bool" if value.dtype == tenon.bool else "int"
    if isinstance(value, Tensor):
        place = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"a tensor {value.dtype.name}{list(shape_of(value))}{place}"
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__} of {len(value)} items"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}" if value is not None else "None"
    return f"a {type(value).__name__}"
