# SPDX-License-Identifier: Apache-2.0
"""What a compiled function keeps for a signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.captured_state import Outside
from tenon.jit.sharded_results import ShardedResults
from tenon.jit.signature import span

_MUCH = 1 << 40  # elements


class Entry:
    """One signature: what it was recorded as so far."""

    def __init__(self, signature: str) -> None:
        self.signature = signature
        # Of operators: programs hold the parts that operators are made of, which may be defined anew.
        self.generation = _core.kernel_generation()
        self.first: _core.Program | None = None
        self.returned: Any = None  # the structure of the result
        self.program: Any = None
        self.sharded: ShardedResults | None = None
        self.reason = ""  # why it stays without a program
        self.recordings = self.calls = self.changes = self.renewals = 0
        self.seconds = 0.0
        self.work = _MUCH  # elements that are read and made, at most

    def become(self, program: Any) -> None:
        _, _, has_control_flow = program._native.effects()
        if not has_control_flow:  # which may run for any time
            leaves = sum(t.numel() for _, t, _ in program._native.leaves())
            self.work = leaves + program.memory()["kept"]
        self.program, self.first = program, None  # other threads may run it from here on

    def spans(self, outside: Outside) -> tuple[list[int], list[int]]:
        """Of the memory that the function reaches beside its arguments: where each tensor starts, in order, and the last
        end of it and all before."""
        leaves = [tensor for _, tensor, _ in self.program._native.leaves()]
        spans = sorted(span(t) for t in (*leaves, *outside.tensors()) if t.numel())
        ends: list[int] = []
        for _, end in spans:
            ends.append(max(end, ends[-1] if ends else 0))
        return [start for start, _ in spans], ends

    def run(self, tensors: Sequence[Tensor]) -> Any:
        self.calls += 1
        results = self.program._run(tensors)
        if self.sharded is not None:
            return self.sharded.assemble(self.program._outputs, results)
        if self.program._returns_one:
            return results
        return structures.unflatten(self.program._outputs, iter(results))
