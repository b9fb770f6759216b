# SPDX-License-Identifier: Apache-2.0
"""The steps of a program as objects: read them by `program.graph`, change them by `program.edit(function)`.

    def use_silu(graph):
        for step in graph.steps:
            if step.name == "tenon::multiply" and step.operands["y"].maker.name == "tenon::sigmoid": ...

docs/program_graphs.md has passes that are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tenon
from tenon import _core
from tenon._core import Tensor

if TYPE_CHECKING:
    from tenon.jit.program import Program

_INPUTS, _LEAVES, _RESULTS = 0, 1, 2  # TENON_GRAPH_INPUTS, ...
_KINDS = ("call", "view", "detach", "cond", "while", "scan")  # by TENON_GRAPH_STEP_CALL, ...


class Value:
    """What a step makes, or the program is given: a tensor of every run, with its type."""

    __module__ = "tenon.jit"

    def __init__(self, graph: ProgramGraph, id: int) -> None:
        self._graph, self.id = graph, id
        self.maker: Step | None = None  # the step that makes it; None: an input, leaf or constant
        self._users: list[Step] = []  # once for each operand
        self.dtype, self.device, self.shape, *self._facts = graph._editor.value(id)

    @property
    def users(self) -> list[Step]:
        """Steps that read it, each once, in the order in which they run."""
        return sorted(dict.fromkeys(self._users), key=self._graph._steps.index)

    @property
    def is_result(self) -> bool:
        """Whether the program returns it."""
        return any(each is self for each in self._graph.results)

    @property
    def is_written(self) -> bool:
        """Whether a step writes into its memory. Then it is not the same value all along, and cannot be replaced."""
        return self._fact(0)

    @property
    def is_outside(self) -> bool:
        """Whether callers see its memory: that of inputs, leaves and results, and views of these."""
        return self._fact(1)

    @property
    def constant(self) -> Tensor | None:
        """The elements, if they are data of the program."""
        return self._fact(2)

    def _fact(self, index: int) -> Any:
        if self._graph._is_open:  # an edit may have changed it
            self._facts = list(self._graph._editor.value(self.id)[3:])
        return self._facts[index]

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("tenon.")
        return f"<Value %{self.id}: {dtype}{list(self.shape)} {self.device}>"


class Step:
    """One operator call of a program, or a branch or loop."""

    __module__ = "tenon.jit"

    def __init__(self, graph: ProgramGraph, index: int) -> None:
        kind, self.name, self.file, self.line, given, self.is_recorded, results, operands = (
            graph._editor.step(index)
        )
        self.kind: str = _KINDS[kind]
        # By parameter: a Value, a list of values, or an attribute; None where the argument is absent.
        self.operands: dict[str, Any] = {}
        for name, *rest in operands:
            if len(rest) == 1:
                self.operands[name] = rest[0]
            else:
                values = [graph._value(id) for id in rest[1]]
                self.operands[name] = values if rest[0] else values[0]
        self.results: list[Value] = [graph._value(id) for id in results]
        # The results that it does not make but writes into.
        self.written: list[Value] = [
            value for i, value in enumerate(self.results) if given >> i & 1
        ]
        for value in self.inputs:
            value._users.append(self)
        for value in self.results:
            if all(value is not each for each in self.written):
                value.maker = self

    @property
    def inputs(self) -> list[Value]:
        """The values among its operands, once for each place."""
        found: list[Value] = []
        for operand in self.operands.values():
            if isinstance(operand, Value):
                found.append(operand)
            elif isinstance(operand, list):
                found += operand
        return found

    @property
    def result(self) -> Value:
        """The only result."""
        if len(self.results) != 1:
            raise ValueError(
                f"graph: expected a step of one result, got {self.name} with {len(self.results)}; use `results`"
            )
        return self.results[0]

    def __repr__(self) -> str:
        def text(operand: Any) -> str:
            if isinstance(operand, list):
                return f"[{', '.join(map(text, operand))}]"
            return f"%{operand.id}" if isinstance(operand, Value) else repr(operand)

        arguments = ", ".join(f"{name}={text(each)}" for name, each in self.operands.items())
        made = ", ".join(f"%{value.id}" for value in self.results)
        return f"<Step {made} = {self.name}({arguments})>"


class ProgramGraph:
    """The steps of a program, in the order in which they run, without those inside of branches and loops.

    That of `program.graph` is for reading. A function that `program.edit` or `tenon.jit.add_pass` is given gets one
    that it may change, until it returns.
    """

    __module__ = "tenon.jit"

    def __init__(self, editor: _core.ProgramEditor) -> None:
        self._editor = editor
        self._is_open = True
        self._values: dict[int, Value] = {}
        self.inputs: list[Value] = self._all(_INPUTS)
        self.leaves: list[Value] = self._all(_LEAVES)
        self._steps: list[Step] = []
        for index in range(editor.count()):
            self._steps.append(Step(self, index))
        self.results: list[Value] = self._all(_RESULTS)

    def _all(self, whose: int) -> list[Value]:
        return [self._value(id) for id in self._editor.ids(whose)]

    def _value(self, id: int) -> Value:
        if id not in self._values:
            self._values[id] = Value(self, id)
        return self._values[id]

    def _close(self) -> None:
        self._is_open = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those of now: edits do not change a tuple that was returned before."""
        return tuple(self._steps)

    @property
    def values(self) -> tuple[Value, ...]:
        """Inputs, leaves, and what steps make."""
        return tuple(self._values.values())

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self._steps)

    def insert(self, name: str, /, *args: Any, before: Step | None, **keywords: Any) -> Any:
        """A call of the operator `name`, "relu" or "acme::swiglu", in front of a step; None: behind the last.

        Arguments are those of `tenon.<name>`, with values in the place of tensors; a tensor with data becomes a
        constant. Returns the value of the result, a list where there are several. Its type is what the operator's own
        rule says, and errors are the operator's own.
        """
        self._expect_open("insert")
        index = len(self._steps) if before is None else self._index(before)
        stand_ins: dict[int, tuple[Tensor, int]] = {}

        def put(argument: Any) -> Any:
            if isinstance(argument, (list, tuple)):
                return type(argument)(map(put, argument))
            if not isinstance(argument, Value):
                return argument
            self._expect_own(argument)
            if argument.id not in stand_ins:
                like = tenon.empty(list(argument.shape), dtype=argument.dtype, device="meta")
                stand_ins[argument.id] = (like, argument.id)
            return stand_ins[argument.id][0]

        given = tuple(map(put, args))
        named = {key: put(value) for key, value in keywords.items()}
        results, constants = self._editor.insert(
            index, name, given, named, list(stand_ins.values())
        )
        self.leaves += map(self._value, constants)
        self._steps.insert(index, Step(self, index))
        values = [self._value(id) for id in results]
        return values[0] if len(values) == 1 else values

    def constant(self, tensor: Tensor) -> Value:
        """A copy of the tensor as data of the program."""
        self._expect_open("constant")
        value = self._value(self._editor.constant(tensor))
        self.leaves.append(value)
        return value

    def replace(self, value: Value, by: Value) -> None:
        """Let all that reads `value`, and the program's results, read `by`, which has the same type."""
        self._expect_open("replace")
        self._expect_own(value)
        self._expect_own(by)
        self._editor.replace(value.id, by.id)

        def swap(operand: Any) -> Any:
            if isinstance(operand, list):
                return [swap(each) for each in operand]
            return by if operand is value else operand

        for step in dict.fromkeys(value._users):
            step.operands = {name: swap(each) for name, each in step.operands.items()}
        by._users += value._users
        value._users = []
        self.results = [swap(each) for each in self.results]

    def remove(self, step: Step) -> None:
        """Take out a step whose results nothing reads."""
        self._expect_open("remove")
        index = self._index(step)
        self._editor.remove(index)
        del self._steps[index]
        for value in step.inputs:
            value._users.remove(step)
        for value in step.results:
            value.maker = None

    def _index(self, step: Step) -> int:
        for index, each in enumerate(self._steps):
            if each is step:
                return index
        raise ValueError(
            f"graph: expected a step of this graph, got {step!r}, which was removed or is of another one"
        )

    def _expect_own(self, value: Any) -> None:
        if not isinstance(value, Value) or self._values.get(value.id) is not value:
            raise ValueError(f"graph: expected a value of this graph, got {value!r}")

    def _expect_open(self, what: str) -> None:
        if not self._is_open:
            raise RuntimeError(
                f"graph.{what}(): expected a graph that is being edited, got one for reading; call it inside of "
                "`program.edit(function)`, whose function gets the graph"
            )

    def __repr__(self) -> str:
        return f"<tenon.jit.ProgramGraph: {len(self)} steps, {len(self.inputs)} inputs, {len(self.results)} results>"


