# SPDX-License-Identifier: Apache-2.0
"""What quantisation changed, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import tenon
from tenon import Tensor, nn

from .layers import BlockEmbedding, BlockLinear, Float8Linear, Int8Conv, Int8Linear
from .program_layers import as_module

_QUANTIZED = (BlockLinear, BlockEmbedding, Float8Linear, Int8Linear, Int8Conv)


class LayerReport(NamedTuple):
    """One layer: both networks ran on the same batches, so errors of layers before it count."""

    name: str
    kind: str
    sqnr: float  # signal to error of its results, in decibels; inf if they are equal
    cosine: float  # of its results
    weight_sqnr: float  # of its weight alone
    bytes: int  # of its weight with scales
    float_bytes: int


class Report(NamedTuple):
    layers: list[LayerReport]
    sqnr: float  # of the results of the whole network
    cosine: float

    def __str__(self) -> str:
        rows = [("layer", "kind", "SQNR dB", "cosine", "weight dB", "bytes", "of float")]
        for each in self.layers:
            part = each.bytes / each.float_bytes if each.float_bytes else 0.0
            rows.append(
                (
                    each.name,
                    each.kind,
                    f"{each.sqnr:.1f}",
                    f"{each.cosine:.5f}",
                    f"{each.weight_sqnr:.1f}",
                    str(each.bytes),
                    f"{part:.3f}",
                )
            )
        rows.append(("result", "", f"{self.sqnr:.1f}", f"{self.cosine:.5f}", "", "", ""))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in rows
        )


class _Sums:
    """Of a signal and its error."""

    def __init__(self) -> None:
        self.signal = self.other = self.product = self.error = 0.0

    def add(self, wanted: Tensor, got: Tensor) -> None:
        a, b = (each.detach().to("cpu").to(tenon.float64) for each in (wanted, got))
        self.signal += float((a * a).sum())
        self.other += float((b * b).sum())
        self.product += float((a * b).sum())
        self.error += float(((a - b) ** 2).sum())

    @property
    def sqnr(self) -> float:
        if self.error == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.error) if self.signal else -math.inf

    @property
    def cosine(self) -> float:
        norms = math.sqrt(self.signal * self.other)
        return self.product / norms if norms else 1.0


def report(reference: nn.Module, quantized: nn.Module, batches: Iterable[Any]) -> Report:
    """Run both modules on `batches` and compare the results of each quantised layer, and of the whole."""
    reference, quantized = (as_module("report", each) for each in (reference, quantized))
    pairs = [
        (name, reference.get_submodule(name), layer)
        for name, layer in quantized.named_modules()
        if isinstance(layer, _QUANTIZED)
    ]
    if not pairs:
        raise ValueError(f"report: {type(quantized).__name__} has no quantised layer")
    sums = {name: _Sums() for name, _, _ in pairs}
    whole = _Sums()
    results: dict[str, list[Tensor]] = {}

    def keep(name: str) -> Any:
        def hook(_: nn.Module, __: tuple, result: Tensor) -> None:
            results.setdefault(name, []).append(result)

        return hook

    def compare(name: str) -> Any:
        def hook(_: nn.Module, __: tuple, result: Tensor) -> None:
            sums[name].add(results[name].pop(0), result)

        return hook

    handles = [layer.register_forward_hook(keep(name)) for name, layer, _ in pairs]
    handles += [layer.register_forward_hook(compare(name)) for name, _, layer in pairs]
    count = 0
    try:
        with tenon.no_grad():
            for batch in batches:
                arguments = batch if isinstance(batch, tuple) else (batch,)
                wanted = reference(*arguments)
                whole.add(wanted, quantized(*arguments))
                count += 1
    finally:
        for handle in handles:
            handle.remove()
    if not count:
        raise ValueError("report: expected at least one batch, got none")
    return Report(
        [_layer_report(name, layer, made, sums[name]) for name, layer, made in pairs],
        whole.sqnr,
        whole.cosine,
    )


def _layer_report(name: str, layer: Any, made: Any, sums: _Sums) -> LayerReport:
    weight = _Sums()
    weight.add(layer.weight, made.float_weight())
    stored = [made.weight] + ([made.weight_scale] if hasattr(made, "weight_scale") else [])
    return LayerReport(
        name,
        type(made).__name__,
        sums.sqnr,
        sums.cosine,
        weight.sqnr,
        sum(each.nbytes for each in stored),
        layer.weight.nbytes,
    )
