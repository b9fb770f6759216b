# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples, asked of methods of Tenon's tensors as a program for PyTorch would, outside of ports and the alias.

    python -m tests.fuzz.peers.methods [--only NAME,NAME] [--samples 40] [--list different] [--most 0]

Tenon's methods have NumPy's meaning where the two differ. A call that both have and that gives other values has to say so: by an
error or by a warning. An entry of PyTorch's `op_db` that is a method of tensors counts as

    agrees       every sample that Tenon takes gave PyTorch's result
    told         some gave another one, and a warning said so
    decided      some gave another one, for a reason in DECIDED, which docs/from_pytorch.md says, too
    different    some gave another one without a word
    refused      no sample was taken
    missing      Tenon's tensors have no such method

More than `--most` that are different are an error.

A result of which Tenon gives the first alone (the values of `max`) is another one. Dtypes are not compared: widening has
rules of its own.
"""

import argparse
import collections
import sys
import warnings
from typing import Any

import numpy as np
import tenon
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.fuzz.peers.op_db import DRAWN, PRODUCTS, NotHeld, describe, samples, to_arrays, to_tenon

STATES = ("agrees", "told", "decided", "different", "refused", "missing")

# What is another meaning here, by how its results differ.
_VALUES_ALONE = "1 results, PyTorch gives 2"
DECIDED: dict[str, tuple[str | tuple[str, ...], str]] = {
    "equal": ("shape", "compares elements, as in NumPy"),
    "max": (
        _VALUES_ALONE,
        "decision 190: the values alone, where the axis is given without a name",
    ),
    "min": (_VALUES_ALONE, "as max"),
    "sort": (_VALUES_ALONE, "the values alone"),
    "median": ("values", "the mean of the middle two, as in NumPy"),
    "nanmedian": ("values", "as median"),
    "std": ("values", "divides by n, as in NumPy"),
    "var": ("values", "as std"),
    "istft": ("values", "a complex window is conjugated, so that the result is the nearest signal"),
}
MEDIANS = {"median": np.median, "nanmedian": np.nanmedian}
# Their indices are those of any of several equal elements: values are compared.
TIED = ("kthvalue", "topk", "mode")


def differs(ours: list[Any], theirs: list[Any]) -> str | None:
    if len(ours) != len(theirs):
        return f"{len(ours)} results, PyTorch gives {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if mine.shape != other.shape:
            return f"shape {mine.shape}, PyTorch gives {other.shape}"
        if not np.allclose(mine, other, rtol=1e-3, atol=1e-3, equal_nan=True):
            return "values"
    return None


def is_decided(name: str, sample: Any, ours: list[Any], theirs: list[Any], why: str) -> bool:
    """Whether the results differ as DECIDED says, and in nothing else that can be told."""
    kind = DECIDED[name][0] if name in DECIDED else "-"
    if not why.startswith(kind):
        return False
    if kind == _VALUES_ALONE:
        return differs(ours, theirs[:1]) is None
    if name in MEDIANS and not sample.args and not sample.kwargs:
        return differs(ours, [MEDIANS[name](sample.input.detach().numpy())]) is None
    return True


def judge(entry: Any, limit: int) -> tuple[str, str]:
    taken, told, decided = 0, "", False
    for _, sample in samples(entry, limit):
        try:
            given, named = to_tenon((sample.input, *sample.args)), to_tenon(sample.kwargs)
        except NotHeld:
            continue
        if not isinstance(given[0], tenon.Tensor):
            continue
        method = getattr(given[0], entry.name, None)
        if not callable(method):
            return "missing", ""
        try:
            theirs = to_arrays(getattr(sample.input, entry.name)(*sample.args, **sample.kwargs))
        except Exception:
            continue
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                ours = to_arrays(method(*given[1:], **named))
            except Exception:
                continue
        taken += 1
        if entry.name in TIED:
            ours, theirs = ours[:1], theirs[:1]
        why = differs(ours, theirs)
        if why is None:
            continue
        if is_decided(entry.name, sample, ours, theirs, why):
            decided = True
            continue
        arguments = [describe(each) for each in (sample.input, *sample.args)]
        arguments += [f"{k}={describe(v)}" for k, v in sample.kwargs.items()]
        call = f"({', '.join(arguments)}): {why}"
        if not heard:
            return "different", call
        told = told or call
    if told:
        return "told", told
    if decided:
        return "decided", DECIDED[entry.name][1]
    return ("agrees", f"{taken} samples") if taken else ("refused", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--list", default="different")
    parser.add_argument("--most", type=int, default=0, help="different entries that are no error")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    states: collections.Counter[str] = collections.Counter()
    seen = set()
    for entry in op_db:
        if only and entry.name not in only:
            continue
        is_method = "." not in entry.name and hasattr(torch.Tensor, entry.name)
        if not is_method or entry.name in DRAWN or entry.name in PRODUCTS:
            continue
        if (entry.name, entry.variant_test_name) in seen:
            continue
        seen.add((entry.name, entry.variant_test_name))
        state, why = judge(entry, options.samples)
        states[state] += 1
        if state in options.list.split(","):
            print(f"{state}: {entry.name} {why}", flush=True)
    print(", ".join(f"{states[state]} {state}" for state in STATES))
    return 0 if states["different"] <= options.most else 1


if __name__ == "__main__":
    sys.exit(main())
