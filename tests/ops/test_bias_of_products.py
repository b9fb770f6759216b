# SPDX-License-Identifier: Apache-2.0
"""A bias that kernels add as they store a product has the bits of one that lies in the result before."""

import numpy as np
import pytest
import tenon
from tenon.nn import functional as F

# Rows, features, columns: dot products, few rows, few columns, small k, B in place, transposed, blocks in one pass and in several.
SIZES = [
    (1, 784, 256),
    (6, 96, 40),
    (3, 1000, 70),
    (64, 256, 10),
    (33, 64, 17),
    (130, 20, 129),
    (100, 50, 200),
]
SIZES += [(64, 784, 256), (20, 300, 100), (66, 128, 512), (67, 1700, 131), (9, 0, 5)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("threads", [1, 2])
def test_bits(size, dtype, threads):
    rows, features, columns = size
    generator = np.random.default_rng(0)
    x, weight, apart = (
        tenon.tensor(generator.standard_normal(shape).astype(dtype))
        for shape in ((rows, features), (columns, features), (columns, 2))
    )
    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        # Kernels copy a bias whose elements lie apart.
        found, expected = (
            F.linear(x, weight, apart[:, 0].contiguous()),
            F.linear(x, weight, apart[:, 0]),
        )
    finally:
        tenon.set_num_threads(before)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    exact = x.numpy().astype(np.float64) @ weight.numpy().astype(np.float64).T + apart.numpy()[:, 0]
    tolerance = 1e-3 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found.numpy(), exact, rtol=tolerance, atol=tolerance)


def test_a_batch_of_products():
    generator = np.random.default_rng(1)
    x = tenon.tensor(generator.standard_normal((2, 3, 40, 70), np.float32))[:, ::2]
    weight = tenon.tensor(generator.standard_normal((50, 70), np.float32))
    apart = tenon.tensor(generator.standard_normal((50, 3), np.float32))
    found = F.linear(x, weight, apart[:, 1].contiguous()).numpy()
    np.testing.assert_array_equal(found, F.linear(x, weight, apart[:, 1]).numpy())
