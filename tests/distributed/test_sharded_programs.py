# SPDX-License-Identifier: Apache-2.0
"""Compiled functions of sharded tensors: each rank has a program of its parts, and what ranks send each other is a step."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.distributed import ColwiseParallel, Replicate, RowwiseParallel, Shard
from tenon.jit import sharded_calls

X = np.random.default_rng(0).normal(size=(6, 5)).astype("f4")
W = np.random.default_rng(1).normal(size=(5, 7)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def function(x, w):
    y = tenon.tanh(x @ w)
    return {"y": y, "mean": y.mean(), "softmax": tenon.softmax(y, -1)}


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "ways", [(Shard(0), Replicate()), (Shard(1), Shard(0)), (Replicate(), Shard(1))]
)
def test_equal_to_the_function(size, ways):
    def work():
        mesh = dist.init_device_mesh("cpu", (size,))
        compiled = tenon.compile(function)
        with tenon.no_grad():
            for call in range(4):
                x = dist.distribute_tensor(tenon.tensor(X + call), mesh, [ways[0]])
                w = dist.distribute_tensor(tenon.tensor(W), mesh, [ways[1]])
                got, want = compiled(x, w), function(x, w)
                assert list(got) == list(want)
                for name in want:
                    assert got[name].placements == want[name].placements
                    assert got[name].shape == want[name].shape
                    assert np.array_equal(
                        got[name].full_tensor().numpy(), want[name].full_tensor().numpy()
                    )
        assert len(compiled.programs) == 1, compiled.explain()
        return compiled.explain()

    for text in in_ranks(size, work):
        assert "with 2 sharded tensors, as parts of this rank:" in text


def test_steps_that_talk_are_carried_out_by_the_program():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        compiled = tenon.compile(lambda x, w: (x @ w).redistribute([Replicate()]).to_local())
        sent = []
        with tenon.no_grad():
            x = dist.distribute_tensor(tenon.tensor(X), mesh, [Replicate()])
            x = x.redistribute([Shard(1)])
            w = dist.distribute_tensor(tenon.tensor(W), mesh, [Shard(0)])
            for _ in range(4):
                before = dist.world().counters()["bytes_sent"]
                y = compiled(x, w)
                sent.append(dist.world().counters()["bytes_sent"] - before)
                np.testing.assert_allclose(y.numpy(), X @ W, rtol=1e-5, atol=1e-5)
        (program,) = compiled.programs
        assert "all_reduce" in str(program)
        return sent

    assert in_ranks(2, work) == [[6 * 7 * 4] * 4] * 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        tenon.manual_seed(0)
        self.up, self.down = nn.Linear(5, 8), nn.Linear(8, 5)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


def test_modules_with_sharded_weights():
    want = Model()(tenon.tensor(X)).detach().numpy()

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        # A plain tensor between them would be put together again by lengths that ranks tell each other.
        plan = {"up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel()}
        model = dist.parallelize_module(Model(), mesh, plan)
        step = tenon.compile(model)
        with tenon.no_grad():
            for _ in range(4):
                np.testing.assert_allclose(
                    step(tenon.tensor(X)).numpy(), want, rtol=1e-5, atol=1e-6
                )
            assert len(step.programs) == 1, step.explain()
            # The program reads what the weights are by then.
            model.down.bias.to_local().zero_()
            model.down.weight.to_local().zero_()
            assert (step(tenon.tensor(X)) == 0).all().item()

    in_ranks(2, work)


def test_gradients_that_pass_to_results_need_the_function():
    """A backward pass outside: calls run the function, whose results carry the history of wholes."""

    def work(is_sharded):
        mesh = dist.init_device_mesh("cpu", (2,))
        model = dist.parallelize_module(
            Model(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()}
        )
        step = tenon.compile(lambda x: model(x).square().mean())
        x = tenon.tensor(X)
        if is_sharded:
            x = dist.distribute_tensor(x, mesh, [Replicate()])
        losses = []
        for _ in range(4):
            loss = step(x)
            loss.backward()
            losses.append(loss.item())
        assert "gradients of sharded tensors are recorded" in step.explain() and not step.programs
        return losses, model.up.weight.grad.full_tensor().numpy()

    want = Model()
    for _ in range(4):
        loss = want(tenon.tensor(X)).square().mean()
        loss.backward()
    for losses, grad in in_ranks(2, work, False) + in_ranks(2, work, True):
        assert losses == pytest.approx([loss.item()] * 4, rel=1e-5)
        np.testing.assert_allclose(grad, want.up.weight.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_other_placements_are_another_program():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        compiled = tenon.compile(lambda x: x.sum(0))
        with tenon.no_grad():
            for way in (Shard(0), Shard(1), Replicate()):
                x = dist.distribute_tensor(tenon.tensor(X), mesh, [way])
                for _ in range(3):
                    got = compiled(x).full_tensor().numpy()
                    np.testing.assert_allclose(got, X.sum(0), rtol=1e-5, atol=1e-5)
        return len(compiled.programs)

    assert in_ranks(2, work) == [3, 3]


def test_sizes_of_sharded_tensors_stay():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        compiled = tenon.compile(lambda x: x * 2.0, dynamic=True)
        with tenon.no_grad():
            for rows in (4, 4, 4, 6, 6, 6):
                x = dist.distribute_tensor(tenon.ones([rows, 2]), mesh, [Shard(0)])
                assert compiled(x).full_tensor().tolist() == [[2.0, 2.0]] * rows
        return compiled.explain()

    for text in in_ranks(2, work):
        assert text.count("as parts of this rank, whose sizes are not left open:") == 2


def test_results_that_are_sharded_though_no_argument_is():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        kept = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(0)])
        compiled = tenon.compile(lambda x: (kept * x, x + 1.0))
        with tenon.no_grad():
            for call in range(4):
                y, plain = compiled(tenon.full([5], float(call)))
                assert y.placements == (Shard(0),) and plain.tolist() == [call + 1.0] * 5
                np.testing.assert_array_equal(y.full_tensor().numpy(), X * np.float32(call))
        assert len(compiled.programs) == 1, compiled.explain()

    in_ranks(2, work)


def test_what_a_program_cannot_return():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        kept = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(0)])
        compiled = tenon.compile(lambda x: (kept, kept + x))
        with tenon.no_grad():
            for _ in range(3):
                assert compiled(tenon.ones([5]))[0] is kept
        assert "it returns a sharded tensor that it has not made" in compiled.explain()

    in_ranks(2, work)


def test_errors_of_the_function_are_its_own():
    def work():
        calls = []

        @tenon.compile
        def refuses(x):
            calls.append(x.shape)
            raise ValueError("expected other numbers")

        mesh = dist.init_device_mesh("cpu", (1,))
        x = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(0)])
        with tenon.no_grad(), pytest.raises(ValueError, match="expected other numbers"):
            refuses(x)
        return len(calls), refuses.explain()

    ((calls, text),) = in_ranks(1, work)
    assert calls == 1 and "calls without a program" not in text


def test_structures_beyond_the_limit_are_not_kept():
    def work():
        compiled = tenon.compile(lambda x, factor: x * factor, limit=2)
        mesh = dist.init_device_mesh("cpu", (1,))
        x = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(0)])
        before = len(sharded_calls._structures)
        with tenon.no_grad():
            for factor in range(1000, 1010):
                got = compiled(x, factor).full_tensor().numpy()
                np.testing.assert_array_equal(got, X * np.float32(factor))
        assert "there are 2 signatures of sharded tensors already" in compiled.explain()
        return len(sharded_calls._structures) - before

    assert in_ranks(1, work) == [2]
