# SPDX-License-Identifier: Apache-2.0
"""Units of ZeRO stage 3 and checkpoints, in whichever order they lie in each other; rows that change between the passes."""

import gc

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.distributed.fully_shard import units_of
from tenon.distributed.prefetch import order_of
from tenon.utils.checkpoint import checkpoint

RANKS = 2


class Block(nn.Module):
    """Computes its second half again, if it is told to."""

    def __init__(self, again):
        super().__init__()
        self.again = again
        self.first = nn.Linear(6, 6)
        self.second = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6))

    def half(self, x):
        return self.second(x) * self.first.bias

    def forward(self, x):
        x = self.first(x).tanh()
        if self.again == "module":
            return x + checkpoint(self.second, x) * self.first.bias
        return x + (checkpoint(self.half, x) if self.again == "method" else self.half(x))


class Net(nn.Module):
    def __init__(self, inside=None, around=False):
        super().__init__()
        tenon.manual_seed(1)
        self.around = around
        self.embed = nn.Linear(6, 6)
        self.blocks = nn.ModuleList([Block(inside) for _ in range(3)])

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x) if self.around else block(x)
        return x * self.embed.weight.sum()


def ranks(work, *args):
    with dist.local(RANKS, timeout=60.0) as processes:
        return processes.run(work, *args)


def gradients(model, dtype=tenon.float32, frozen=(), **options):
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(part in name for part in frozen))
    for block in model.blocks:
        dist.fully_shard(block, **options)
    dist.fully_shard(model, **options)
    passes = []
    for _ in range(2):  # the second knows the order of units
        for parameter in model.parameters():
            parameter.grad = None
        x = tenon.tensor(np.linspace(-1, 1, 24, dtype="f4").reshape(4, 6)) + dist.get_rank()
        model(x).square().mean().backward()
        passes.append([None if p.grad is None else p.grad.numpy() for p in model.parameters()])
    return passes


def equal(a, b):
    return all(
        (p is None and q is None) or np.array_equal(p, q)
        for x, y in zip(a, b, strict=True)
        for p, q in zip(x, y, strict=True)
    )


@pytest.mark.parametrize("inside", ["module", "method"])
@pytest.mark.parametrize("around", [False, True])
def test_gradients_are_those_without_checkpoints(inside, around):
    def work():
        options = [
            {},
            {"reshard_after_forward": False},
            {"dtype": tenon.bfloat16},
            {"frozen": ("second", "embed")},
            {"frozen": ("blocks.1",)},
        ]
        for option in options:
            plain = gradients(Net(), **option)
            assert equal(plain, gradients(Net(inside, around), **option)), option
            assert any(grad is not None and grad.any() for grad in plain[0])

    ranks(work)


def test_a_checkpoint_does_not_gather_what_its_module_has_not():
    def work():
        counts = {}
        for around in (False, True):
            model = Net(around=around)
            gradients(model)
            counts[around] = model._unit.gathers, [block._unit.gathers for block in model.blocks]
        assert counts[True] == counts[False]

    ranks(work)


def test_whole_tensors_live_no_longer_than_backward():
    def work():
        for frozen in ((), ("blocks",)):
            model = Net("method")
            gradients(model, frozen=frozen)
            assert all(block._unit._wholes is None for block in model.blocks)

    ranks(work)


def test_rows_that_change_between_the_passes_are_an_error():
    def work():
        for inside in (None, "method"):
            model = Net(inside)
            dist.fully_shard(model)
            out = model(tenon.ones([2, 6])).sum()
            with tenon.no_grad():
                model.blocks[0].first.weight.mul_(2.0)
            with pytest.raises(RuntimeError, match=r"modified\s+in place"):
                out.backward()

    ranks(work)


def test_a_pass_that_stops_early_leaves_nothing_old():
    def work(sharded):
        tenon.manual_seed(0)
        first, second = nn.Linear(6, 6), nn.Linear(6, 6)
        model = nn.Sequential(first, nn.Tanh(), second)
        if sharded:
            dist.fully_shard(model)
        inner = []
        model[1].register_forward_hook(lambda module, given, result: inner.append(result))
        out = model(tenon.ones([2, 6])).sum()
        tenon.autograd.grad(out, [inner[0]], retain_graph=True)
        with tenon.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2.0)
        x = tenon.ones([2, 6]).requires_grad_()
        model(x).sum().backward()
        return x.grad.numpy()

    plain, sharded = ranks(work, False), ranks(work, True)
    assert all(np.allclose(p, s, rtol=1e-6) for p, s in zip(plain, sharded, strict=True))


def test_orders_of_units_outlive_the_units():
    """A unit that has the address of a dead one, on one of the ranks alone, is not taken for it."""

    def work():
        numbers = set()
        for _ in range(10):
            model = Net()
            gradients(model)
            numbers.update(unit.number for unit in units_of(model))
        assert len(numbers) == 10 * 4
        order = order_of(model._unit.group)
        del model
        gc.collect()
        gradients(Net())
        assert 0 < len(order._next) <= 2 * 4

    ranks(work)


def test_units_below_may_leave_a_module_no_parameters():
    def work():
        model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
        for each in (model[0], model[2]):
            dist.fully_shard(each)
        assert dist.fully_shard(model, dtype=tenon.bfloat16) is model
        model.set_requires_gradient_sync(False)
        model(tenon.ones([2, 6])).sum().backward()
        assert all(parameter.grad is None for parameter in model.parameters())
        model.set_requires_gradient_sync(True)
        model(tenon.ones([2, 6])).sum().backward()
        assert model[2].bias.grad.numpy().tolist() == [4.0] * model[2].bias.shape[0]

    ranks(work)
