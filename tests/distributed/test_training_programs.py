# SPDX-License-Identifier: Apache-2.0
"""Steps of training as programs: forward and backward passes, clipping and updates of sharded weights, and the collectives of
tenon.distributed.functional, in one program of each rank."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, RowwiseParallel, SequenceParallel, Shard
from tenon.distributed import functional as df

STEPS, WIDTH = 6, 6
X = np.random.default_rng(0).normal(size=(STEPS, 4, WIDTH)).astype("f4")
Y = np.random.default_rng(1).normal(size=(STEPS, 4, WIDTH)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def make_model():
    tenon.manual_seed(3)
    return nn.Sequential(
        {
            "norm": nn.LayerNorm(WIDTH),
            "up": nn.Linear(WIDTH, 10),
            "act": nn.GELU(),
            "down": nn.Linear(10, WIDTH),
        }
    )


def whole(tensor):
    if isinstance(tensor, dist.DTensor):
        tensor = tensor.full_tensor()
    return None if tensor is None else tensor.detach().numpy().copy()


PLANS = {
    "tensor": {"up": ColwiseParallel(), "down": RowwiseParallel()},
    "wholes": {
        "up": ColwiseParallel(use_local_output=False),
        "down": RowwiseParallel(use_local_output=False),
    },
    "sequence": {
        "norm": SequenceParallel(sequence_dim=0),
        "up": ColwiseParallel(input_layouts=Shard(0)),
        "down": RowwiseParallel(),
    },
}


def train(model, make, compiles, clip=None, wrap=lambda x: x, wrap_target=None):
    optimizer = make(model.parameters(), lr=0.02)

    def step(x, y):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        if clip is not None:
            clip(model.parameters(), 0.5)
        optimizer.step()
        return loss

    called = tenon.compile(step) if compiles else step
    losses = []
    for x, y in zip(X, Y):
        loss = called(wrap(tenon.tensor(x)), (wrap_target or wrap)(tenon.tensor(y)))
        losses.append(whole(loss).item())
    found = {name: (whole(p), whole(p.grad)) for name, p in model.named_parameters()}
    return losses, found, called


def compare(got, want, exact):
    near = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    options = {} if exact else {"rtol": 1e-4, "atol": 1e-6}
    near(got[0], want[0], **options)
    assert list(got[1]) == list(want[1])
    for name, pair in want[1].items():
        for one, other in zip(got[1][name], pair, strict=True):
            near(one, other, **options)


@pytest.mark.parametrize("make", [optim.SGD, optim.AdamW])
@pytest.mark.parametrize("plan", list(PLANS))
def test_a_step_of_a_tensor_parallel_model(plan, make):
    """The bits of the same step without a program; one process has the same numbers."""

    def work(compiles):
        mesh = dist.init_device_mesh("cpu", (2,))
        model = dist.parallelize_module(make_model(), mesh, PLANS[plan])
        wrap = lambda x: x  # noqa: E731
        if plan == "sequence":
            wrap = lambda x: dist.distribute_tensor(x, mesh, [Shard(0)])  # noqa: E731
        *told, step = train(model, make, compiles, wrap=wrap, wrap_target=lambda y: y)
        if compiles:
            assert len(step.programs) == 1, step.explain()
        return told

    want = train(make_model(), make, False)
    eager, compiled = in_ranks(2, work, False), in_ranks(2, work, True)
    for got, as_it_is in zip(compiled, eager, strict=True):
        compare(got, as_it_is, True)
        compare(got, want, False)


def test_open_sizes_do_not_lose_gradients():
    """Of a step that leaves gradients of sharded weights, each size is a signature."""

    def work(dynamic):
        mesh = dist.init_device_mesh("cpu", (2,))
        model = dist.parallelize_module(make_model(), mesh, PLANS["tensor"])

        def step(x):
            model.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        called = tenon.compile(step, dynamic=True) if dynamic else step
        found = []
        for rows in (2, 2, 2, 3, 4, 3, 1):
            called(tenon.tensor(X[0][:rows]))
            found.append([whole(p.grad) for p in model.parameters()])
        return found, called.explain() if dynamic else ""

    for (got, text), (want, _) in zip(in_ranks(2, work, True), in_ranks(2, work, False)):
        for one, other in zip(got, want, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
        assert "results or gradients of it are sharded tensors" in text


def test_norms_and_steps_that_talk():
    def work(compiles):
        mesh = dist.init_device_mesh("cpu", (2,))
        model = dist.parallelize_module(make_model(), mesh, PLANS["tensor"])
        *told, step = train(model, optim.AdamW, compiles, dist.clip_grad_norm_)
        if compiles:
            (program,) = step.programs
            assert str(program).count("all_reduce") >= 4, step.explain()
        return told

    want = train(make_model(), optim.AdamW, False, nn.utils.clip_grad_norm_)
    for got, as_it_is in zip(in_ranks(2, work, True), in_ranks(2, work, False), strict=True):
        compare(got, as_it_is, True)
        compare(got, want, False)


def test_sharded_batches():
    """Sharded arguments that require no gradient, beside sharded weights that do; the loss is a sharded tensor."""

    def work(compiles):
        mesh = dist.init_device_mesh("cpu", (2,))
        model = make_model()
        for name, p in list(model.named_parameters()):
            path, _, last = name.rpartition(".")
            at = [Shard(0)] if name == "up.weight" else [dist.Replicate()]
            made = nn.Parameter(dist.distribute_tensor(p.detach(), mesh, at))
            setattr(dict(model.named_modules())[path], last, made)
        wrap = lambda x: dist.distribute_tensor(x, mesh, [Shard(0)])  # noqa: E731
        *told, step = train(model, optim.SGD, compiles, wrap=wrap)
        if compiles:
            assert len(step.programs) == 1, step.explain()
        return told

    want = train(make_model(), optim.SGD, False)
    for got, as_it_is in zip(in_ranks(2, work, True), in_ranks(2, work, False), strict=True):
        compare(got, as_it_is, True)
        compare(got, want, False)


def test_data_parallel_by_functions():
    """A mean of gradients that the function makes itself, on a mesh of two axes."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = dist.parallelize_module(make_model(), mesh["tp"], PLANS["tensor"])
        group, optimizer = mesh.get_group("dp"), optim.SGD(model.parameters(), lr=0.05)

        @tenon.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            df.all_reduce(loss.reshape([1]), "mean", group).sum().backward()
            with tenon.no_grad():
                for p in model.parameters():
                    own = p.grad.to_local() if isinstance(p.grad, dist.DTensor) else p.grad
                    own.copy_(df.all_reduce(own, "mean", group))
            optimizer.step()
            return loss

        rows = slice(2 * mesh.get_coordinate()[0], 2 * mesh.get_coordinate()[0] + 2)
        for x, y in zip(X, Y):
            step(tenon.tensor(x[rows]), tenon.tensor(y[rows]))
        assert len(step.programs) == 1, step.explain()
        return {name: whole(p) for name, p in model.named_parameters()}

    model = make_model()
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for x, y in zip(X, Y):
        optimizer.zero_grad()
        (model(tenon.tensor(x)) - tenon.tensor(y)).square().mean().backward()
        optimizer.step()
    for got in in_ranks(4, work):
        for name, p in model.named_parameters():
            np.testing.assert_allclose(got[name], whole(p), rtol=1e-4, atol=1e-6)


