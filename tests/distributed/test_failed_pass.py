# SPDX-License-Identifier: Apache-2.0
"""Training behind a backward pass that raised: it goes on as if the pass had not been, or ends on all ranks."""

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.distributed.failed_pass import settle_failed_pass

TINY = 1e-6  # MB: a bucket for each parameter


class Model:
    """Two layers of equal sizes, so that the gradients of one would pass for those of the other; between them the
    gradient raises on request."""

    def __init__(self):
        tenon.manual_seed(0)
        self.first, self.second = (nn.Linear(2, 2, bias=False) for _ in range(2))
        self.params = [self.first.weight, self.second.weight]

    def backward(self, wrapped, raises):
        """`wrapped` calls the layers."""
        x = tenon.full([1, 2], dist.get_rank() + 1.0)
        if not raises:
            return wrapped(x).sum().backward()

        def fail(_grad):
            raise ValueError("no memory")

        inner = self.first(x)
        inner.register_hook(fail)
        with pytest.raises(ValueError, match="no memory"):
            self.second(inner).sum().backward()
        return None

    def layers(self):
        return nn.Sequential(self.first, self.second)


def train_data_parallel(raising):
    """Gradients of a pass, behind one that raised on the ranks `raising`."""
    model = Model()
    wrapped = dist.DistributedDataParallel(model.layers(), bucket_cap_mb=TINY)
    # The order of buckets is settled by a first pass.
    for raises in (False, dist.get_rank() in raising, False) if raising else (False, False):
        for param in model.params:
            param.grad = None
        model.backward(wrapped, raises)
    return [param.grad.tolist() for param in model.params]


def train_zero(raising):
    """Parameters after the step of a pass, behind one that raised on the ranks `raising`."""
    model = Model()
    optimizer = dist.ZeroRedundancyOptimizer(
        model.params, tenon.optim.SGD, stage=2, lr=0.1, bucket_cap_mb=TINY
    )
    wrapped = model.layers()
    for raises in (dist.get_rank() in raising, False) if raising else (False,):
        optimizer.zero_grad()
        model.backward(wrapped, raises)
    optimizer.step()
    return [param.tolist() for param in model.params]


TRAINING = [train_data_parallel, train_zero]


@pytest.mark.parametrize("train", TRAINING)
def test_a_pass_that_raised_on_all_ranks(train):
    with dist.local(2, timeout=10.0) as ranks:
        assert ranks.run(train, (0, 1)) == ranks.run(train, ())


@pytest.mark.parametrize("train", TRAINING)
@pytest.mark.parametrize("raising", [0, 1])
def test_a_pass_that_raised_on_one_rank(train, raising):
    texts = [None, None]

    def work():
        with pytest.raises(dist.CollectiveMismatch) as caught:
            train((raising,))
        texts[dist.get_rank()] = str(caught.value)

    with dist.local(2, timeout=10.0) as ranks:
        ranks.run(work)
    assert f"the backward pass before this one raised on rank {raising} and not" in texts[raising]
    for text in texts:
        assert f"rank {raising} all_gather(int64[1])" in text
        assert f"rank {1 - raising} " in text and "(float32[" in text


def test_passes_that_raised_at_different_places():
    # Calls that agree by chance, as those of devices that compare nothing.
    def work():
        started = [dist.all_reduce(tenon.ones([1]), async_op=True)]
        with pytest.raises(dist.CollectiveMismatch, match=r"behind \[1, 0\] buckets of gradients"):
            settle_failed_pass("Model", dist.world(), started if dist.get_rank() == 0 else [])
        with pytest.raises(dist.CollectiveError):
            dist.barrier()

    with dist.local(2, timeout=10.0) as ranks:
        ranks.run(work)


def test_a_call_that_only_one_rank_refuses():
    # Rank 0 waits inside of a call that is right for it: the exception of rank 1 must reach it.
    def work():
        both = tenon.zeros([4])
        dist.all_gather_into_tensor(both, both[:2])

    refused = pytest.raises(ValueError, match="share no memory but this rank's own part")
    with refused, dist.local(2, timeout=60.0) as ranks:
        ranks.run(work)
