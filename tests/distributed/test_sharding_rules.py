# SPDX-License-Identifier: Apache-2.0
"""Every rule, by machine: the samples of all operators with operands in parts on 2 and 3 ranks, against the whole.

Axes are cut unevenly and into nothing where the samples' shapes do so; sums are made of parts of both signs with an offset.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon.distributed import Partial, Replicate, Shard

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from case import differentiable, results_of
from samples import CASES

# Orders among equal elements, and factors that are unique up to a sign, are not functions of the elements.
TOLERANCE = {"float32": (2e-4, 2e-5), "float64": (1e-8, 1e-9)}


def arrays_of(case):
    """Positions of arrays: (argument, element of a list or None, array)."""
    found = []
    for i, value in enumerate(case.args):
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        found += [(i, k, each) for k, each in items if isinstance(each, np.ndarray)]
    return found


def choices(case):
    """One placement for each array of the case: every axis of each of them cut alone, the same axis of all, sums."""
    arrays = [array for _, _, array in arrays_of(case)]
    whole = [Replicate()] * len(arrays)
    seen = []
    for k, array in enumerate(arrays):
        for axis in range(array.ndim):
            seen.append([*whole[:k], Shard(axis), *whole[k + 1 :]])
        if array.dtype.kind == "f" and array.size:
            seen.append([*whole[:k], Partial("sum"), *whole[k + 1 :]])
            seen.append([*whole[:k], Partial("max"), *whole[k + 1 :]])
    if len(arrays) > 1:
        for axis in range(-1, 1):
            seen.append([Shard(axis % a.ndim) if a.ndim else Replicate() for a in arrays])
        seen.append([Partial("sum") if a.dtype.kind == "f" else Replicate() for a in arrays])
    return seen


def part_of(mesh, array, placement, requires_grad=False):
    size, rank = mesh.shape[0], mesh.get_coordinate()[0]
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = array.astype("f4")
    local = array
    if isinstance(placement, Shard):
        n = array.shape[placement.dim]
        local = np.take(array, range(n * rank // size, n * (rank + 1) // size), placement.dim)
    elif placement == Partial("sum"):
        local = array * 0.6 + 0.5 if rank == 0 else (array * 0.4 - 0.5) / (size - 1)
    elif placement == Partial("max"):
        local = array if rank == size - 1 else array - 1.0 - rank
    x = dist.from_local(
        tenon.tensor(np.ascontiguousarray(local.astype(array.dtype)).reshape(local.shape)),
        mesh,
        [placement],
        shape=array.shape,
    ).detach()
    return x.requires_grad_() if requires_grad and array.dtype.kind == "f" else x


def call(case, tensors, seed=5):
    args = [list(a) if isinstance(a, list) else a for a in case.args]
    for (i, k, _), tensor in zip(arrays_of(case), tensors, strict=True):
        if k is None:
            args[i] = tensor
        else:
            args[i][k] = tensor
    tenon.manual_seed(seed)
    kwargs = {
        name: tenon.tensor(value) if isinstance(value, np.ndarray) else value
        for name, value in case.kwargs.items()
    }
    return results_of(getattr(tenon, case.op)(*args, **kwargs))


def whole_of(x):
    return x.full_tensor().detach() if x.layout == "sharded" else x.detach()


def differences(got, want):
    if len(got) != len(want):
        return "another number of results"
    for one, other in zip(got, want, strict=True):
        if tuple(one.shape) != tuple(other.shape) or one.dtype != other.dtype:
            return f"{tuple(one.shape)} {one.dtype} instead of {tuple(other.shape)} {other.dtype}"
        a, b = one.numpy(), other.numpy()
        rtol, atol = TOLERANCE.get(str(b.dtype), (2e-4, 2e-5))
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind in "fc" else 1.0
        if not np.allclose(a, b, rtol=rtol, atol=atol * scale, equal_nan=True):
            return "other numbers"
    return ""


def plain(case):
    arrays = [array for _, _, array in arrays_of(case)]
    return [tenon.tensor(a.astype("f4") if a.dtype.kind == "f" else a) for a in arrays]


def wanted(case, tensors, has_gradients):
    """Results of whole tensors, and the gradients of those that are floats."""
    if has_gradients:
        tensors = [x.requires_grad_() if x.dtype.is_floating_point else x for x in tensors]
    results = call(case, tensors)
    if has_gradients:
        sum(r.sum() for r in results if r.requires_grad).backward()
    return [r.detach() for r in results], [x.grad for x in tensors]


def failures_of(cases, has_gradients=False):
    """On every rank: (case, placements, what is wrong)."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    found = []
    for case in cases:
        try:
            of_arrays = wanted(case, plain(case), has_gradients)
        except Exception:  # float32, or a gradient of everything, is not served; other tests say so
            continue
        for placements in choices(case):
            is_rounded = any(p.is_partial() for p in placements)
            if is_rounded and not is_smooth(case):
                continue
            parts = [
                part_of(mesh, array, placement, has_gradients)
                for (_, _, array), placement in zip(arrays_of(case), placements, strict=True)
            ]
            # A sum of parts is another number by a rounding, and some operators count, compare or step by such a number.
            want, want_grads = of_arrays
            if is_rounded:
                wholes = [whole_of(p) for p in parts]
                assert differences(wholes, plain(case)) == ""
                want, want_grads = wanted(case, wholes, has_gradients)
            try:
                results = call(case, parts)
                text = differences([whole_of(r) for r in results], want)
                if has_gradients and not text:
                    sum(r.sum() for r in results if r.requires_grad).backward()
                    grads = [
                        (whole_of(p.grad), w)
                        for p, w in zip(parts, want_grads, strict=True)
                        if w is not None and p.grad is not None
                    ]
                    if [p.grad is None for p in parts] != [w is None for w in want_grads]:
                        text = "other tensors have gradients"
                    else:
                        text = differences([g for g, _ in grads], [w for _, w in grads])
                        text = text and "gradients: " + text
            except dist.CollectiveError as error:
                # Ranks that went different ways: the others are in another call by now.
                raise AssertionError(f"{case} {placements}: {error}") from error
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            if text:
                found.append((str(case), str(placements), text))
    return found


