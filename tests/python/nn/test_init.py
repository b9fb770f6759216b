# SPDX-License-Identifier: Apache-2.0
"""Initialisers by the properties that define them."""

import numpy as np
import pytest
import tenon
from tenon.nn import init


@pytest.mark.parametrize("shape", [(3, 70), (70, 40), (8, 2, 3, 3), (1, 1)])
def test_orthogonal(shape):
    weight = init.orthogonal_(tenon.empty(list(shape)), gain=2.0).numpy().reshape(shape[0], -1)
    rows, columns = weight.shape
    product = weight @ weight.T if rows <= columns else weight.T @ weight
    np.testing.assert_allclose(product, 4.0 * np.eye(min(rows, columns)), atol=1e-5)


def test_trunc_normal_stays_inside():
    values = init.trunc_normal_(tenon.empty([10000]), 1.0, 2.0, -1.0, 2.0).numpy()
    assert -1.0 <= values.min() < -0.9 and 1.9 < values.max() <= 2.0
    # 1 + 2 (phi(-1) - phi(0.5)) / (Phi(0.5) - Phi(-1)), of standard deviation about 0.83.
    assert abs(values.mean() - 0.5867) < 0.04


def test_eye_and_sparse():
    np.testing.assert_array_equal(init.eye_(tenon.empty([2, 3])).numpy(), np.eye(2, 3))
    weight = init.sparse_(tenon.empty([10, 6]), 0.25, std=1.0).numpy()
    np.testing.assert_array_equal((weight == 0).sum(0), np.full(6, 3))


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_passes_channels_on(groups):
    weight = init.dirac_(tenon.empty([4, 4 // groups, 3, 3]), groups)
    x = tenon.normal([1, 4, 5, 5])
    result = tenon.conv2d(x, weight, padding=[1, 1], groups=groups)
    np.testing.assert_allclose(result.numpy(), x.numpy(), rtol=1e-6)


def test_gains_of_linear_layers():
    for name in ("conv1d", "conv3d", "conv_transpose2d", "linear"):
        assert init.calculate_gain(name) == 1.0


def test_refusals():
    with pytest.raises(ValueError, match="trunc_normal_: expected a < b, got 1.0 and -1.0"):
        init.trunc_normal_(tenon.empty([2]), a=1.0, b=-1.0)
    with pytest.raises(ValueError, match="expected .* to hold a part of a normal distribution"):
        init.trunc_normal_(tenon.empty([2]), a=50.0, b=51.0)
    with pytest.raises(ValueError, match=r"eye_: expected two axes, got shape \(2,\)"):
        init.eye_(tenon.empty([2]))
    with pytest.raises(ValueError, match="sparse_: expected two axes"):
        init.sparse_(tenon.empty([2]), 0.5)
    with pytest.raises(ValueError, match="orthogonal_: expected two axes or more"):
        init.orthogonal_(tenon.empty([2]))
    with pytest.raises(ValueError, match="dirac_: expected a weight of 3 to 5 axes"):
        init.dirac_(tenon.empty([2, 2]))
