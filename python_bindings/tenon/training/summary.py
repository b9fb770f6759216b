# SPDX-License-Identifier: Apache-2.0
"""A table of a network: what each module makes, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenon import Tensor, nn

from .flops import FlopReport, evaluating, flops, tensors_of


class Row(NamedTuple):
    """One module, in the order in which they begin to run."""

    name: str  # dotted path; empty for the network itself
    kind: str
    output: Any  # the shape of its result, or a tuple of shapes
    parameters: int  # of its own, without the modules inside
    flops: int  # with the modules inside


class Summary:
    """The rows of a network, and their sums. `str(summary)` is the table."""

    def __init__(self, rows: Sequence[Row], network: nn.Module, report: FlopReport) -> None:
        self.rows = list(rows)
        parameters = list(network.parameters())
        self.parameters = sum(p.numel() for p in parameters)
        self.trainable = sum(p.numel() for p in parameters if p.requires_grad)
        self.bytes = sum(p.numel() * p.dtype.itemsize for p in (*parameters, *network.buffers()))
        self.flops = report.total

    def __repr__(self) -> str:
        lines = [("module", "output", "parameters", "FLOPs")]
        for row in self.rows:
            depth = row.name.count(".") + 1 if row.name else 0
            label = f"{'  ' * depth}{row.name.rpartition('.')[2]} {row.kind}".rstrip()
            label = label if row.name else row.kind
            lines.append((label, str(row.output), f"{row.parameters:,}", f"{row.flops:,}"))
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        table = [
            f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}"
            for a, b, c, d in lines
        ]
        rule = "-" * len(table[0])
        return "\n".join(
            [
                table[0],
                rule,
                *table[1:],
                rule,
                f"parameters {self.parameters:,}, trainable {self.trainable:,}, "
                f"{_readable(self.bytes)} with buffers; {self.flops:,} FLOPs",
            ]
        )


def summary(network: nn.Module, *inputs: Any) -> Summary:
    """Run `network(*inputs)` once, in eval mode and without gradients, and describe it.

    Tuples of ints among the inputs stand for a float32 tensor of that shape. A module that runs
    several times has one row for each; one that does not run has none.
    """
    inputs = tensors_of(inputs, network)
    report = flops(network, *inputs)
    rows: list[Row | None] = []
    open_rows: list[int] = []

    def begin(module: nn.Module, arguments: Any) -> None:
        open_rows.append(len(rows))
        rows.append(None)

    handles = []
    with evaluating(network):
        for name, module in network.named_modules():

            def end(module: nn.Module, arguments: Any, result: Any, name: str = name) -> None:
                own = sum(p.numel() for p in module.parameters(recurse=False))
                rows[open_rows.pop()] = Row(
                    name, type(module).__name__, _shapes(result), own, report.by_module[name]
                )

            handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
        try:
            network(*inputs)
        finally:
            for handle in handles:
                handle.remove()
    return Summary([row for row in rows if row is not None], network, report)


def _shapes(result: Any) -> Any:
    if isinstance(result, Tensor):
        return tuple(result.shape)
    if isinstance(result, (tuple, list)):
        return tuple(_shapes(item) for item in result)
    return type(result).__name__


def _readable(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
