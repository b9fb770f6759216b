# SPDX-License-Identifier: Apache-2.0
"""Optimiser updates beyond their samples: refused arguments, special values, results over arguments."""

import numpy as np
import pytest
import tenon
from running import skip_unserved, to_tensor

UPDATES = ["adam_update", "adamw_update"]


@pytest.mark.parametrize("name", UPDATES)
def test_steps_count_from_1(name, device):
    x = to_tensor(np.ones(3, np.float32), device)
    with pytest.raises(ValueError, match=rf"\[{name}\] expected step of at least 1, got 0; count"):
        getattr(tenon, name)(x, x, x, x, step=0)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_counted_steps_are_those_of_the_other_updates(dtype, decoupled):
    rng = np.random.default_rng(4)
    tensors = [tenon.tensor(rng.uniform(0.1, 1, 1001)).to(dtype) for _ in range(4)]
    known = tenon.adamw_update if decoupled else tenon.adam_update
    for step in (tenon.tensor(7.0), tenon.tensor(7.0, dtype="float64")):
        got = tenon.adam_update_counted(
            *tensors, step, lr=0.1, weight_decay=0.2, decoupled=decoupled
        )
        for a, b in zip(got, known(*tensors, step=7, lr=0.1, weight_decay=0.2), strict=True):
            assert a.dtype == b.dtype and a.tolist() == b.tolist()
    with pytest.raises(ValueError, match=r"expected step to be one number, got shape \(2,\)"):
        tenon.adam_update_counted(*tensors, tenon.ones(2))


def test_decay_of_an_infinite_parameter(device):
    x = to_tensor(np.array([np.inf, -np.inf, 1], np.float32), device)
    zero = to_tensor(np.zeros(3, np.float32), device)
    new = tenon.adamw_update(x, zero, zero, zero, step=1, lr=0.1, weight_decay=0.5)[0]
    np.testing.assert_allclose(new.to("cpu").numpy(), [np.inf, -np.inf, 0.95], rtol=1e-6)


@pytest.mark.parametrize("size", [0, 1, 7, 1000, 100_003])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_results_over_arguments(size, dtype, device):
    skip_unserved(device, dtype)
    rng = np.random.default_rng(size)
    values = [rng.uniform(0.1, 1, size) for _ in range(4)]
    param, grad, m, v = (to_tensor(x, device, dtype=dtype) for x in values)
    apart = tenon.adam_update(param, grad, m, v, step=2, weight_decay=0.1)
    over = tenon.adam_update(param, grad, m, v, step=2, weight_decay=0.1, out=(param, m, v))
    for x, y, z in zip(apart, over, (param, m, v), strict=True):
        assert y is z
        np.testing.assert_array_equal(x.cpu().tolist(), z.cpu().tolist())
