# SPDX-License-Identifier: Apache-2.0
"""vmap of every operator, rule or not, gives what its calls for one sample after the other give."""

import numpy as np
import pytest
import tenon
from case import map_arrays, results_of
from samples import CASES

BATCH = 3
RANDOM = {"dropout", "bernoulli", "multinomial", "uniform_like", "normal_like"}
# Whose results have shapes that depend on the data, or are no tensors of the samples.
OTHERS = {"nonzero", "masked_select", "nms", "reindex_graph", "empty_like", "to_device", "allclose"}
TESTED = [
    case
    for case in CASES
    if case.op not in RANDOM | OTHERS
    and not all(
        isinstance(each, list) or not isinstance(each, np.ndarray)
        for each in (*case.args, *case.kwargs.values())
    )
]


def samples_of(array, seed):
    """The array, and BATCH - 1 others that operators take as well: its elements in other orders. Indices
    and booleans stay."""
    if array.dtype.kind != "f":
        return np.stack([array] * BATCH)
    rng = np.random.default_rng(seed)
    others = [rng.permutation(array.reshape(-1)).reshape(array.shape) for _ in range(BATCH - 1)]
    return np.stack([array, *others])


def is_batched(value):
    return isinstance(value, np.ndarray)


def check(case, chosen):
    """vmap over the arguments at `chosen`; the others are shared by all samples."""
    operator = getattr(tenon, case.op)
    fixed = [map_arrays(tenon.tensor, value) for value in case.args]
    kwargs = {key: map_arrays(tenon.tensor, value) for key, value in case.kwargs.items()}
    batches = {i: tenon.tensor(samples_of(case.args[i], i)) for i in chosen}

    def call(*parts):
        args = list(fixed)
        for i, part in zip(chosen, parts, strict=True):
            args[i] = part
        return results_of(operator(*args, **kwargs))

    try:
        wanted = [call(*(batches[i][k] for i in chosen)) for k in range(BATCH)]
    # Elements in another order may be no valid argument: a matrix not positive definite.
    except (ValueError, IndexError, RuntimeError, tenon.NotFoundError) as error:
        pytest.skip(f"no sample of its own: {error}")
    got = tenon.func.vmap(call)(*batches.values())
    assert len(got) == len(wanted[0])
    for i, each in enumerate(got):
        want = np.stack([w[i].numpy() for w in wanted])
        np.testing.assert_allclose(each.numpy(), want, rtol=1e-9, atol=1e-11)
        assert each.dtype == wanted[0][i].dtype


@pytest.mark.parametrize("case", TESTED, ids=str)
def test_all_arguments_batched(case):
    check(case, [i for i, value in enumerate(case.args) if is_batched(value)])


SEVERAL = [case for case in TESTED if sum(map(is_batched, case.args)) > 1]


@pytest.mark.parametrize("case", SEVERAL, ids=str)
def test_one_argument_batched(case):
    for i, value in enumerate(case.args):
        if is_batched(value):
            check(case, [i])
