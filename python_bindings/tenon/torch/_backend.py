# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tenon"): forward and backward graphs as programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenon.torch._compiled_graph import CompiledGraph
from tenon.torch._decompositions import kept_whole
from tenon.torch._load import _torch
from tenon.torch._report import Report, remember

_FALLBACKS = ("allow", "deny")


def backend(module: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Any:
    """The compiler that `torch.compile(model, backend="tenon")` calls for each graph.

    AOTAutograd takes writes out of the graph and divides it into a forward and a backward graph; each becomes a program.
    Inputs and results share memory with PyTorch: nothing is copied, but for results whose strides PyTorch has promised
    otherwise. Calls that cannot be told stay with PyTorch, between programs of the others, and `tenon.torch.report()` says
    which and why; options={"fallback": "deny"} makes them an error, NotImplementedError. Random numbers are drawn by
    PyTorch's generators, whose calls stay with PyTorch, so that a seed gives the numbers that it gives in eager.
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

    def compiler(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
        return _compiled(torch, graph, denies=fallback == "deny")

    compile_graphs = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        decompositions=kept_whole(torch, training=_is_training(torch, module, inputs)),
    )
    return compile_graphs(module, inputs)


def _is_training(torch: Any, module: Any, inputs: Sequence[Any]) -> bool:
    """Whether there will be a backward graph."""
    given = [each for each in inputs if isinstance(each, torch.Tensor)]
    return torch.is_grad_enabled() and any(
        each.requires_grad for each in (*given, *module.parameters())
    )


def _compiled(torch: Any, graph: Any, *, denies: bool) -> Callable[..., Any]:
    entry = Report(f"graph of {len(graph.graph.nodes)} nodes")
    try:
        compiled = CompiledGraph(torch, graph, entry, denies=denies)
    finally:
        remember(entry)
    compiled._boxed_call = True  # type: ignore[attr-defined]
    return compiled
