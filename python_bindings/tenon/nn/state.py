# SPDX-License-Identifier: Apache-2.0
"""Loading a state dict: what fits is copied, what does not is explained."""

from __future__ import annotations

from collections.abc import Mapping

import tenon
from tenon import Tensor


class LoadReport:
    """What load_state_dict(strict=False) did not find a partner for."""

    def __init__(self, missing: list[str], unexpected: list[str]) -> None:
        self.missing = missing
        self.unexpected = unexpected

    def __repr__(self) -> str:
        return f"LoadReport(missing={self.missing}, unexpected={self.unexpected})"


def load_tensors(
    own: Mapping[str, Tensor], given: Mapping[str, Tensor], strict: bool, caller: str
) -> LoadReport:
    """Copy the tensors of `given` into those of `own` of the same name; all of them, or none."""
    report = LoadReport([n for n in own if n not in given], [n for n in given if n not in own])
    problems = []
    if strict:
        for name in report.missing:
            problems.append(f"missing: {name} (expected shape {tuple(own[name].shape)})")
        problems += [f"unexpected: {name}" for name in report.unexpected]
    for name, tensor in own.items():
        if name in given and tuple(tensor.shape) != tuple(given[name].shape):
            expected, got = tuple(tensor.shape), tuple(given[name].shape)
            problems.append(f"{name}: expected shape {expected}, got {got}")
    if problems:
        hint = "; pass strict=False to load what fits" if strict else ""
        lines = "\n  ".join(problems)
        raise ValueError(f"{caller}: {len(problems)} tensors do not fit{hint}:\n  {lines}")
    with tenon.no_grad():
        for name, tensor in own.items():
            if name in given:
                tensor.copy_(given[name])
    return report
