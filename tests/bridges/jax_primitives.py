# SPDX-License-Identifier: Apache-2.0
"""How many of JAX's primitives `tenon.jax.jit` computes as `jax.jit` does, by the samples that JAX's wheel brings.

    python -m tests.bridges.jax_primitives [--only NAME,NAME] [--samples 4] [--at-least 110]

A primitive agrees where each sample that JAX itself computes on the CPU gives the same numbers, shapes and dtypes. Runs where JAX
and absl-py are installed. Prints each other primitive with its first reason and, last, how many agree.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import warnings
from typing import Any

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
import tenon
from jax._src.internal_test_util import test_harnesses

_TOLERANCES = {
    2: 2e-2,
    4: 1e-4,
    8: 1e-9,
}  # relative to the largest element, by bytes of a real number


def same(ours: Any, theirs: Any) -> str | None:
    """What differs."""
    ours, theirs = map(np.asarray, (ours, theirs))
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)}, and {theirs.dtype}{list(theirs.shape)} of JAX's"
    if ours.dtype.kind not in "fcV":
        return None if (ours == theirs).all() else "other numbers"
    bytes = ours.itemsize // (2 if ours.dtype.kind == "c" else 1)
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    finite = np.abs(b[np.isfinite(b)])
    largest = float(finite.max()) if finite.size else 1.0
    limit = _TOLERANCES.get(bytes, 2e-1)
    return None if np.allclose(a, b, limit, limit * largest, equal_nan=True) else "other numbers"


def outcome(harness: Any) -> str | None:
    """Why the sample does not agree; raises LookupError where JAX has no answer."""
    arguments = harness.dyn_args_maker(np.random.RandomState(0))
    try:
        theirs = jax.tree_util.tree_leaves(jax.jit(harness.dyn_fun)(*arguments))
    except Exception as error:
        raise LookupError(str(error)) from error
    try:
        ours = jax.tree_util.tree_leaves(tenon.jax.jit(harness.dyn_fun)(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
    if len(ours) != len(theirs):
        return f"{len(ours)} results, and {len(theirs)} of JAX's"
    return next((text for pair in zip(ours, theirs, strict=True) if (text := same(*pair))), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="primitives of these names")
    parser.add_argument("--samples", type=int, default=4, help="of each primitive")
    parser.add_argument("--at-least", type=int, default=0, help="primitives that agree")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    groups: dict[str, list[Any]] = collections.defaultdict(list)
    for harness in test_harnesses.all_harnesses:
        groups[harness.group_name].append(harness)
    chosen = options.only.split(",") if options.only else sorted(groups)
    agreed = asked = 0
    for name in chosen:
        step = max(1, len(groups[name]) // options.samples)
        reasons: list[str] = []
        count = 0
        for harness in groups[name][::step]:
            try:
                reason = outcome(harness)
            except LookupError:
                continue
            count += 1
            reasons += [f"{harness.fullname}: {reason}"] if reason else []
        asked += count > 0
        agreed += count > 0 and not reasons
        if reasons or not count:
            print(f"{name}: {len(reasons)} of {count}: {(reasons or ['no sample'])[0]}", flush=True)
    print(f"{agreed} of {asked} primitives agree in every sample")
    return 0 if agreed >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
