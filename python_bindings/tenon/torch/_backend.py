# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tenon"): forward graphs of inference as programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon.jit.program import PASSES
from tenon.torch._convert import Weights, resolved
from tenon.torch._load import _torch, kept_whole
from tenon.torch._report import Report, remember
from tenon.torch._walk import Walk

_FALLBACKS = ("allow", "deny")


def backend(module: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Any:
    """The compiler that `torch.compile(model, backend="tenon")` calls for each graph.

    AOTAutograd takes writes and gradients out of the graph, and what it leaves of the forward part becomes a program. Inputs and
    results share memory with PyTorch: nothing is copied, but for results whose strides PyTorch has promised otherwise. A graph that
    cannot be told stays with PyTorch, and `tenon.torch.report()` says why; options={"fallback": "deny"} makes it an
    error. Graphs of backward passes stay with PyTorch so far. Random numbers come from Tenon's streams.
    """
    torch = _torch()
    from torch._dynamo.backends.common import aot_autograd

    chosen = dict(options or {})
    fallback = chosen.pop("fallback", "allow")
    if chosen:
        raise ValueError(
            f"torch.compile: expected options among fallback, got {', '.join(map(repr, chosen))}"
        )
    if fallback not in _FALLBACKS:
        raise ValueError(
            f"torch.compile: expected fallback to be one of {', '.join(_FALLBACKS)}, got {fallback!r}"
        )

    def compile_forward(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
        return _compiled(torch, graph, denies=fallback == "deny")

    def leave_backward(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
        from functorch.compile import make_boxed_func

        return make_boxed_func(graph.forward)

    compiler = aot_autograd(
        fw_compiler=compile_forward, bw_compiler=leave_backward, decompositions=kept_whole(torch)
    )
    return compiler(module, inputs)


def _compiled(torch: Any, graph: Any, *, denies: bool) -> Callable[..., Any]:
    from functorch.compile import make_boxed_func

    entry = Report(f"graph of {len(graph.graph.nodes)} nodes")
    try:
        runner = _Runner(torch, graph, entry, denies=denies)
    except NotImplementedError:
        if denies:
            raise
        return make_boxed_func(graph.forward)
    finally:
        remember(entry)
    runner._boxed_call = True  # type: ignore[attr-defined]
    return runner


class _Runner:
    """A graph at the sizes of its inputs: a program for each that was seen, or PyTorch where it cannot be told and
    nothing denies that."""

    def __init__(self, torch: Any, graph: Any, entry: Report, *, denies: bool) -> None:
        self._torch = torch
        self._graph = graph
        self._entry = entry
        self._denies = denies
        self._weights = Weights()
        self._lock = threading.Lock()
        self._places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._examples = [node.meta.get("val") for node in self._places]
        self._symbols = [
            (index, str(example.node.expr))
            for index, example in enumerate(self._examples)
            if isinstance(example, torch.SymInt)
        ]
        output = next(node for node in graph.graph.nodes if node.op == "output")
        self._results = [getattr(each, "meta", {}).get("val") for each in output.args[0]]
        self._programs: dict[tuple[int, ...], tuple[Any, list[Any]] | None] = {}
        if not self._symbols:
            self._program(())

    def _program(self, sizes: tuple[int, ...]) -> tuple[Any, list[Any]] | None:
        """None: the graph at these sizes stays with PyTorch."""
        with self._lock:
            if sizes not in self._programs:
                try:
                    self._programs[sizes] = self._build(sizes)
                except NotImplementedError:
                    if self._denies or not self._symbols:
                        raise
                    self._programs[sizes] = None
            return self._programs[sizes]

    def _build(self, sizes: tuple[int, ...]) -> tuple[Any, list[Any]]:
        """The program, and what each result is: None for its next one, or a number."""
        named = {name: size for (_, name), size in zip(self._symbols, sizes, strict=True)}
        numbers = dict(zip((index for index, _ in self._symbols), sizes, strict=True))
        walk = Walk(self._torch, named, self._weights, self._entry)
        with tenon.no_grad():
            return self._walked(walk, numbers)

    def _walked(self, walk: Walk, numbers: Mapping[int, int]) -> tuple[Any, list[Any]]:
        for index, (node, example) in enumerate(zip(self._places, self._examples, strict=True)):
            if isinstance(example, self._torch.Tensor):
                walk.values[node] = walk.input(example)
            else:
                walk.values[node] = numbers.get(index, example)
        results = walk.value(walk.run(self._graph))
        walk.refuse_missing()
        tensors = [each for each in results if isinstance(each, tenon.Tensor)]
        native: _core.Program = walk.builder.finish(tensors).optimize(",".join(PASSES))
        self._entry.steps = native.nsteps
        return native, [None if isinstance(each, tenon.Tensor) else each for each in results]

    def __call__(self, arguments: list[Any]) -> list[Any]:
        torch = self._torch
        sizes = tuple(arguments[index] for index, _ in self._symbols)
        program = self._program(sizes)
        if program is None:
            given = list(arguments)
            arguments.clear()
            return list(self._graph.forward(*given))
        native, others = program
        inputs = [
            tenon.from_dlpack(resolved(each.detach() if each.requires_grad else each))
            for each in arguments
            if isinstance(each, torch.Tensor)
        ]
        arguments.clear()
        results = iter(native.run(inputs))
        returned: list[Any] = []
        for other, promised in zip(others, self._results, strict=True):
            if other is not None or promised is None:
                returned.append(other)
                continue
            returned.append(
                self._as_promised(_core.dlpack_exchange(next(results), torch.Tensor), promised)
            )
        return returned

    def _as_promised(self, result: Any, promised: Any) -> Any:
        """With the strides that the graph's later users were compiled for."""
        strides = promised.stride()
        if any(not isinstance(stride, int) for stride in strides) or result.stride() == strides:
            return result
        if result.numel() <= 1:
            return result
        self._entry.restrided += 1
        return self._torch.empty_strided(result.shape, strides, dtype=result.dtype).copy_(result)
