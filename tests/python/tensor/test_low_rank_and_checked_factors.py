# SPDX-License-Identifier: Apache-2.0
"""tenon.linalg: factors of low rank, and factors that report instead of raising."""

import numpy as np
import pytest
import tenon
from tenon import linalg


def test_matrices_of_low_rank_are_restored():
    tenon.manual_seed(0)
    a = tenon.normal([2, 8, 3]) @ tenon.normal([2, 3, 6])
    u, s, v = linalg.svd_lowrank(a, 3)
    np.testing.assert_allclose(((u * s.unsqueeze(-2)) @ v.mT).numpy(), a.numpy(), atol=1e-4)
    u, s, v = linalg.pca_lowrank(a, 3)
    centred = a - a.mean([-2], True)
    np.testing.assert_allclose(((u * s.unsqueeze(-2)) @ v.mT).numpy(), centred.numpy(), atol=1e-4)
    with pytest.raises(ValueError, match="q up to their shorter axis, got shape"):
        linalg.svd_lowrank(a, 7)


def test_info_names_the_matrices_that_fail():
    a = tenon.tensor([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]])
    inverse, info = linalg.inv_ex(a)
    assert info.tolist() == [0, 2] and inverse[0].tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert np.isnan(inverse[1].numpy()).all()
    factor, info = linalg.cholesky_ex(-a)
    assert info.tolist() == [1, 1] and np.isnan(factor.numpy()).all()
    with pytest.raises(ValueError, match="expected invertible matrices, got info"):
        linalg.inv_ex(a, check_errors=True)
