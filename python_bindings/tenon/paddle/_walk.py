# SPDX-License-Identifier: Apache-2.0
"""The blocks of a saved model, operator by operator, told to a builder of programs.

A value is a tensor with data where its elements are known while the program is built, as sizes, axes and small constants are; a
tensor of the device meta where a run makes it; or a list of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit.foreign_calls import Refused
from tenon.paddle import _lines
from tenon.paddle._blocks import Key, Operator, SavedModel, ValueType

_MOST_KNOWN: Final = 1024  # elements of a value that is computed while the program is built
_WITHOUT_SHAPE: Final = frozenset({"affine_grid", "grid_sample"})  # files say wrong ones
_COND, _WHILE = 3, 4  # TENON_GRAPH_STEP_COND, ...
# What a call may raise that cannot be told, as attributes of files may be of any kind; anything else is an error of ours.
_TOLD_ERRORS = (
    Refused,
    ValueError,
    TypeError,
    RuntimeError,
    LookupError,
    ArithmeticError,
    AttributeError,
)


class _Missing:
    """The value of an operator that could not be told, and of those that read it."""


_MISSING: Final = _Missing()


class Constants:
    """Known values as constants of programs; equal ones are the same tensor, in all programs that are built."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Tensor] = {}

    def __call__(self, value: Tensor) -> Tensor:
        kept = tenon.contiguous(value)
        key = (str(value.dtype), tuple(value.shape), str(kept.tolist()))
        return self._known.setdefault(key, kept)