def test_gradients_that_a_step_adds_to():
    """Without zero_grad() calls run the function; with it behind the update they are a program, while there is none before."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        w = nn.Parameter(dist.distribute_tensor(tenon.ones([4, 6]), mesh, [Shard(0)]))
        x = tenon.tensor(X[0])

        @tenon.compile
        def adds(x):
            loss = (x @ w.transpose(0, 1)).square().mean()
            loss.backward()

        for _ in range(4):
            adds(x)
        once = whole(w.grad) / 4
        assert not adds.programs and "adds to .grad of a sharded tensor" in adds.explain()
        w.grad = None

        def ends_without(v):
            def step(x):
                (x @ v.transpose(0, 1)).square().mean().backward()
                with tenon.no_grad():
                    v.sub_(v.grad * 0.1)
                v.grad = None

            return step

        v = nn.Parameter(w.detach().clone())
        program, function = tenon.compile(ends_without(w)), ends_without(v)
        for call in range(6):
            if call == 4:  # one that comes from elsewhere is added to, as in the function
                w.grad, v.grad = (tenon.ones_like(w.detach()) for _ in range(2))
            program(x), function(x)
            assert w.grad is None
            np.testing.assert_array_equal(whole(w), whole(v))
        assert len(program.programs) == 1, program.explain()
        return once

    once = in_ranks(2, work)[0]
    w = tenon.ones([4, 6], requires_grad=True)
    (tenon.tensor(X[0]) @ w.transpose(0, 1)).square().mean().backward()
    np.testing.assert_allclose(once, w.grad.numpy(), rtol=1e-5)


def test_arguments_that_require_gradients_are_told():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        w = dist.distribute_tensor(tenon.ones([4, 6], requires_grad=True), mesh, [Shard(0)])
        step = tenon.compile(lambda w: (w * 2.0).sum())
        for _ in range(3):
            step(w).backward()
        assert "an argument is a sharded tensor that requires a gradient" in step.explain()
        return whole(w.grad).sum()

    assert in_ranks(2, work) == [3 * 2 * 24.0] * 2


# -- calls of tenon.distributed.functional


CALLS = {
    "all_reduce": lambda x: df.all_reduce(x),
    "mean": lambda x: df.all_reduce(x, "mean"),
    "all_gather": lambda x: df.all_gather(x),
    "reduce_scatter": lambda x: df.reduce_scatter(x),
    "all_to_all": lambda x: df.all_to_all(x),
    "by_sizes": lambda x: df.all_to_all(x, None, [dist.get_rank() + 1] * 2, [1, 2]),
    "broadcast": lambda x: df.broadcast(x, 1),
    "send_recv": lambda x: df.send_recv(x, 1 - dist.get_rank(), 1 - dist.get_rank()),
    "to_one": lambda x: df.send_recv(
        x, 1 if dist.get_rank() == 0 else None, 0 if dist.get_rank() == 1 else None
    ),
    "identity": lambda x: df.identity(x),
    "mean_of_losses": lambda x: df.mean(x),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_calls_are_steps_of_programs(name):
    """Values and gradients of each call in a program are those of the function, and what it sends, too."""

    def work():
        call = CALLS[name]
        rows = 3 if name == "by_sizes" else 4
        x = nn.Parameter(tenon.ones([rows, 3]))

        def step(scale):
            x.grad = None
            y = call(x * scale)
            (y * y).sum().backward()
            return y

        compiled = tenon.compile(step)
        for n in range(5):
            scale = tenon.arange(rows * 3.0).reshape([rows, 3]) * (dist.get_rank() + 1.0) + n
            before = dist.world().counters()["bytes_sent"]
            got, grad = whole(compiled(scale)), whole(x.grad)
            sent = dist.world().counters()["bytes_sent"] - before
            want = whole(step(scale))
            assert dist.world().counters()["bytes_sent"] - before == 2 * sent
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(grad, whole(x.grad))
        assert len(compiled.programs) == 1, compiled.explain()
        return got

    in_ranks(2, work)


def test_send_recv():
    def work():
        rank, size = dist.get_rank(), dist.get_world_size()
        x = tenon.full([2], rank + 1.0, requires_grad=True)
        y = df.send_recv(x, (rank + 1) % size, (rank - 1) % size)
        (y * (rank + 1.0)).sum().backward()
        with pytest.raises(ValueError, match="expected dst to be one of the ranks"):
            df.send_recv(x, 7, None)
        return y.tolist(), x.grad.tolist()

    told = in_ranks(3, work)
    assert [y for y, _ in told] == [[3.0] * 2, [1.0] * 2, [2.0] * 2]
    assert [grad for _, grad in told] == [[2.0] * 2, [3.0] * 2, [1.0] * 2]


def test_calls_that_write_stay_outside():
    """They run the function, and the reason names what programs can hold."""

    def work():
        compiled = tenon.compile(lambda x: dist.all_reduce(x * 2.0))
        got = [compiled(tenon.ones([2])).tolist() for _ in range(3)]
        assert not compiled.programs and "tenon.distributed.functional" in compiled.explain()
        return got

    assert in_ranks(2, work) == [[[4.0, 4.0]] * 3] * 2