def is_smooth(case):
    """Whether rounding of the operands, which a sum makes, moves results by a rounding only."""
    return bool(differentiable(case))


def check(size, cases, **options):
    before = dist.reshard_policy("allow")
    try:
        with warnings.catch_warnings(), dist.local(size) as ranks:
            warnings.simplefilter("ignore")
            return ranks.run(failures_of, cases, **options)[0]
    finally:
        dist.reshard_policy(before)


EVERY = 1 if os.environ.get("TENON_TEST_EXHAUSTIVE") == "1" else 8


@pytest.mark.parametrize("size", [2, 3])
def test_rules_give_the_whole(size):
    assert check(size, CASES[size - 2 :: EVERY]) == []


def test_gradients_are_those_of_the_whole():
    cases = [case for case in CASES if differentiable(case) and case.smooth is None]
    assert check(2, cases[:: 3 * EVERY], has_gradients=True) == []


# Of these the sample that is taken of all may have none.
@pytest.mark.parametrize(
    "names",
    [
        "masked_select nonzero csr_product coo_coalesce",
        "one_hot quantile softmax_with_cross_entropy",
    ],
)
def test_what_depends_on_data_is_served(names):
    """Shapes that elements decide, and elements that a composite checks."""
    cases = [case for case in CASES if case.op in names.split()]
    assert {case.op for case in cases} == set(names.split()) and check(2, cases) == []


def index_of_no_class():
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    classes = dist.distribute_tensor(tenon.tensor([0, 1, 1, 9]), mesh, [Shard(0)])
    try:
        return str(tenon.one_hot(classes, 3).placements)
    except IndexError as error:
        return str(error)


def test_elements_are_checked_part_by_part():
    with dist.local(2) as ranks:
        first, second = ranks.run(index_of_no_class)
    assert first == "(Shard(0),)" and "[one_hot] expected indices from 0 to 2, got 9" in second


# Each is wrong in one place, and right in shapes.
PLANTED = {
    "add": "elementwise; linear x | y",
    "multiply": "elementwise; linear x y",
    "exp": "elementwise; linear x",
    "relu": "elementwise; linear x",
    "sum": "reduce max",
    "mean": "reduce sum",
    "max": "reduce sum",
    "prod": "reduce sum",
    "norm2": "reduce sum; linear x",
    "matmul": "... [m] k, ... k [n] -> ... m n; k: max",
    "linear": "... k, n k, n -> ... n; k: sum",
    "softmax": "rows last(0)",
    "log_softmax": "rows last(0)",
    "layer_norm": "rows last(0)",
    "cumsum": "rows last(0)",
    "cumprod": "rows axis; linear x",
    "sort_with_indices": "rows last(0)",
    "argmax": "reduce max",
    "gather": "rows axis; whole index",
    "embedding": "v d, ... -> ... d; v: sum",
    "conv2d": "n c H W, O c K L, O -> n O Y X; c: sum",
    "scatter_add": "rows axis; linear x",
    "logsumexp": "rows axis; linear x",
    "var": "rows axis; linear x",
    "maximum": "elementwise; linear x y",
    "minimum": "elementwise; linear x",
    "subtract": "elementwise; linear x",
    "divide": "elementwise; linear y",
    "abs": "elementwise; linear x",
    "square": "elementwise; linear x",
    "sqrt": "elementwise; linear x",
    "log": "elementwise; linear x",
    "sin": "elementwise; linear x",
    "tanh": "elementwise; linear x",
    "sigmoid": "elementwise; linear x",
    "gelu": "elementwise; linear x",
    "erf": "elementwise; linear x",
    "min": "reduce max",
    "count_nonzero": "reduce max",
    "scatter": "rows axis; linear x",
}


@pytest.mark.parametrize("name", PLANTED)
def test_wrong_rules_are_found(name):
    dist.set_sharding_rules(name, PLANTED[name])
    try:
        made_of_it = USED_BY.get(name, name)
        cases = [case for case in CASES if case.op in (name, made_of_it)]
        assert cases and check(2, cases)
    finally:
        dist.set_sharding_rules(name, None)


# Operators that have no function in Python, by one that is made of them.
USED_BY = {"norm2": "norm", "sort_with_indices": "sort"}


def test_every_kind_of_rule_is_derived_or_stated():
    """How many operators have rules: what goes missing is noticed."""
    tables = Path(tenon.__file__).resolve().parents[2] / "gen"
    tables = Path(os.environ.get("TENON_BUILD_DIR", tables.parent)) / "gen"
    text = (tables / "standard_ops" / "ops_table.cpp").read_text()
    assert text.count("shard: elementwise") >= 140 and text.count("shard: rows") >= 20
    assert text.count("; linear ") >= 30 and "shard: reduce mean; linear x" in text
