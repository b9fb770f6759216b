# SPDX-License-Identifier: Apache-2.0
"""Norms of a model whose stages lie on several ranks: parameters know their pipeline."""

import copy
import gc
import pickle

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn


def make_model():
    tenon.manual_seed(0)
    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])


def loss_of(out, target):
    return (out - target).square().mean()


def test_the_norm_is_that_of_all_stages():
    x, y = tenon.ones([4, 4]), tenon.zeros([4, 4])
    model = make_model()
    loss_of(model(x), y).backward()
    want = nn.utils.clip_grad_norm_(model.parameters(), 0.1).item()
    grads = [p.grad.numpy() for p in model.parameters()]

    def work():
        pipe = dist.pipeline(make_model(), microbatches=2)
        pipe.step(x, target=y, loss_fn=loss_of)
        with pytest.raises(
            ValueError, match="of a pipeline, of which other ranks have other stages; use"
        ):
            nn.utils.clip_grad_norm_(pipe.parameters(), 0.1)
        norm = dist.clip_grad_norm_(pipe.parameters(), 0.1).item()
        first = 4 * dist.get_rank()
        for p, grad in zip(pipe.parameters(), grads[first : first + 4], strict=True):
            assert abs(p.grad.numpy() - grad).max() < 1e-6
        return norm

    with dist.local(2) as ranks:
        assert ranks.run(work) == pytest.approx([want] * 2, rel=1e-6)


def test_parameters_of_two_pipelines_are_told():
    def work():
        pipes = [dist.pipeline(make_model(), microbatches=2) for _ in range(2)]
        for pipe in pipes:
            pipe.step(tenon.ones([4, 4]), target=tenon.zeros([4, 4]), loss_fn=loss_of)
        both = [p for pipe in pipes for p in pipe.parameters()]
        with pytest.raises(ValueError, match="expected parameters of one pipeline, got those of 2"):
            dist.clip_grad_norm_(both, 1.0)

    with dist.local(2) as ranks:
        ranks.run(work)


def test_a_pipeline_of_one_rank_is_a_whole_model():
    def work():
        pipe = dist.pipeline(make_model(), microbatches=2)
        pipe.step(tenon.ones([4, 4]), target=tenon.zeros([4, 4]), loss_fn=loss_of)
        return nn.utils.clip_grad_norm_(pipe.parameters(), 1.0).item()

    with dist.local(1) as ranks:
        assert ranks.run(work)[0] > 0


def test_parameters_outlive_their_pipeline():
    def work():
        pipe = dist.pipeline(make_model(), microbatches=2)
        pipe.step(tenon.ones([4, 4]), target=tenon.zeros([4, 4]), loss_fn=loss_of)
        params = list(pipe.parameters())
        again = [pickle.loads(pickle.dumps(p)) for p in params]
        assert [p.tolist() for p in again] == [p.tolist() for p in params]
        for p in again:
            p.grad = tenon.ones_like(p)
        assert nn.utils.clip_grad_norm_(again, 1.0).item() > 0
        with pytest.raises(ValueError, match="of a pipeline"):
            nn.utils.clip_grad_norm_(params, 1.0)
        with pytest.raises(ValueError, match="of a pipeline"):
            nn.utils.clip_grad_norm_([copy.deepcopy(params[0])], 1.0)
        del pipe
        gc.collect()
        return nn.utils.clip_grad_norm_(params, 1.0).item()

    with dist.local(2) as ranks:
        assert min(ranks.run(work)) > 0