class Failures:
    """What could not be told, by the name of the operator in the file."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def add(self, kind: str, reason: str) -> None:
        self.reasons.setdefault(kind, reason)

    def refuse(self, name: str) -> None:
        if not self.reasons:
            return
        listed = "".join(f"\n  {kind}: {why}" for kind, why in self.reasons.items())
        raise NotImplementedError(
            f"paddle.load: {name}: {len(self.reasons)} of {len(self.kinds)} kinds of operators cannot be told:{listed}"
        )


class Walk:
    """One walk through a block; blocks in it have walks of their own."""

    def __init__(self, constants: Constants, failures: Failures) -> None:
        self.builder = _core.ProgramBuilder(None)
        self.values: dict[Key, Any] = {}
        self._constants = constants
        self._failures = failures

    @classmethod
    def of_model(
        cls,
        model: SavedModel,
        shapes: Mapping[str, Sequence[int]],
        weights: Mapping[str, Tensor],
        constants: Constants,
    ) -> tuple[_core.Program, int]:
        """The model's program at these shapes of its inputs, and how many weights it reads. NotImplementedError: operators that
        cannot be told."""
        failures = Failures()
        walk = cls(constants, failures)
        for each in model.inputs:
            walk.values[each.key] = walk.builder.input(each.type.dtype, list(shapes[each.name]))
        for each in model.parameters:
            walk.values[each.key] = walk.builder.leaf(weights[each.name], each.name)
        walk.run(model.block.operators)
        failures.refuse(model.name)
        results = [walk.tensor(walk.value(key)) for _, key in model.outputs]
        return walk.builder.finish(results), len(model.parameters)

    def run(self, operators: Sequence[Operator]) -> None:
        for operator in operators:
            self._run(operator)

    def value(self, key: Key | list[Key] | None) -> Any:
        if isinstance(key, list):
            return [self.value(each) for each in key]
        if key is None:
            return None
        try:
            return self.values[key]
        except KeyError:
            raise ValueError(f"it reads the value {key!r}, which nothing has made") from None

    def tensor(self, value: Any) -> Tensor:
        """A value of the program."""
        if not isinstance(value, Tensor):
            raise ValueError(f"expected a tensor, got {'nothing' if value is None else 'a list'}")
        if value.device.type == "meta":
            return value
        return self.builder.leaf(self._constants(value), "", True)

    def call(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        """Adds a call, or runs it where all its tensors are known and what it gives is small."""
        tensors = list(_tensors((arguments, keywords)))
        are_known = all(each.device.type != "meta" for each in tensors)
        made = self._added(name, arguments, keywords)
        if not are_known or (not tensors and name not in ("full", "arange")):
            return made
        results = made if isinstance(made, list) else [made]
        if any(each.numel() > _MOST_KNOWN or each.ndim > 1 for each in results):
            return made
        found = _core.operator(name)(*arguments, **keywords)
        return list(found) if isinstance(found, (list, tuple)) else found

    def _added(self, name: str, arguments: Any, keywords: Any) -> Any:
        return self.builder.call(
            name, *self._in_program(list(arguments)), **self._in_program(dict(keywords))
        )

    def _in_program(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return [self._in_program(each) for each in value]
        if isinstance(value, dict):
            return {key: self._in_program(each) for key, each in value.items()}
        return value

    def _run(self, operator: Operator) -> None:
        self._failures.kinds[operator.label] += 1
        try:
            if operator.kind == "rnn":  # the state of its dropout, which no file holds
                operator.arguments["dropout_state_in"] = None
            arguments = {name: self.value(key) for name, key in operator.arguments.items()}
            if operator.kind != "conditional_block" and _is_missing(list(arguments.values())):
                self._look_at_name(operator)
                results: Sequence[Any] = ()
            else:
                results = self._results(operator, arguments)
        except _TOLD_ERRORS as error:
            self._failures.add(operator.label, str(error) or type(error).__name__)
            results = ()
        values = [*results, *[_MISSING] * (len(operator.results) - len(results))]
        for key, value in zip(operator.results, values, strict=False):
            self._bind(key, value)
        if operator.written is not None:
            self.values[operator.written] = values[0] if values else _MISSING

    def _bind(self, key: Any, value: Any) -> None:
        if isinstance(key, list):
            listed = value if isinstance(value, list) else [_MISSING] * len(key)
            for each, one in zip(key, listed, strict=False):
                self.values[each] = one
        elif key is not None:
            self.values[key] = value

    def _look_at_name(self, operator: Operator) -> None:
        """An operator that reads what is missing is told of only if no operator of its kind could be."""
        if operator.kind not in _STRUCTURE and not operator.regions:
            why = _lines.reason(operator.kind)
            if why is not None:
                self._failures.add(operator.label, why)

    def _results(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        special = _STRUCTURE.get(operator.kind)
        if special is not None:
            results: Sequence[Any] = special(self, operator, arguments)
        else:
            if operator.regions:
                raise Refused("no operator holds blocks but branches and loops")
            results = _lines.tell(self.call, operator.kind, self._given(operator, arguments))
        if len(results) > len(operator.results):
            results = results[: len(operator.results)]
        types = [*operator.types, *[None] * (len(results) - len(operator.types))]
        return [
            self._fitted(operator.kind, value, type_)
            for value, type_ in zip(results, types[: len(results)], strict=True)
        ]

    def _given(self, operator: Operator, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments and attributes as lines have them: shapes and numbers that are known are no tensors."""
        attributes = dict(operator.attributes)
        axis = attributes.pop("@axis", -1)
        if axis not in (-1, None):
            arguments["y"] = self._aligned(arguments["x"], arguments["y"], axis)
        given = attributes | arguments
        parameters = _lines.PARAMETERS.get(operator.kind, ())
        for each in parameters:
            if each.type in ("IntArray", "int[]") and each.name in given:
                given[each.name] = _integers(given[each.name], each.name)
            elif each.type in ("Scalar", "int") and each.name in given:
                given[each.name] = _number(given[each.name])
            elif each.type == "dtype" and each.name in given and given[each.name] is None:
                type_ = operator.types[0] if operator.types else None
                if each.default is not None and type_ is not None:
                    given[each.name] = type_.dtype
        if operator.kind in ("arange", "linspace") and "dtype" not in given and operator.types[0]:
            given["dtype"] = operator.types[0].dtype
        return given

    def _aligned(self, x: Any, y: Any, axis: int) -> Any:
        """The axes of `y` are those of `x` from `axis` on."""
        after = x.ndim - axis - y.ndim
        if not 0 <= axis < max(x.ndim, 1):
            raise Refused(f"with axis={axis} for {x.ndim} axes")
        return self.call("reshape", y, [*y.shape, *[1] * after]) if after > 0 else y

    def _fitted(self, kind: str, value: Any, type_: ValueType | None) -> Any:
        """What the file says of a result has to be so; a dtype is made so."""
        if type_ is None or not isinstance(value, Tensor):
            return value
        if type_.shape is not None and kind not in _WITHOUT_SHAPE:
            shape = list(value.shape)
            if sorted((len(shape), len(type_.shape))) == [0, 1] and value.numel() == 1:
                value = self.call("reshape", value, [1] * len(type_.shape))
            elif len(shape) != len(type_.shape) or any(
                size not in (-1, own) for size, own in zip(type_.shape, shape, strict=True)
            ):
                raise Refused(f"it gives {shape} here, and {list(type_.shape)} in Paddle")
        wanted = getattr(tenon, type_.dtype)
        return value if value.dtype == wanted else self.call("cast", value, wanted)

    # -- blocks in blocks ---------------------------------------------------------------------------------

    def _region(self, operands: Mapping[Key, Any], known: Mapping[Key, Any]) -> Walk:
        """A walk whose inputs are these values, in order."""
        walk = Walk(self._constants, self._failures)
        walk.values.update(known)
        for key, value in operands.items():
            walk.values[key] = walk.builder.input(
                str(value.dtype).removeprefix("tenon."), list(value.shape)
            )
        return walk

    def _captured(self, keys: Sequence[Key]) -> tuple[dict[Key, Any], dict[Key, Any]]:
        """Values from around a block: those that a run makes, and those that are known."""
        operands: dict[Key, Any] = {}
        known: dict[Key, Any] = {}
        for key in keys:
            value = self.values.get(key, _MISSING)
            if isinstance(value, Tensor) and value.device.type == "meta":
                operands[key] = value
            elif isinstance(value, list):
                raise Refused("a block reads a list of tensors from around it")
            else:
                known[key] = value
        return operands, known

    def branch(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        condition = arguments["cond"]
        if len(operator.regions) != 2:
            raise Refused(f"it has {len(operator.regions)} blocks instead of two")
        if condition.device.type != "meta":
            block = operator.regions[0 if condition.item() else 1]
            self.run(block.operators)
            return [self.value(key) for key in block.results]
        free = dict.fromkeys(key for block in operator.regions for key in block.free())
        operands, known = self._captured(list(free))
        programs = []
        for block in operator.regions:
            walk = self._region(operands, known)
            walk.run(block.operators)
            programs.append(walk.finished(block.results))
        operands_in_order = [self._one(condition, "bool"), *operands.values()]
        return self.builder.control(
            _COND, operands_in_order, 0, 0, programs, len(operator.regions[0].results)
        )

    def finished(self, keys: Sequence[Key]) -> _core.Program:
        values = [self.value(key) for key in keys]
        if _is_missing(values):
            raise Refused("an operator in one of its blocks cannot be told")
        return self.builder.finish([self.tensor(value) for value in values])

    def loop(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        (block,) = operator.regions
        initial = [self._one(arguments["cond"], "bool"), *map(self.tensor, arguments["init"])]
        if len(block.results) != len(initial) or len(block.arguments) != len(initial) - 1:
            raise Refused("its block gives other values than it takes")
        carried: list[Key] = ["@cond", *block.arguments]
        operands, known = self._captured([key for key in block.free() if key not in carried])
        everything = dict(zip(carried, initial, strict=True)) | operands
        asks = self._region(everything, {})
        condition = asks.builder.finish([asks.tensor(asks.value("@cond"))])
        body = self._region(everything, known)
        body.run(block.operators)
        first = body.value(block.results[0])
        if not _is_missing([first]):
            body.values["@next"] = body._one(first, "bool")
        program = body.finished(
            ["@next" if not _is_missing([first]) else block.results[0], *block.results[1:]]
        )
        results = self.builder.control(
            _WHILE, list(everything.values()), len(initial), 0, [condition, program], len(initial)
        )
        return results[1:]

    def _one(self, value: Any, dtype: str) -> Tensor:
        """A condition, which has no axes here."""
        value = self.tensor(value)
        if value.ndim:
            value = self.call("reshape", value, [])
        return value if value.dtype == tenon.bool else self.call("cast", value, tenon.bool)

    def guarded(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        """A block of Paddle 2 that a condition guards: it is computed anyway, and chosen where something else was there before."""
        condition = arguments["cond"]
        if _is_missing([condition]):
            raise Refused("its condition cannot be told")
        (block,) = operator.regions
        is_known = condition.device.type != "meta"
        before = dict(self.values)
        if is_known and not condition.item():
            return [before.get(key, _MISSING) for key in operator.results]
        self.run(block.operators)
        found = [self.value(key) for key in operator.results]
        for key, value in before.items():
            self.values[key] = value
        if is_known:
            return found
        chosen = []
        for key, value in zip(operator.results, found, strict=True):
            old = before.get(key, _MISSING)
            is_new = not isinstance(old, Tensor) or tuple(old.shape) != tuple(value.shape)
            chosen.append(
                value if is_new else self.call("where", self._one(condition, "bool"), value, old)
            )
        return chosen

    def select(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        values, mask = arguments["X"], arguments["Mask"]
        if mask.device.type != "meta":
            return [values[int(mask.item())]]
        if len(values) != 2:
            raise Refused(f"it chooses one of {len(values)} values")
        return [self.call("where", self._one(mask, "bool"), values[1], values[0])]

    def combine(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        return [list(arguments.values())]

    def apart(self, operator: Operator, arguments: dict[str, Any]) -> Sequence[Any]:
        (listed,) = arguments.values()
        return list(listed)


_STRUCTURE: Final[dict[str, Callable[[Walk, Operator, dict[str, Any]], Sequence[Any]]]] = {
    "builtin.combine": Walk.combine,
    "builtin.split": Walk.apart,
    "if": Walk.branch,
    "while": Walk.loop,
    "conditional_block": Walk.guarded,
    "select_input": Walk.select,
}


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))
    elif isinstance(tree, (list, tuple)):
        for each in tree:
            yield from _tensors(each)


def _is_missing(values: Any) -> bool:
    if isinstance(values, list):
        return any(_is_missing(each) for each in values)
    return values is _MISSING


def _integers(value: Any, name: str) -> list[int]:
    """Of numbers, of tensors that hold them, or of both."""
    found: list[int] = []
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, Tensor):
            if each.device.type == "meta":
                raise Refused(f"its `{name}` depends on data")
            found += [int(one) for one in tenon.reshape(each, [-1]).tolist()]
        elif each is not None:
            found.append(int(each))
    return found


def _number(value: Any) -> Any:
    """Of a tensor of one element that is known."""
    is_known = isinstance(value, Tensor) and value.device.type != "meta" and value.numel() == 1
    return value.item() if is_known else value
