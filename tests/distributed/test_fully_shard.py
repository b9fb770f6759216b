# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 3: the bits of data parallel training, with a part of the memory."""

import copy

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from ranks import Processes
from tenon import nn, optim
from tenon.distributed.fully_shard import units_of

INPUTS = np.random.default_rng(0).normal(size=(5, 8, 6)).astype("f4")
TARGETS = np.random.default_rng(1).normal(size=(5, 8, 3)).astype("f4")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        tenon.manual_seed(1)
        self.embed = nn.Linear(6, 10)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(10, 10), nn.LayerNorm(10), nn.GELU()) for _ in range(3)]
        )
        self.head = nn.Linear(10, 3)
        self.scale = nn.Parameter(tenon.tensor(1.5))

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x) * self.scale


def loss_of(model, step, size, rank):
    own = slice(8 * rank // size, 8 * (rank + 1) // size)
    out = model(tenon.tensor(INPUTS[step][own]))
    return ((out - tenon.tensor(TARGETS[step][own])) ** 2).mean()


def shard(model, **options):
    for block in model.blocks:
        dist.fully_shard(block, **options)
    return dist.fully_shard(model, **options)


def whole(model):
    with dist.whole_parameters(model):
        return {name: p.numpy().tobytes() for name, p in named(model)}


def named(model):
    """Also of tensors that stand for parameters."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, tenon.Tensor):
                yield f"{path}.{name}".strip("."), value.detach()


def train(wrap, clip=None, steps=5, kind=optim.AdamW):
    rank, size = dist.get_rank(), dist.get_world_size()
    model = Net()
    if rank:  # what counts is the model of rank 0
        with tenon.no_grad():
            for param in model.parameters():
                param.add_(1.0)
    wrapped = wrap(model)
    optimizer = kind(model.parameters(), lr=0.05)
    norms = []
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(wrapped, step, size, rank).backward()
        if clip is not None:
            norms.append(dist.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
    return whole(model), norms


def in_ranks(size, work, *args, **options):
    with dist.local(size, timeout=60.0) as ranks:
        return ranks.run(work, *args, **options)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("reshard", [True, False])
def test_bits_of_data_parallel(size, reshard):
    expected, _ = in_ranks(size, train, dist.DistributedDataParallel)[0]
    for got, _ in in_ranks(size, train, lambda m: shard(m, reshard_after_forward=reshard)):
        assert got == expected


def test_norms_count_each_number_once():
    expected = in_ranks(2, train, dist.DistributedDataParallel, clip=0.5)
    got = in_ranks(2, train, shard, clip=0.5)
    for (_, norms), (_, want) in zip(got, expected, strict=True):
        np.testing.assert_allclose(norms, want, rtol=1e-5)


def test_parameters_are_rows_between_passes():
    def work():
        rank, size = dist.get_rank(), dist.get_world_size()
        model = Net()
        shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
        shard(model)
        assert isinstance(model, Net) and len(units_of(model)) == 4
        held = 0
        for name, param in model.named_parameters():
            assert param.whole_shape == shapes[name]
            rows = shapes[name][0] if shapes[name] else 1
            assert param.shape[0] == rows * (rank + 1) // size - rows * rank // size
            held += param.size
        loss_of(model, 0, size, rank).backward()
        assert all(p.grad is None or p.grad.shape == p.shape for p in model.parameters())
        assert all(unit._wholes is None for unit in units_of(model))
        # Gathered forward, and again backward where weights are needed.
        assert [unit.gathers for unit in units_of(model)] == [2, 2, 2, 2]
        return held

    total = sum(p.size for p in Net().parameters())
    assert sum(in_ranks(3, work)) == total


WIDTH, LAYERS = 512, 8


def test_memory():
    """Operators save where in a unit a weight lies, and not the weight: 16 / n bytes a parameter with Adam, and a unit."""
    program = f"""
        from tenon import nn, optim
        from tenon.runtime import memory
        dist.init_process_group(timeout=60)
        for kind in ("whole", "parts", "kept"):
            model = nn.Sequential(*[nn.Linear({WIDTH}, {WIDTH}, bias=False) for _ in range({LAYERS})])
            if kind != "whole":
                for layer in model:
                    dist.fully_shard(layer, reshard_after_forward=kind == "parts")
            optimizer = optim.Adam(model.parameters(), lr=1e-3)
            for step in range(2):
                optimizer.zero_grad()
                loss = model(tenon.ones([2, {WIDTH}])).sum()
                forward = memory.stats()["current"]
                loss.backward()
                del loss
                optimizer.step()
            print(kind, forward, memory.stats()["current"])
            del model, optimizer
            layer = None
    """
    weight = 4 * WIDTH * WIDTH
    with Processes(2, program) as processes:
        for output, errors in processes.finish():
            told = {
                line.split()[0]: list(map(int, line.split()[1:])) for line in output.splitlines()
            }
            assert len(told) == 3, errors
            close = {"rel": 0.03}
            # Weights and two moments; gradients as well, behind a step.
            assert told["whole"] == [pytest.approx(n * LAYERS * weight, **close) for n in (3, 4)]
            assert told["parts"] == [
                pytest.approx(n * LAYERS * weight / 2, **close) for n in (3, 4)
            ]
            # The weights of all layers but the first, whose input needs no gradient.
            kept = [(3 / 2 * LAYERS + LAYERS - 1) * weight, 4 / 2 * LAYERS * weight]
            assert told["kept"] == [pytest.approx(n, **close) for n in kept]


def test_frozen_and_unused_parameters():
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            tenon.manual_seed(2)
            self.frozen, self.used, self.never = nn.Linear(6, 6), nn.Linear(6, 3), nn.Linear(2, 2)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.used(self.frozen(x))

    def work(wrap):
        rank, size = dist.get_rank(), dist.get_world_size()
        model = Parts()
        wrapped = wrap(model)
        loss_of(wrapped, 0, size, rank).backward()
        optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1).step()
        return {k: v for k, v in whole(model).items() if not k.startswith("never")}

    def unused(model):
        return dist.DistributedDataParallel(model, find_unused_parameters=True)

    assert in_ranks(2, work, dist.fully_shard) == in_ranks(2, work, unused)


def test_accumulation_and_evaluation():
    def work():
        rank, size = dist.get_rank(), dist.get_world_size()
        model = shard(Net())
        for step in (0, 1):
            loss_of(model, step, size, rank).backward()
        with tenon.no_grad():
            out = model(tenon.tensor(INPUTS[0])).numpy()
        with dist.whole_parameters(model):
            assert model.head.weight.shape == (3, 10)
            again = model(tenon.tensor(INPUTS[0])).numpy()
        assert model.head.weight.shape[0] < 3
        grads = []
        for param in model.parameters():
            grads.append(param.grad.numpy())
        return out, again, grads

    one = Net()
    for step in (0, 1):
        loss_of(one, step, 1, 0).backward()
    told = in_ranks(2, work)
    for out, again, _ in told:
        np.testing.assert_allclose(out, one(tenon.tensor(INPUTS[0])).detach().numpy(), rtol=1e-5)
        np.testing.assert_allclose(out, again, rtol=1e-6)
    for index, param in enumerate(one.parameters()):
        parts = [grads[index] for _, _, grads in told]
        want = param.grad.numpy().reshape(-1)
        np.testing.assert_allclose(
            np.concatenate([p.reshape(-1) for p in parts]), want, rtol=1e-4, atol=1e-6
        )


def test_a_module_that_raises_is_as_before():
    def work():
        model = shard(Net())
        with pytest.raises(ValueError):
            model(tenon.ones([2, 5]))
        assert type(model.head.weight).__name__ == "ShardedParameter"
        return loss_of(model, 0, 2, dist.get_rank()).item()

    in_ranks(2, work)


def test_what_is_refused():
    def work():
        model = shard(Net())
        for kind in (optim.Lamb, optim.LBFGS, optim.Adafactor, optim.Lars):
            with pytest.raises(
                NotImplementedError, match=f"{kind.__name__}.* needs whole parameters"
            ):
                kind(model.parameters(), lr=0.1)
        with pytest.raises(ValueError, match="expected a module that is not sharded, got Net"):
            dist.fully_shard(model)
        with pytest.raises(TypeError, match="a sharded module cannot be copied"):
            copy.deepcopy(model)
        with pytest.raises(ValueError, match="expected a module with parameters, got none"):
            dist.fully_shard(nn.GELU())

    in_ranks(2, work)


def test_models_that_differ():
    def work():
        with pytest.raises(
            ValueError, match="fully_shard: expected the same parameters on all ranks"
        ):
            dist.fully_shard(nn.Linear(2 + dist.get_rank(), 3))

    in_ranks(2, work)


def test_checkpoints(tmp_path):
    """From ZeRO-3 on 3 ranks to one process, and back on 2."""
    from tenon.distributed import checkpoint

    def run(size, sharded, source, target):
        def work():
            rank = dist.get_rank()
            model = Net()
            if sharded:
                shard(model)
            optimizer = optim.AdamW(model.parameters(), lr=0.05)
            state = {"model": model, "optimizer": optimizer}
            if source:
                checkpoint.load(state, tmp_path / source)
            # All ranks have the whole batch: sums of equal numbers, so that bits do not depend on their number.
            optimizer.zero_grad()
            loss_of(model, 0, 1, 0).backward()
            optimizer.step()
            checkpoint.save(state, tmp_path / target)
            del rank
            return whole(model)

        return in_ranks(size, work)

    run(2, True, None, "a")
    run(1, False, "a", "b")
    last = run(2, True, "b", "c")
    run(1, False, None, "d")
    run(1, False, "d", "e")
    expected = run(1, False, "e", "f")
    for got in last:
        assert got == expected[0]
