# SPDX-License-Identifier: Apache-2.0
"""Data parallel ranks with differently many batches."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim

X = (
    np.random.default_rng(0).normal(size=(5, 3, 4, 6)).astype("f4")
)  # steps, ranks, samples, numbers


def in_ranks(size, work, *args):
    with dist.local(size, timeout=20.0) as ranks:
        return ranks.run(work, *args)


def make_model():
    tenon.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))


def state(model):
    return {name: x.numpy().copy() for name, x in model.state_dict().items()}


def loss_of(model, step, rank):
    return model(tenon.tensor(X[step][rank])).square().mean()


def train(counts, **options):
    """`counts` of batches by rank."""
    rank = dist.get_rank()
    model = dist.DistributedDataParallel(make_model(), bucket_cap_mb=1e-4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with model.join(**options):
        for step in range(counts[rank]):
            optimizer.zero_grad()
            loss_of(model, step, rank).backward()
            optimizer.step()
    # Behind it, all ranks go on together.
    optimizer.zero_grad()
    loss_of(model, 4, rank).backward()
    optimizer.step()
    return state(model.module)


def expected(counts, divides_by_all):
    """One process. A pass begins with the buffers of the first rank that goes on, which every rank then changes for itself."""
    model = make_model()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    ranks = list(range(len(counts)))
    of_ranks = [[x.clone() for x in model.buffers()] for _ in ranks]

    def step(number, going):
        optimizer.zero_grad()
        begin = of_ranks[going[0]]
        for rank in going:
            for buffer, value in zip(model.buffers(), begin, strict=True):
                buffer.copy_(value)
            loss_of(model, number, rank).backward()
            of_ranks[rank] = [x.clone() for x in model.buffers()]
        for param in model.parameters():
            param.grad = param.grad / (len(ranks) if divides_by_all else len(going))
        optimizer.step()

    for number in range(max(counts)):
        going = [rank for rank in ranks if number < counts[rank]]
        step(number, going)
    if max(counts):  # all have those of a rank that was last
        of_ranks[:] = [of_ranks[going[0]]] * len(ranks)
    divides_by_all = True
    step(4, ranks)
    for buffer, value in zip(model.buffers(), of_ranks[0], strict=True):
        buffer.copy_(value)
    return state(model)


@pytest.mark.parametrize("divides_by_all", [True, False])
@pytest.mark.parametrize("counts", [(2, 4), (4, 2), (0, 3), (3, 1, 2), (2, 2), (0, 0)])
def test_numbers_of_one_process(counts, divides_by_all):
    want = expected(counts, divides_by_all)
    told = in_ranks(len(counts), lambda: train(counts, divide_by_initial_world_size=divides_by_all))
    for rank, got in enumerate(told):
        for name, value in want.items():
            if rank and "running" in name:
                continue  # buffers of the other ranks, until the next forward pass
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
            if "weight" in name:
                np.testing.assert_array_equal(got[name], told[0][name])


def test_accumulation_and_parts_of_the_model():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            tenon.manual_seed(2)
            self.first, self.second = nn.Linear(6, 2), nn.Linear(6, 2)

        def forward(self, x, branch):
            return (self.first if branch == 0 else self.second)(x)

    def work():
        rank = dist.get_rank()
        model = dist.DistributedDataParallel(Branches(), find_unused_parameters=True)
        grads = []
        with model.join():
            for step in range(1 + 2 * rank):
                model.zero_grad()
                with model.no_sync():
                    model(tenon.tensor(X[step][rank]), 0).sum().backward()
                model(tenon.tensor(X[step][rank]), 1).sum().backward()
                grads.append([p.grad.numpy().copy() for p in model.parameters()])
        return grads

    first, second = in_ranks(2, work)
    one = Branches()
    for step, got in enumerate(second):
        one.zero_grad()
        for rank in (0, 1) if step == 0 else (1,):
            x = tenon.tensor(X[step][rank])
            (one(x, 0).sum() + one(x, 1).sum()).backward()
        for param, grad in zip(one.parameters(), got, strict=True):
            np.testing.assert_allclose(grad, param.grad.numpy() / 2, rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_evaluation_needs_no_other_rank():
    def work():
        model = dist.DistributedDataParallel(make_model())
        with model.join():
            for step in range(dist.get_rank()):
                loss_of(model, step, 0).backward()
                model.eval()
                with tenon.no_grad():
                    model(tenon.tensor(X[0][0]))
                model.train()
        with model.join(enable=False):
            loss_of(model, 0, 0).backward()

    in_ranks(3, work)


def test_the_first_rank_that_is_done_is_told():
    def work():
        model = dist.DistributedDataParallel(make_model())
        with pytest.raises(
            RuntimeError,
            match=r"expected equally many batches on all ranks, got no more on ranks \[0\]",
        ):
            with model.join(throw_on_early_termination=True):
                for step in range(1 + dist.get_rank()):
                    loss_of(model, step, 0).backward()

    in_ranks(2, work)


def test_what_is_refused():
    def work():
        tables = dist.DistributedDataParallel(nn.Embedding(4, 3, sparse=True))
        with pytest.raises(NotImplementedError, match="expected a model without gradients of rows"):
            with tables.join():
                pass
        model = make_model()
        dist.fully_shard(model[0])
        with pytest.raises(NotImplementedError, match="is not fully_shard'ed"):
            with dist.DistributedDataParallel(model).join():
                pass
        model = dist.DistributedDataParallel(make_model())
        with pytest.raises(RuntimeError, match="expected one join\\(\\) at a time"):
            with model.join(), model.join():
                pass

    in_ranks(1, work)


def test_ranks_that_do_different_things():
    def work():
        model = dist.DistributedDataParallel(make_model())
        with pytest.raises(dist.CollectiveError, match="expected ranks that go on to do the same"):
            with model.join():
                if dist.get_rank():
                    with model.no_sync():
                        loss_of(model, 0, 0)
                else:
                    loss_of(model, 0, 0)

    in_ranks(2, work)
