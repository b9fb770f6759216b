# SPDX-License-Identifier: Apache-2.0
"""Data parallel training: the bits of one process that accumulates, whatever the number of ranks."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(6, 8, 5)).astype("f4")  # steps, samples, numbers
TARGETS = RNG.normal(size=(6, 8, 3)).astype("f4")


def make_model(frozen=()):
    tenon.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    for index in frozen:
        for param in model[index].parameters():
            param.requires_grad = False
    return model


def loss_of(model, step, rows):
    out = model(tenon.tensor(INPUTS[step][rows]))
    return ((out - tenon.tensor(TARGETS[step][rows])) ** 2).mean()


def bits(model):
    return [param.detach().numpy().tobytes() for param in model.parameters()]


def accumulated(parts, frozen=(), steps=6):
    """One process that adds up the gradients of the parts of each batch, and divides once."""
    model = make_model(frozen)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = optim.AdamW(trained, lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(parts):
            loss_of(model, step, slice(8 * part // parts, 8 * (part + 1) // parts)).backward()
        for param in trained:
            param.grad = param.grad / parts
        optimizer.step()
    return bits(model)


def train(size, wrap, make_optimizer, steps=6, frozen=()):
    def work():
        rank = dist.get_rank()
        model = make_model(frozen)
        if rank > 0:  # what counts is the model of rank 0
            with tenon.no_grad():
                for param in model.parameters():
                    param.add_(1.0)
        model, wrapped = model, wrap(model)
        optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(wrapped, step, slice(8 * rank // size, 8 * (rank + 1) // size)).backward()
            optimizer.step()
        return bits(model)

    with dist.local(size) as ranks:
        return ranks.run(work)


def data_parallel(**options):
    return lambda model: dist.DistributedDataParallel(model, **options)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("bucket", [25.0, 1e-4])
def test_bits_of_accumulation_on_one_rank(size, bucket):
    expected = accumulated(size)
    for got in train(size, data_parallel(bucket_cap_mb=bucket), lambda p: optim.AdamW(p, lr=0.05)):
        assert got == expected


def test_frozen():
    expected = accumulated(2, frozen=(0,))
    for got in train(2, data_parallel(), lambda p: optim.AdamW(p, lr=0.05), frozen=(0,)):
        assert got == expected


def test_no_sync_adds_up_and_divides_once():
    def work():
        rank = dist.get_rank()
        model = dist.DistributedDataParallel(make_model())
        with model.no_sync():
            loss_of(model, 0, slice(rank, rank + 1)).backward()
        own = model.module[0].weight.grad.numpy().copy()
        loss_of(model, 0, slice(rank + 2, rank + 3)).backward()
        return own, model.module[0].weight.grad.numpy()

    with dist.local(2) as ranks:
        (own0, both0), (own1, both1) = ranks.run(work)
    assert (own0 != own1).any() and (both0 == both1).all()
    model = make_model()
    grads = []
    for rows in ((0, 2), (1, 3)):
        for row in rows:
            loss_of(model, 0, slice(row, row + 1)).backward()
        grads.append(model[0].weight.grad.numpy().copy())
        model[0].weight.grad = None
    np.testing.assert_array_equal(both0, (grads[0] + grads[1]) / 2)


def fail(_grad):
    raise ValueError("a gradient that cannot be made")


def test_zero_leaves_unused_parameters_alone():
    def train_branch(params, make_optimizer, model):
        optimizer = make_optimizer(params)
        for _ in range(2):
            optimizer.zero_grad()
            model(tenon.tensor(INPUTS[0][:2]), 0).sum().backward()
            optimizer.step()
        return bits(model)

    def work(stage):
        model = Branches()
        wrapped = model
        if stage == 1:
            wrapped = dist.DistributedDataParallel(model, find_unused_parameters=True)
        make = lambda params: dist.ZeroRedundancyOptimizer(  # noqa: E731
            params, optim.AdamW, stage=stage, lr=0.1, weight_decay=0.5
        )
        train_branch(model.parameters(), make, wrapped)
        return bits(model)

    model = Branches()
    make = lambda params: optim.AdamW(params, lr=0.1, weight_decay=0.5)  # noqa: E731
    expected = train_branch(model.parameters(), make, model)
    with dist.local(2) as ranks:
        for stage in (1, 2):
            assert ranks.run(work, stage) == [expected] * 2


def test_a_parameter_used_inside_no_sync_only():
    def work():
        rank = dist.get_rank()
        model = dist.DistributedDataParallel(Branches(), find_unused_parameters=True)
        x = tenon.tensor(INPUTS[0][rank : rank + 1])
        grads = []
        for _ in range(2):
            for param in model.parameters():
                param.grad = None
            with model.no_sync():
                if rank == 0:
                    model(x, 1).sum().backward()
            model(x, 0).sum().backward()
            grads.append(model.module.second.weight.grad.tolist())
            assert model.module.never.weight.grad is None
        return grads

    one = Branches()
    one(tenon.tensor(INPUTS[0][:1]), 1).sum().backward()
    half = (one.second.weight.grad / 2).tolist()
    with dist.local(2) as ranks:
        assert ranks.run(work) == [[half, half]] * 2


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        tenon.manual_seed(2)
        self.first, self.second, self.never = nn.Linear(5, 3), nn.Linear(5, 3), nn.Linear(5, 3)

    def forward(self, x, branch):
        return (self.first if branch == 0 else self.second)(x)


def test_unused_in_a_branch():
    x = tenon.tensor(INPUTS[0][:2])

    def work():
        rank = dist.get_rank()
        model = dist.DistributedDataParallel(Branches(), find_unused_parameters=True)
        for _ in range(2):  # also with the order of the first pass
            for param in model.parameters():
                param.grad = None
            model(x, rank).sum().backward()
        inner = model.module
        assert inner.never.weight.grad is None
        return inner.first.weight.grad.numpy(), inner.second.weight.grad.numpy()

    one = Branches()
    one(x, 0).sum().backward()
    half = one.first.weight.grad.numpy() / 2
    with dist.local(2) as ranks:
        for first, second in ranks.run(work):
            np.testing.assert_array_equal(first, half)
            np.testing.assert_array_equal(second, half)


def test_unused_parameters_are_named():
    def work():
        model = dist.DistributedDataParallel(Branches())
        with pytest.raises(
            RuntimeError, match=r"expected gradients of all parameters, got none of \['"
        ) as caught:
            model(tenon.tensor(INPUTS[0][:2]), 0).sum().backward()
        assert "never.weight" in str(caught.value) and "find_unused_parameters" in str(caught.value)

    with dist.local(2, timeout=10.0) as ranks:
        ranks.run(work)


def test_mixed_dtypes_in_a_bucket():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(tenon.ones([3]))
            self.b = nn.Parameter(tenon.ones([3], dtype=tenon.float64))
            self.c = nn.Parameter(tenon.ones([3], dtype=tenon.float16))

        def forward(self, k):
            return (self.a * k).sum() + (self.b * k).sum() + (self.c * k).sum()

    def work():
        model = dist.DistributedDataParallel(Mixed())
        model(1.0 + 2.0 * dist.get_rank()).backward()
        return [(p.grad.dtype.name, p.grad.tolist()) for p in model.parameters()]

    expected = [(name, [2.0] * 3) for name in ("float32", "float64", "float16")]
    with dist.local(2) as ranks:
        assert ranks.run(work) == [expected] * 2


def test_models_that_differ():
    def work():
        with pytest.raises(
            ValueError, match="expected the same parameters on all ranks, got .*weight"
        ):
            dist.DistributedDataParallel(nn.Linear(2 + dist.get_rank(), 6 // (2 + dist.get_rank())))

    with dist.local(2) as ranks:
        ranks.run(work)


def test_buffers_are_those_of_rank_0():
    def work():
        model = dist.DistributedDataParallel(nn.BatchNorm1d(5))
        for step in range(2):
            model(tenon.tensor(INPUTS[step][4 * dist.get_rank() :][:4]))
        model.eval()
        return model.module.running_mean.tolist()

    one = nn.BatchNorm1d(5)
    one(tenon.tensor(INPUTS[0][:4]))
    one(tenon.tensor(INPUTS[1][:4]))
    with dist.local(2) as ranks:
        assert ranks.run(work)[0] == one.running_mean.tolist()


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_zero_has_the_bits_of_data_parallel(stage, size):
    def make_optimizer(params):
        return dist.ZeroRedundancyOptimizer(params, optim.AdamW, stage=stage, lr=0.05)

    def same_start(model):
        with tenon.no_grad():
            for param in model.parameters():
                dist.broadcast(param, 0)
        return model

    plain = train(size, data_parallel(), lambda p: optim.AdamW(p, lr=0.05))
    wrap = data_parallel() if stage == 1 else same_start
    assert train(size, wrap, make_optimizer) == plain
    if size != 3:
        assert plain[0] == accumulated(size)


def test_the_state_of_zero_is_spread_and_gathered():
    def work():
        model = make_model()
        optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.Adam, stage=2, lr=0.1)
        loss_of(model, 0, slice(4 * dist.get_rank(), 4 * dist.get_rank() + 4)).backward()
        assert all(param.grad is None for param in model.parameters())
        norm = optimizer.clip_grad_norm_(1e9).item()
        optimizer.step()
        held = sum(
            value.size
            for state in optimizer.inner.state.values()
            for value in state.values()
            if isinstance(value, tenon.Tensor) and value.ndim
        )
        state = optimizer.state_dict()
        again = dist.ZeroRedundancyOptimizer(model.parameters(), optim.Adam, stage=2, lr=0.1)
        again.load_state_dict(state)
        assert str(again.state_dict()) == str(state)
        return (
            held,
            norm,
            {k: v.tolist() for k, v in state["state"][0].items() if hasattr(v, "tolist")},
        )

    model = make_model()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    (0.5 * (loss_of(model, 0, slice(0, 4)) + loss_of(model, 0, slice(4, 8)))).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9).item()
    optimizer.step()
    expected = {
        k: v.tolist() for k, v in optimizer.state_dict()["state"][0].items() if hasattr(v, "tolist")
    }
    count = sum(param.size for param in model.parameters())
    with dist.local(2) as ranks:
        told = ranks.run(work)
    assert sum(held for held, _, _ in told) == 2 * count  # two moments, each once
    for _, own_norm, state in told:
        assert own_norm == pytest.approx(norm, rel=1e-5)
        assert state.keys() == expected.keys()
        for name, value in state.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-9)


def test_the_state_of_zero_in_bfloat16():
    def work():
        model = nn.Linear(5, 3).to(tenon.bfloat16)
        optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.1)
        dist.DistributedDataParallel(model)(
            tenon.tensor(INPUTS[0][:2]).to(tenon.bfloat16)
        ).sum().backward()
        optimizer.step()
        state = optimizer.state_dict()
        again = dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.1)
        again.load_state_dict(state)
        assert str(again.state_dict()) == str(state)
        return {name: str(value) for name, value in state["state"][0].items()}

    tenon.manual_seed(3)
    with dist.local(2) as ranks:
        first, second = ranks.run(work)
    assert first == second and any("bfloat16" in text for text in first.values())


def test_zero_refuses_what_needs_whole_parameters():
    def work():
        params = list(make_model().parameters())
        for kind in (optim.Lamb, optim.LBFGS, optim.Adafactor):
            with pytest.raises(
                NotImplementedError, match=f"got {kind.__name__}, which needs whole"
            ):
                dist.ZeroRedundancyOptimizer(params, kind, lr=0.1)
        with pytest.raises(NotImplementedError, match="expected stage 1 or 2, got 3"):
            dist.ZeroRedundancyOptimizer(params, optim.Adam, stage=3, lr=0.1)

    with dist.local(1) as ranks:
        ranks.run(work)


@pytest.mark.parametrize("count", [16, 17, 19, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_ranks(count, drop_last):
    def read(size, per_rank, epoch):
        samplers = [
            dist.DistributedBatchSampler(
                range(count), per_rank, size, rank, True, drop_last, seed=5
            )
            for rank in range(size)
        ]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        batches = [list(sampler) for sampler in samplers]
        assert {len(own) for own in batches} == {len(samplers[0])}
        return [sum((own[step] for own in batches), []) for step in range(len(batches[0]))]

    for epoch in range(2):
        two, four = read(2, 4, epoch), read(4, 2, epoch)
        for a, b in zip(two, four, strict=True):
            assert len(a) % 2 == 0 and len(b) % 4 == 0
            if len(a) == 8:  # a short one may be filled with more samples for more ranks
                assert a == b
        seen = sum(two, [])
        assert set(seen) <= set(range(count))
        if not drop_last:
            assert set(seen) == set(range(count))
    if count == 16:
        assert read(2, 4, 0) != read(2, 4, 1)


def test_call_after_backward_belongs_to_a_pass():
    with pytest.raises(RuntimeError, match="expected a hook of a backward pass"):
        tenon._core._call_after_backward(lambda: None)
    seen = []
    x = tenon.ones([2], requires_grad=True)
    x.register_post_accumulate_grad_hook(
        lambda p: tenon._core._call_after_backward(lambda: seen.append(p.grad.tolist()))
    )
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]


def test_backward_passes_have_numbers():
    assert tenon._core._backward_pass_number() == 0
    seen = []
    x = tenon.ones([2], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(tenon._core._backward_pass_number()))
    for _ in range(2):
        (x * 3).sum().backward()
    assert 0 < seen[0] < seen[1]
