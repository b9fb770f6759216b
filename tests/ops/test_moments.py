# SPDX-License-Identifier: Apache-2.0
"""var and logsumexp of tensors that lie in memory in another order than that of their axes."""

import itertools

import numpy as np
import pytest
import tenon

AXES = [None, 0, 1, -1, [0, 1], [1, 2], [0, 2], [0, 1, 2]]


def logsumexp(x, axis):
    return np.log(np.exp(x).sum(axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_permuted_axes(axis, dtype):
    x = np.random.default_rng(1).standard_normal((4, 5, 70)).astype(np.float32)
    axes = tuple(axis) if isinstance(axis, list) else axis
    tolerance = 0.02 if dtype == "bfloat16" else 1e-5
    for order in itertools.permutations(range(3)):
        ours = tenon.tensor(x).to(getattr(tenon, dtype)).permute(*order)
        theirs = x.transpose(order)
        for part in (..., (slice(None), slice(None, None, 2)), (slice(None, 1),)):
            for got, want in (
                (tenon.var(ours[part], axis), np.var(theirs[part], axes)),
                (tenon.logsumexp(ours[part], axis), logsumexp(theirs[part], axes)),
            ):
                np.testing.assert_allclose(
                    got.to(tenon.float32).numpy(), want, rtol=tolerance, atol=tolerance
                )
