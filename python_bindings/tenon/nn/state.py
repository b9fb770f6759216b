# SPDX-License-Identifier: Apache-2.0
"""Loading a state dict: what fits is copied, what does not is explained."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping

import tenon
from tenon import Tensor


class LoadReport:
    """What load_state_dict(strict=False) did not find a partner for, and what it skipped.

    Unpacks as `missing, unexpected = report`. `str(report)` is a list for people, one line for
    each name, with shapes.
    """

    def __init__(
        self,
        missing: list[str],
        unexpected: list[str],
        mismatched: list[str] | None = None,
    ) -> None:
        self.missing = missing
        self.unexpected = unexpected
        self.mismatched = mismatched or []
        self.loaded: list[str] = []
        self._shapes: dict[str, str] = {}

    @property
    def missing_keys(self) -> list[str]:
        return self.missing

    @property
    def unexpected_keys(self) -> list[str]:
        return self.unexpected

    def __iter__(self) -> Iterator[list[str]]:
        return iter((self.missing, self.unexpected))

    def __str__(self) -> str:
        lines = [f"{len(self.loaded)} tensors loaded"]
        for kind in ("missing", "unexpected", "mismatched"):
            names = getattr(self, kind)
            lines += [f"  {kind}: {name} {self._shapes.get(name, '')}".rstrip() for name in names]
        return "\n".join(lines + [f"  {line}" for line in _suggestions(self)])

    def __repr__(self) -> str:
        more = f", mismatched={self.mismatched}" if self.mismatched else ""
        return f"LoadReport(missing={self.missing}, unexpected={self.unexpected}{more})"


def load_tensors(
    own: Mapping[str, Tensor],
    given: Mapping[str, Tensor],
    strict: bool,
    caller: str,
    optional: Collection[str] = (),
    mismatched: str = "refuse",
) -> LoadReport:
    """Copy the tensors of `given` into those of `own` of the same name; all of them, or none."""
    if mismatched not in ("refuse", "skip"):
        raise ValueError(f"{caller}: expected mismatched 'refuse' or 'skip', got {mismatched!r}")
    report = LoadReport(
        [n for n in own if n not in given and n not in optional],
        [n for n in given if n not in own],
    )
    problems = []
    if strict:
        for name in report.missing:
            problems.append(f"missing: {name} (expected shape {tuple(own[name].shape)})")
        problems += [f"unexpected: {name}" for name in report.unexpected]
    for name, tensor in own.items():
        if name not in given:
            continue
        if not isinstance(given[name], Tensor):
            problems.append(f"{name}: expected a Tensor, got {type(given[name]).__name__}")
        elif tuple(tensor.shape) != tuple(given[name].shape):
            expected, got = tuple(tensor.shape), tuple(given[name].shape)
            if mismatched == "skip":
                report.mismatched.append(name)
            else:
                problems.append(f"{name}: expected shape {expected}, got {got}")
        elif reason := _why_not_copied(tensor, given[name]):
            problems.append(f"{name}: {reason}")
    if problems:
        hint = "; pass strict=False to load what fits" if strict else ""
        lines = "\n  ".join(problems + _suggestions(report))
        raise ValueError(f"{caller}: {len(problems)} tensors do not fit{hint}:\n  {lines}")
    with tenon.no_grad():
        for name, tensor in own.items():
            if name in given and name not in report.mismatched:
                tensor.copy_(given[name])
                report.loaded.append(name)
    report._shapes = {
        **{name: f"{tuple(own[name].shape)}" for name in report.missing},
        **{name: f"{tuple(given[name].shape)}" for name in report.unexpected},
        **{
            name: f"expected {tuple(own[name].shape)}, got {tuple(given[name].shape)}"
            for name in report.mismatched
        },
    }
    return report


def _why_not_copied(target: Tensor, source: Tensor) -> str | None:
    """Tried with no elements, so that what does not fit is known before anything is written."""
    if source.device.kind == "meta" and target.device.kind != "meta":
        return "expected values, got a tensor on the device meta"
    if source.dtype.is_complex and not target.dtype.is_complex:
        return f"{source.dtype.name} would lose its imaginary part in {target.dtype.name}"
    with tenon.no_grad():
        try:
            tenon.empty([0], dtype=target.dtype, device=target.device).copy_(
                tenon.empty([0], dtype=source.dtype, device=source.device)
            )
        except Exception as error:
            return f"{source.dtype.name} does not become {target.dtype.name}: {error}"
    return None


def _suggestions(report: LoadReport) -> list[str]:
    """What could explain names that differ: a common prefix, or names that are nearly the same."""
    if not report.missing or not report.unexpected:
        return []
    first = report.unexpected[0]
    for name in report.missing:
        if first.endswith("." + name):
            prefix = first[: -len(name)]
            return [
                f"the given names begin with {prefix!r}: pass "
                f"{{k.removeprefix({prefix!r}): v for k, v in state.items()}}"
            ]
        if name.endswith("." + first):
            return [f"the given names lack the prefix {name[: -len(first)]!r}"]
    lines = []
    for name in report.missing[:5]:
        similar = difflib.get_close_matches(name, report.unexpected, 1, 0.8)
        if similar:
            lines.append(f"perhaps {similar[0]} is {name}")
    return lines
