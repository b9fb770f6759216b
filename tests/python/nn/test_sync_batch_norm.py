# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm: ranks with parts of a batch give what one BatchNorm gives for the whole."""

import copy
import pickle
import threading

import numpy as np
import pytest
import tenon
from tenon import collective, nn


def in_ranks(size, work):
    id = collective.create_id("cpu")
    results, errors = [None] * size, []

    def run(rank):
        try:
            with collective.Communicator("cpu", id, rank, size, 60.0) as comm:
                results[rank] = work(comm, rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    if errors:
        raise errors[0]
    return results


@pytest.fixture(autouse=True)
def through_the_host():
    policy = tenon._core.fallback_policy()
    tenon.fallback("allow")
    yield
    tenon.fallback(policy)


@pytest.mark.parametrize("shape", [(3,), (3, 5), (3, 4, 5), (3, 2, 4, 5)])
@pytest.mark.parametrize("cuts", [(2, 5), (1, 6), (0, 7)])
def test_ranks_with_parts_agree_with_one_layer(shape, cuts):
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, size=(sum(cuts), *shape))
    weights = rng.normal(size=x.shape)
    layer = {1: nn.BatchNorm1d, 2: nn.BatchNorm1d, 3: nn.BatchNorm2d, 4: nn.BatchNorm3d}[len(shape)]
    one = layer(3, dtype=tenon.float64)
    whole = tenon.tensor(x, requires_grad=True)
    expected = one(whole)
    (expected * tenon.tensor(weights)).sum().backward()
    starts = np.cumsum([0, *cuts])

    def work(comm, rank):
        part = slice(starts[rank], starts[rank + 1])
        sync = nn.SyncBatchNorm(3, communicator=comm, dtype=tenon.float64)
        mine = tenon.tensor(x[part], requires_grad=True)
        out = sync(mine)
        (out * tenon.tensor(weights[part])).sum().backward()
        return [
            t.numpy()
            for t in (
                out.detach(), mine.grad, sync.weight.grad, sync.bias.grad,
                sync.running_mean, sync.running_var,
            )
        ]  # fmt: skip

    ranks = in_ranks(2, work)
    close = {"rtol": 1e-9, "atol": 1e-10}
    for i, theirs in ((0, expected.detach()), (1, whole.grad)):
        np.testing.assert_allclose(np.concatenate([r[i] for r in ranks]), theirs.numpy(), **close)
    for i, theirs in ((2, one.weight.grad), (3, one.bias.grad)):
        np.testing.assert_allclose(ranks[0][i] + ranks[1][i], theirs.numpy(), **close)
    for rank in ranks:
        np.testing.assert_allclose(rank[4], one.running_mean.numpy(), **close)
        np.testing.assert_allclose(rank[5], one.running_var.numpy(), **close)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_statistics_of_low_precision_are_computed_in_float32(dtype):
    x = np.random.default_rng(0).normal(30.0, 1.0, size=(8, 3, 6)).astype("float32")

    def work(comm, rank):
        sync = nn.SyncBatchNorm(3, communicator=comm)
        mine = tenon.tensor(x[rank * 4 : rank * 4 + 4]).to(dtype)
        out = sync(mine)
        assert out.dtype == mine.dtype
        return out.detach().to("float32").numpy(), sync.running_var.numpy()

    results = in_ranks(2, work)
    whole = nn.BatchNorm1d(3)
    expected = whole(tenon.tensor(x).to(dtype).to("float32")).detach().numpy()
    np.testing.assert_allclose(np.concatenate([r[0] for r in results]), expected, atol=2e-2)
    np.testing.assert_allclose(results[0][1], whole.running_var.numpy(), rtol=1e-4)


def test_evaluation_is_batch_norm_and_single_ranks_are():
    x = tenon.normal([4, 3, 5])
    plain, unranked = nn.BatchNorm1d(3), nn.SyncBatchNorm(3)

    def work(comm, rank):
        return nn.SyncBatchNorm(3, communicator=comm)(x).tolist()

    np.testing.assert_array_equal(in_ranks(1, work)[0], plain(x).tolist())
    with pytest.raises(RuntimeError, match="expected a communicator to train with the batches of"):
        unranked(x)
    plain.reset_running_stats()
    plain.eval()
    unranked.eval()
    np.testing.assert_array_equal(unranked(x).tolist(), plain(x).tolist())


def test_momentum_none_is_the_mean_over_batches():
    x = np.random.default_rng(1).normal(size=(2, 4, 3))
    one = nn.BatchNorm1d(3, momentum=None, dtype=tenon.float64)
    for batch in x:
        one(tenon.tensor(batch))

    def work(comm, rank):
        sync = nn.SyncBatchNorm(3, momentum=None, communicator=comm, dtype=tenon.float64)
        for batch in x:
            sync(tenon.tensor(batch[2 * rank : 2 * rank + 2]))
        return sync.running_mean.numpy()

    for mean in in_ranks(2, work):
        np.testing.assert_allclose(mean, one.running_mean.numpy(), rtol=1e-12)


def test_convert_keeps_parameters_at_any_depth():
    class Block(nn.Module):
        def __init__(self):
            self.norm = nn.BatchNorm2d(3, affine=False)
            self.parts = nn.ModuleDict({"a": nn.BatchNorm1d(4, track_running_stats=False)})
            self.many = nn.ModuleList([nn.Linear(2, 2), nn.BatchNorm1d(2)])

    def work(comm, rank):
        model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, eps=1e-3), Block()).eval()
        before = model.state_dict()
        weight = model[1].weight
        assert nn.SyncBatchNorm.convert_sync_batchnorm(model, comm) is model
        layers = [model[1], model[2].norm, model[2].parts["a"], model[2].many[1]]
        assert all(type(layer) is nn.SyncBatchNorm for layer in layers)
        assert all(layer.communicator is comm and not layer.training for layer in layers)
        assert model[1].weight is weight and model[1].eps == 1e-3
        assert list(model.state_dict()) == list(before)
        assert copy.deepcopy(model)[1].communicator is comm
        with pytest.raises(TypeError, match="Communicator cannot be pickled.*state_dict"):
            pickle.dumps(comm)

    in_ranks(1, work)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"SyncBatchNorm: expected 2 or 3 or 4 or 5 axes"):
        nn.SyncBatchNorm(3)(tenon.zeros([4, 2]))
