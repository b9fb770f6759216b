# SPDX-License-Identifier: Apache-2.0
"""Every sample of every operator, with each of its tensors in each layout: the result of the dense tensor, or a refusal that
names the layout or the fix, and no third outcome. `make test` draws some of the samples;
TENON_ALL_SAMPLES=1 pytest tests/ops/test_composed_samples.py makes all of them."""

import os
import zlib

import numpy as np
import pytest
import tenon
from case import results_of
from running import arguments
from samples import CASES
from tenon import sparse

DRAWN = 2  # one of so many samples
# Results that are random, uninitialised, or say how the argument lies in memory.
NOT_COMPARED = set(
    """bernoulli dropout dropout_add empty_like multinomial normal_like poisson uniform_like shares_memory
    top_p_sampling rrelu gumbel_softmax fractional_max_pool2d fractional_max_pool3d exponential_like
    class_center_sample binomial standard_gamma randint_like alpha_dropout feature_alpha_dropout""".split()
)
LAYOUTS = ("coo", "repeated", "csr", "csc", "bsr", "ragged")
REFUSED = (NotImplementedError, TypeError, ValueError, IndexError, BufferError)


def is_drawn(case):
    return os.environ.get("TENON_ALL_SAMPLES") or zlib.crc32(str(case).encode()) % DRAWN == 0


def with_zeros(x):
    """Half of the elements as zeros, so that some are not stored."""
    rng = np.random.default_rng(x.numel())
    kept = tenon.tensor(rng.random(tuple(x.shape)) < 0.6)
    return tenon.where(kept, x, tenon.zeros_like(x))


def in_layout(x, layout):
    """The tensor in a layout; None where it has no such form."""
    if layout == "ragged":
        if x.ndim < 2 or x.numel() == 0:
            return None
        rows, length = x.shape[:2]
        values = x.reshape([rows * length, *x.shape[2:]])
        return sparse.ragged_from_offsets(tenon.arange(rows + 1) * length, values, length)
    if x.ndim == 0 or (x.ndim != 2 and layout in ("csr", "csc", "bsr")):
        return None
    if layout == "repeated":
        if not x.dtype.is_floating_point:
            return None
        once = x.to_sparse()
        twice = tenon.concat([once.indices(), once.indices()], 1)
        return sparse.coo(twice, tenon.concat([once.values() / 4, once.values() * 0.75]), x.shape)
    if layout == "bsr":
        return x.to_sparse("bsr", tuple(2 if size and size % 2 == 0 else 1 for size in x.shape))
    return x.to_sparse(layout)


def indices_of(args):
    """Where tensors are: (argument, None), or (argument, number) in a list."""
    for i, value in enumerate(args):
        if isinstance(value, tenon.Tensor):
            yield i, None
        elif isinstance(value, list):
            yield from ((i, k) for k, each in enumerate(value) if isinstance(each, tenon.Tensor))


def replaced(args, place, value):
    args, (i, k) = list(args), place
    args[i] = value if k is None else [*args[i][:k], value, *args[i][k + 1 :]]
    return args


def at(args, place):
    return args[place[0]] if place[1] is None else args[place[0]][place[1]]


def is_finite(args):
    tensors = [at(args, place) for place in indices_of(args)]
    floats = [x for x in tensors if x.dtype.is_floating_point]
    return all(tenon.isfinite(x).all().item() for x in floats)


def same(got, expected):
    if not isinstance(expected, tenon.Tensor):
        return got == expected
    got = got.to_dense()
    if got.dtype != expected.dtype or tuple(got.shape) != tuple(expected.shape):
        return False
    if not (got.dtype.is_floating_point or got.dtype.is_complex):
        return got.tolist() == expected.tolist()
    a, b = (x.to(tenon.complex128).numpy() for x in (got, expected))
    return np.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("case", [case for case in CASES if is_drawn(case)], ids=str)
def test_dense_result_or_refusal(case):
    op = getattr(tenon, case.op)
    args, kwargs = arguments(case, "cpu")
    kwargs.pop("device", None) if not list(indices_of(args)) else None
    if not is_finite(args):
        pytest.skip("what is not stored is a zero that infinity and NaN do not touch")
    outcomes = 0
    for place in indices_of(args):
        x = at(args, place)
        dense = with_zeros(x) if x.ndim and x.dtype.is_floating_point else x
        try:
            expected = results_of(op(*replaced(args, place, dense), **kwargs))
        except Exception:
            continue  # not for these numbers
        for layout in LAYOUTS:
            given = in_layout(dense, layout)
            if given is None:
                continue
            outcomes += 1
            try:
                results = results_of(op(*replaced(args, place, given), **kwargs))
            except REFUSED as error:
                text = str(error)
                assert "layout" in text or "to_dense()" in text or "compos" in text, (layout, text)
                continue
            if case.op in NOT_COMPARED:
                continue
            assert all(map(same, results, expected)), (place, layout)
    if outcomes == 0:
        pytest.skip("no tensors that have another layout")
