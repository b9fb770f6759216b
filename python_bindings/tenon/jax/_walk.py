# SPDX-License-Identifier: Apache-2.0
"""A jaxpr, equation by equation, told to a builder of programs.

A value is a tensor of the device meta, or a number where JAX has a literal. Keys of random numbers are their data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jax import _indexing, _linalg, _primitives, _random
from tenon.jit.foreign_calls import Refused

_COND, _WHILE, _SCAN = 3, 4, 5  # TENON_GRAPH_STEP_COND, ...
_TOLD_ERRORS = (Refused, ValueError, TypeError, RuntimeError, LookupError, OverflowError)
_TABLES: Final = (_primitives.TABLE, _indexing.TABLE, _linalg.TABLE, _random.TABLE)
# Calls of other jaxprs: the parameter that holds it.
_CALLS: Final = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}


class _Missing:
    """The value of an equation that could not be told, and of those that read it."""


_MISSING: Final = _Missing()


def is_key(aval: Any) -> bool:
    return str(aval.dtype).startswith("key<")


def dtype_of(aval: Any) -> str:
    name = str(aval.dtype)
    if name.startswith("key<"):
        if name != "key<fry>":
            raise NotImplementedError(f"jax.load: expected keys of threefry, got {name}")
        return "uint32"
    if not hasattr(tenon, name):
        raise NotImplementedError(f"jax.load: dtype {name} is none of Tenon's")
    return name


def shape_of(aval: Any) -> list[int]:
    """Keys have their data in one axis more."""
    shape = list(aval.shape)
    if not all(isinstance(size, int) for size in shape):
        raise NotImplementedError(f"jax.load: expected sizes that are numbers, got {shape}")
    return [*shape, 2] if is_key(aval) else shape


class Walk:
    """One walk through a jaxpr; bodies of branches and loops have walks of their own."""

    def __init__(self, jax: Any, failures: dict[str, str]) -> None:
        self.builder = _core.ProgramBuilder(None)
        self.jax = jax
        self.call = self._call
        self._kinds: set[str] = set()
        self._failures = failures

    @property
    def count(self) -> int:
        return len(self._kinds)

    def constant(self, tensor: Tensor) -> Tensor:
        return self.builder.leaf(tensor, "", True)

    def tensor(self, value: Any, dtype: str | None = None) -> Tensor:
        """A number as a tensor."""
        if isinstance(value, Tensor):
            return value
        return self.constant(tenon.tensor(value, dtype=dtype))

    def _call(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        return self.builder.call(name, *arguments, **keywords)

    def run(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """The values of its results."""
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def read(each: Any) -> Any:
            return _literal(each) if hasattr(each, "val") else values[each]

        for equation in jaxpr.eqns:
            given = [read(each) for each in equation.invars]
            results = self._equation(equation, given)
            values.update(zip(equation.outvars, results, strict=True))
        return [
            self.tensor(read(each), dtype_of(each.aval)) if hasattr(each, "val") else read(each)
            for each in jaxpr.outvars
        ]

    def _equation(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        kind = equation.primitive.name
        self._kinds.add(kind)
        missing = [_MISSING] * len(equation.outvars)
        try:
            if any(each is _MISSING for each in given):
                if kind not in _CALLS and kind not in _REGIONS and _found(kind) is None:
                    raise Refused("there is no line for it")
                return missing
            if kind in _CALLS:
                return self._inlined(equation.params[_CALLS[kind]], given)
            if kind in _REGIONS:
                results = _REGIONS[kind](self, equation, given)
            else:
                told = _found(kind)
                if told is None:
                    raise Refused("there is no line for it")
                made = told(self, equation, *given)
                results = made if isinstance(made, list) else [made]
            return [
                self._fitted(value, v.aval)
                for value, v in zip(results, equation.outvars, strict=True)
            ]
        except _TOLD_ERRORS as error:
            self._failures.setdefault(kind, str(error) or type(error).__name__)
            return missing

    def _inlined(self, jaxpr: Any, given: Sequence[Any]) -> list[Any]:
        """Closed, or with nothing from outside."""
        if hasattr(jaxpr, "consts"):
            constants = [self.constant(self._from_outside(each)) for each in jaxpr.consts]
            return self.run(jaxpr.jaxpr, constants, given)
        return self.run(jaxpr, [], given)

    def _from_outside(self, array: Any) -> Tensor:
        return tenon.from_dlpack(self.jax.numpy.asarray(array))

    def _fitted(self, value: Any, aval: Any) -> Any:
        """What JAX says of a result has to be so; a dtype is made so."""
        dtype, shape = dtype_of(aval), shape_of(aval)
        value = self.tensor(value, dtype)
        if list(value.shape) != shape:
            raise Refused(f"it gives {list(value.shape)} here, and {shape} in JAX")
        wanted = getattr(tenon, dtype)
        return value if value.dtype == wanted else self.call("cast", value, wanted)

    # -- branches and loops -------------------------------------------------------------------------------

    def _region(self, jaxpr: Any, order: Callable[[list[Any]], list[Any]] | None = None) -> Any:
        """The program of a jaxpr whose inputs `order` has put in the order of a region's."""
        walk = Walk(self.jax, self._failures)
        avals = [v.aval for v in jaxpr.jaxpr.invars]
        numbers = list(range(len(avals)))
        order_of = numbers if order is None else order(numbers)
        inputs: list[Any] = [None] * len(avals)
        for index in order_of:
            inputs[index] = walk.builder.input(dtype_of(avals[index]), shape_of(avals[index]))
        constants = [walk.constant(self._from_outside(each)) for each in jaxpr.consts]
        results = walk.run(jaxpr.jaxpr, constants, inputs)
        self._kinds |= walk._kinds
        if any(each is _MISSING for each in results):
            raise Refused("a primitive in one of its bodies cannot be told")
        return walk, [walk.tensor(each) for each in results]

    def _operands(self, equation: Any, given: Sequence[Any]) -> list[Tensor]:
        return [
            self.tensor(each, dtype_of(v.aval))
            for each, v in zip(given, equation.invars, strict=True)
        ]

    def branch(self, equation: Any, given: list[Any]) -> list[Any]:
        index, *operands = self._operands(equation, given)
        return self._branch(index, operands, list(equation.params["branches"]))

    def _branch(self, index: Tensor, operands: list[Tensor], branches: list[Any]) -> list[Any]:
        """Of more than two branches the first, or one of the others."""
        regions = []
        for at, jaxpr in enumerate(branches[:2]):
            if at == 1 and len(branches) > 2:
                break
            walk, results = self._region(jaxpr)
            regions.append(walk.builder.finish(results))
        if len(branches) > 2:
            walk = Walk(self.jax, self._failures)
            number, *others = [walk.builder.input("int32", [])] + [
                walk.builder.input(str(each.dtype).removeprefix("tenon."), list(each.shape))
                for each in operands
            ]
            less = walk.call("subtract", number, 1)
            regions.append(walk.builder.finish(walk._branch(less, others, branches[1:])))
            first = self.call("less_equal", index, 0)
            number = self.call("cast", index, tenon.int32)
            # Both regions take the number of the branch, which the first has no use for.
            own = Walk(self.jax, self._failures)
            inputs = [own.builder.input("int32", [])] + [
                own.builder.input(str(each.dtype).removeprefix("tenon."), list(each.shape))
                for each in operands
            ]
            regions[0] = own.builder.finish(own._inlined(branches[0], inputs[1:]))
            control = [first, number, *operands]
            return self.builder.control(_COND, control, 0, 0, regions, regions[0].nresults)
        if len(regions) == 1:
            return self._inlined(branches[0], operands)
        predicate = self.call("not_equal", index, 0) if index.dtype != tenon.bool else index
        control = [predicate, *operands]
        return self.builder.control(_COND, control, 0, 0, regions[::-1], regions[0].nresults)

    def loop(self, equation: Any, given: list[Any]) -> list[Any]:
        params = equation.params
        ncond, nbody = params["cond_nconsts"], params["body_nconsts"]
        values = self._operands(equation, given)
        others, carried = values[: ncond + nbody], values[ncond + nbody :]
        count = len(carried)

        def region(jaxpr: Any, first: int, last: int) -> Any:
            """`jaxpr` has its constants, `first` to `last` of all, before what is carried."""
            walk = Walk(self.jax, self._failures)
            inputs = [
                walk.builder.input(str(each.dtype).removeprefix("tenon."), list(each.shape))
                for each in (*carried, *others)
            ]
            results = walk._inlined(jaxpr, [*inputs[count + first : count + last], *inputs[:count]])
            self._kinds |= walk._kinds
            if any(each is _MISSING for each in results):
                raise Refused("a primitive in one of its bodies cannot be told")
            return walk.builder.finish(results)

        regions = [
            region(params["cond_jaxpr"], 0, ncond),
            region(params["body_jaxpr"], ncond, ncond + nbody),
        ]
        return self.builder.control(_WHILE, [*carried, *others], count, 0, regions, count)

    def scan(self, equation: Any, given: list[Any]) -> list[Any]:
        params = equation.params
        nconsts, ncarry = params["num_consts"], params["num_carry"]
        values = self._operands(equation, given)
        others, carried, xs = (
            values[:nconsts],
            values[nconsts : nconsts + ncarry],
            values[nconsts + ncarry :],
        )
        if params["reverse"]:
            xs = [self.call("flip", each, [0]) for each in xs]
        walk = Walk(self.jax, self._failures)

        def inputs_of(tensors: Sequence[Tensor], *, is_element: bool = False) -> list[Tensor]:
            return [
                walk.builder.input(
                    str(each.dtype).removeprefix("tenon."), list(each.shape)[is_element:]
                )
                for each in tensors
            ]

        steps = [] if xs else [self.call("arange", 0, params["length"], 1, dtype=tenon.int32)]
        first = inputs_of(carried)
        elements = inputs_of([*xs, *steps], is_element=True)
        last = inputs_of(others)
        results = walk._inlined(params["jaxpr"], [*last, *first, *elements[: len(xs)]])
        self._kinds |= walk._kinds
        if any(each is _MISSING for each in results):
            raise Refused("a primitive in its body cannot be told")
        body = walk.builder.finish(results)
        found = self.builder.control(
            _SCAN,
            [*carried, *xs, *steps, *others],
            ncarry,
            len(xs) + len(steps),
            [body],
            len(results),
        )
        if params["reverse"]:
            found = [*found[:ncarry], *(self.call("flip", each, [0]) for each in found[ncarry:])]
        return list(found)

    def linear_solve(self, equation: Any, given: list[Any]) -> list[Any]:
        """What JAX solves by a function of its own: that function, without those for gradients."""
        jaxprs, counts = equation.params["jaxprs"], equation.params["const_lengths"]
        before = counts.matvec + counts.vecmat
        values = self._operands(equation, given)
        constants = values[before : before + counts.solve]
        sides = values[before + counts.solve + counts.transpose_solve :]
        return self._inlined(jaxprs.solve, [*constants, *sides])


_REGIONS: Final[dict[str, Callable[[Walk, Any, list[Any]], Sequence[Any]]]] = {
    "cond": Walk.branch,
    "while": Walk.loop,
    "scan": Walk.scan,
    "custom_linear_solve": Walk.linear_solve,
}


def _found(kind: str) -> Any:
    return next((table[kind] for table in _TABLES if kind in table), None)


def _literal(each: Any) -> Any:
    """A number; the aval says its dtype, which results are made to have."""
    value = each.val
    return value.item() if hasattr(value, "item") else value