def read(program: Program) -> ProgramGraph:
    """The graph of a program, for reading."""
    found: list[ProgramGraph] = []

    def take(editor: _core.ProgramEditor) -> None:
        found.append(ProgramGraph(editor))

    _core.program_read(program._native, take)
    found[0]._close()
    return found[0]


def _pass_of(function: Callable[[ProgramGraph], object]) -> Callable[[_core.ProgramEditor], None]:
    def run(editor: _core.ProgramEditor) -> None:
        graph = ProgramGraph(editor)
        try:
            function(graph)
        finally:
            graph._close()

    return run


def edited(program: Program, function: Callable[[ProgramGraph], object]) -> _core.Program:
    """The compiled half of `Program.edit`."""
    name = getattr(function, "__name__", "")
    is_name = name.isascii() and name.isidentifier()
    return _core.program_edit(program._native, _pass_of(function), name if is_name else "edit")


_passes: dict[str, Callable[[_core.ProgramEditor], None]] = {}


def add_pass(name: str, function: Callable[[ProgramGraph], object]) -> None:
    """Make a pass known: `export(..., passes=[..., name])` and `program.optimize([name])` call `function(graph)`.

    `name` has letters, digits and `_`. The function is called once for each program, and for each of the recorded
    sizes of one that leaves sizes open, on the thread that optimizes it. Where it raises, the program stays as it was.
    """
    run = _pass_of(function)
    _core.pass_add(name, run)
    _passes[name] = run


def remove_pass(name: str) -> None:
    """Forget a pass of `add_pass`."""
    if name not in _passes:
        raise LookupError(f"remove_pass: expected one of {sorted(_passes)}, got {name!r}")
    _core.pass_remove(name, _passes.pop(name))
