# SPDX-License-Identifier: Apache-2.0
"""Rewrites of programs: expressions of operators that may stand for others, and the search for one that went wrong.

    tenon.jit.rewrites.rewrite("twice", "x + x", "x * 2")
    program = tenon.export(model, (x,), numerics="fast")
    print(program.changes())

A rewrite is tried on arguments that are drawn before it is believed: one that does not hold is refused with a
counterexample. Those that come with Tenon are in `rewrites()`; docs/rewrites.md says how they are written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.program import NUMERICS, PASSES, Program, export
from tenon.jit.syntax import rewritten_source

__all__ = [
    "Bisection",
    "Rewrite",
    "bisect",
    "check",
    "remove",
    "rewrite",
    "rewrites",
    "rewritten_source",
]


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """`target` may stand for `source`, for tensors of these dtypes."""

    name: str
    source: str
    target: str
    numerics: str  # "exact", "ulp", "fast": see `Program.optimize`
    units: float
    dtypes: tuple[_core.dtype, ...]


def rewrite(
    name: str,
    source: str | Sequence[str],
    target: str | Sequence[str],
    *,
    numerics: str = "exact",
    units: float = 0,
    dtypes: Iterable[_core.dtype | str] | None = None,
) -> None:
    """Add a rewrite: programs that are made from now on have `target` where they had `source`.

    Both are expressions in the grammar of gradients in operator files: calls of operators, signs, numbers, and
    names. A name is a tensor, or an attribute if an operator takes one there, as the axis in
    "softmax(x, a)". A sequence of "name = expression", with the result last, names parts. Parts that are
    written alike are one value of the program. Whatever else reads a part of `source` keeps the rewrite
    from being applied; so does a result whose shape, dtype or device would be another.

    `numerics` and `units` say how far apart both may be (see `Program.optimize`); `dtypes`, which tensors the
    names stand for; None: all.

    Raises RuntimeError with a counterexample if the rewrite does not hold, or if no arguments were found
    that both sides take; ValueError if an expression is not one.
    """
    if numerics not in NUMERICS:
        raise ValueError(f"rewrite: expected numerics 'exact', 'ulp' or 'fast', got {numerics!r}")
    texts = [side if isinstance(side, str) else "\n".join(side) for side in (source, target)]
    _core.rewrite_add(name, texts[0], texts[1], NUMERICS.index(numerics), units, dtypes)


def remove(name: str) -> None:
    """Forget a rewrite, also one of Tenon's own. Programs that exist stay as they are."""
    _core.rewrite_remove(name)


def rewrites() -> list[Rewrite]:
    """Those that are known, in the order in which they are tried at each step of a program."""
    return [
        Rewrite(name, source, target, NUMERICS[numerics], units, tuple(dtypes))
        for name, source, target, numerics, units, dtypes in _core.rewrite_list()
    ]


def check(name: str, seed: int = 0) -> None:
    """Try a rewrite that is known on other arguments than before: RuntimeError with a counterexample if
    it does not hold."""
    _core.rewrite_check(name, seed)


@dataclasses.dataclass(frozen=True)
class Bisection:
    """What `bisect` found."""

    culprit: str | None  # a pass, or "rewrites: " and a rewrite; None: results stay right
    program: Program  # the last one whose results are right
    steps: tuple[
        tuple[str, bool], ...
    ]  # what was added one after another, and whether results were right

    def __str__(self) -> str:
        lines = [f"{'right' if is_right else 'WRONG'}  {name}" for name, is_right in self.steps]
        end = (
            f"{self.culprit} changes the results" if self.culprit else "no pass changes the results"
        )
        return "\n".join([*lines, end])


def bisect(
    function: Callable[..., Any],
    inputs: Any = (),
    *,
    passes: Sequence[str] = PASSES,
    numerics: str = "exact",
    is_right: Callable[[Any], bool] | None = None,
) -> Bisection:
    """The first pass or rewrite that makes the results of a function's program wrong.

    Records the function without passes, then adds passes one after another, and rewrites one by one, and runs
    each program. `is_right(results)` judges; without it results are right if their bits are those of
    the program without passes. A function that writes into tensors from outside writes at each run.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    plain = export(function, inputs, passes=())
    if is_right is None:
        expected = _bytes_of(plain(*inputs))

        def is_right(results: Any) -> bool:
            return _bytes_of(results) == expected

    steps: list[tuple[str, bool]] = [("as recorded", bool(is_right(plain(*inputs))))]
    if not steps[0][1]:
        return Bisection("as recorded", plain, tuple(steps))
    right, done = plain, []
    names = [each.name for each in rewrites()]
    for name in passes:
        done.append(name)
        for label, without in _stages(name, names):
            level = numerics if "rewrites" in done else "exact"
            changed = plain.optimize(done, numerics=level, without=without)
            steps.append((label, bool(is_right(changed(*inputs)))))
            if not steps[-1][1]:
                return Bisection(label, right, tuple(steps))
            right = changed
    return Bisection(None, right, tuple(steps))


def _stages(name: str, rewrites: list[str]) -> list[tuple[str, list[str]]]:
    """What a pass is added as: itself, or rewrite by rewrite, with those that are still left out."""
    if name != "rewrites":
        return [(name, [])]
    return [(f"rewrites: {each}", rewrites[i + 1 :]) for i, each in enumerate(rewrites)]


def _bytes_of(results: Any) -> list[bytes]:
    tensors: list[Tensor] = []
    structures.flatten(results, tensors)
    return [tensor.detach().cpu().numpy().tobytes() for tensor in tensors]
