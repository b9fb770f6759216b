# SPDX-License-Identifier: Apache-2.0
"""Steps of training that are no optimizer, beside loops."""

import numpy as np
import pytest
import tenon
from tenon.optim import updates


def test_what_is_not_sent_is_kept():
    generator = np.random.default_rng(0)
    u, v = np.zeros((4, 5)), np.zeros((4, 5))
    for _ in range(6):
        grad = generator.standard_normal((4, 5))
        new_u = 0.9 * u + grad
        total = v + new_u
        u_, v_, sent = updates.dgc(*(tenon.tensor(x) for x in (u, v, grad)), 0.9, False, 0.8)
        dense = sent.to_dense().numpy()
        largest = np.sort(np.argsort(-np.abs(total.reshape(-1)))[:4])
        assert np.flatnonzero(dense).tolist() == largest.tolist()
        np.testing.assert_allclose(dense + v_.numpy().reshape(-1), total.reshape(-1), rtol=1e-12)
        mask = (dense == 0).reshape(4, 5)
        np.testing.assert_allclose(u_.numpy(), new_u * mask)
        u, v = u_.numpy(), v_.numpy()
    with pytest.raises(ValueError, match="expected sparsity from 0 to below 1, got 1"):
        updates.dgc(*(tenon.zeros([2]) for _ in range(3)), sparsity=1)


def test_nesterov_looks_ahead():
    u, v, grad = (tenon.tensor([x]) for x in (1.0, 2.0, 4.0))
    _, _, sent = updates.dgc(u, v, grad, 0.5, True, 0.0)
    assert sent.to_dense().tolist() == [2.0 + 2.5 + 4.0]


def test_clipping_and_momentum_begin_where_they_should():
    x = tenon.tensor([3.0, 4.0])
    assert updates.dgc_clip_by_norm(x, 1.0, 3, 5).tolist() == [3.0, 4.0]
    np.testing.assert_allclose(
        updates.dgc_clip_by_norm(x, 1.0, 5, 5).numpy(), [0.6, 0.8], rtol=1e-6
    )
    assert updates.dgc_clip_by_norm(x, 9.0, 5, 5).tolist() == [3.0, 4.0]
    param, velocity = tenon.tensor([1.0]), tenon.tensor([2.0])
    after, moved = updates.dgc_momentum(
        param, tenon.tensor([8.0]), velocity, 0.1, 0.5, 0, 1, ranks=2
    )
    assert moved.tolist() == [5.0] and after.tolist() == pytest.approx([0.5])
    after, moved = updates.dgc_momentum(
        param, tenon.tensor([8.0]), velocity, 0.1, 0.5, 1, 1, ranks=2
    )
    assert moved.tolist() == [2.0] and after.tolist() == pytest.approx([0.6])


def test_private_steps_are_clipped_and_noisy():
    tenon.manual_seed(0)
    param, grad = tenon.zeros([20000]), tenon.full([20000], 1.0)
    still = updates.dpsgd(param, grad, 1.0, clip=1.0, batch_size=4.0, sigma=0.0)
    np.testing.assert_allclose(still.numpy(), -1 / np.sqrt(20000), rtol=1e-5)
    noise = (updates.dpsgd(param, grad, 1.0, 1.0, 4.0, 2.0) - still).numpy()
    assert abs(noise.std() - 0.5) < 0.02 and abs(noise.mean()) < 0.02
    with pytest.raises(ValueError, match="expected sigma of at least 0"):
        updates.dpsgd(param, grad, 1.0, sigma=-1.0)


def test_averages_of_a_window():
    sums = updates.AverageSums.zeros_for(tenon.zeros([1]))
    with pytest.raises(ValueError, match="expected a step first"):
        sums.average()
    seen = []
    for step in range(7):
        sums = updates.average_accumulates(tenon.tensor([float(step)]), sums, 1.0, 2, 3)
        seen.append(sums.average().item())
    # Windows of 2, then 3 steps: a window that has ended counts until the next one ends.
    assert (sums.steps, sums.steps_before, sums.updates) == (2, 3, 7)
    assert seen == [0.0, 0.5, 1.0, 1.5, 3.0, 3.5, 4.0]
