# SPDX-License-Identifier: Apache-2.0
"""A graph of torch.compile as programs, one for each set of sizes that was seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import tenon
from tenon import _core
from tenon.jit.program import PASSES
from tenon.torch._convert import Weights, resolved
from tenon.torch._partition import divided
from tenon.torch._report import Report
from tenon.torch._sizes import at
from tenon.torch._walk import Walk

# Sets of sizes whose programs are kept, the last used ones.
MOST_PROGRAMS: Final = 64

Run = Callable[[list[Any]], Sequence[Any]]


class CompiledGraph:
    """Runs the graph on a list of arguments, which it empties. At sizes that it has not seen it builds first."""

    def __init__(self, torch: Any, graph: Any, entry: Report, *, denies: bool) -> None:
        self._torch = torch
        self._graph = graph
        self._entry = entry
        self._denies = denies
        self._weights = Weights()
        self._lock = threading.Lock()
        examples = [node.meta.get("val") for node in placeholders(graph)]
        self._symbols = [
            (index, str(example.node.expr))
            for index, example in enumerate(examples)
            if isinstance(example, torch.SymInt) and example.node.expr.is_Symbol
        ]
        self._programs: OrderedDict[tuple[int, ...], Run] = OrderedDict()
        if not self._symbols:
            self._program(())

    def __call__(self, arguments: list[Any]) -> Sequence[Any]:
        return self._program(tuple(arguments[index] for index, _ in self._symbols))(arguments)

    def _program(self, numbers: tuple[int, ...]) -> Run:
        with self._lock:
            program = self._programs.get(numbers)
            if program is None:
                program = self._programs[numbers] = self._build(numbers)
                if len(self._programs) > MOST_PROGRAMS:
                    self._programs.popitem(last=False)
            elif self._symbols:
                self._programs.move_to_end(numbers)
            return program

    def _build(self, numbers: tuple[int, ...]) -> Run:
        sizes = {name: size for (_, name), size in zip(self._symbols, numbers, strict=True)}
        self._entry.steps = self._entry.programs = 0
        walk, results = self._walked(self._graph, sizes)
        if not walk.left:
            return self._finished(self._graph, walk, results, sizes)
        if self._denies:
            walk.refuse_missing()
        walk.note_missing()
        parts = divided(self._torch, self._graph, walk.left)
        kinds, converted = dict(self._entry.kinds), dict(self._entry.converted)
        for name in parts.names:
            part = getattr(parts.graph, name)
            walk, results = self._walked(part, sizes)
            program = self._finished(part, walk, results, sizes)
            delattr(parts.graph, name)
            setattr(parts.graph, name, _part(program, is_list=len(results) > 1))
        for counted, before in ((self._entry.kinds, kinds), (self._entry.converted, converted)):
            counted.clear()
            counted.update(before)
        return _unboxed(parts.graph)

    def _walked(self, graph: Any, sizes: dict[str, int]) -> tuple[Walk, list[Any]]:
        walk = Walk(self._torch, sizes, self._weights, self._entry, leaves_random=True)
        with tenon.no_grad():
            for node in placeholders(graph):
                example = node.meta.get("val")
                if isinstance(example, self._torch.Tensor):
                    walk.values[node] = walk.input_or_missing(example)
                elif isinstance(example, self._torch.SymInt):
                    walk.values[node] = at(example, sizes)
                else:
                    walk.values[node] = example
            return walk, walk.value(_listed(walk.run(graph)))

    def _finished(
        self, graph: Any, walk: Walk, results: list[Any], sizes: dict[str, int]
    ) -> _Program:
        walk.refuse_missing()
        tensors = [each for each in results if isinstance(each, tenon.Tensor)]
        native: _core.Program = walk.builder.finish(tensors).optimize(",".join(PASSES))
        self._entry.steps += native.nsteps
        self._entry.programs += 1
        output = next(node for node in graph.graph.nodes if node.op == "output")
        promised = [getattr(node, "meta", {}).get("val") for node in _listed(output.args[0])]
        strides = [
            tuple(at(stride, sizes) for stride in example.stride())
            if isinstance(example, self._torch.Tensor)
            else None
            for example in promised
        ]
        return _Program(self._torch, native, results, strides, self._entry)


def placeholders(graph: Any) -> list[Any]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _listed(results: Any) -> Sequence[Any]:
    return results if isinstance(results, (list, tuple)) else [results]


def _part(program: _Program, *, is_list: bool) -> Callable[..., Any]:
    """A program as a part of a graph of PyTorch's, which calls it by its arguments; one result stands alone."""

    def call(*arguments: Any) -> Any:
        results = program(list(arguments))
        return results if is_list else results[0]

    return call


def _unboxed(graph: Any) -> Run:
    def run(arguments: list[Any]) -> Sequence[Any]:
        given = list(arguments)
        arguments.clear()
        results: Sequence[Any] = graph.forward(*given)
        return results

    return run


class _Program:
    """A program that takes and gives PyTorch's tensors."""

    def __init__(
        self,
        torch: Any,
        native: _core.Program,
        results: Sequence[Any],
        strides: Sequence[tuple[int, ...] | None],
        entry: Report,
    ) -> None:
        self._tensor = torch.Tensor
        self._torch = torch
        self._native = native
        self._entry = entry
        # Of each result: whether it is the program's next one, what it is otherwise, and its strides.
        self._results = [
            (True, None, promised) if isinstance(each, tenon.Tensor) else (False, each, None)
            for each, promised in zip(results, strides, strict=True)
        ]

    def __call__(self, arguments: list[Any]) -> list[Any]:
        tensor = self._tensor
        inputs = [
            tenon.from_dlpack(resolved(each.detach() if each.requires_grad else each))
            for each in arguments
            if isinstance(each, tensor)
        ]
        arguments.clear()
        made = iter(self._native.run(inputs))
        return [
            self._as_promised(_core.dlpack_exchange(next(made), tensor), promised)
            if is_made
            else other
            for is_made, other, promised in self._results
        ]

    def _as_promised(self, result: Any, strides: tuple[int, ...] | None) -> Any:
        """With the strides that the graph's later users were compiled for."""
        if strides is None or result.stride() == strides or result.numel() <= 1:
            return result
        self._entry.restrided += 1
        return self._torch.empty_strided(result.shape, strides, dtype=result.dtype).copy_(result)
