# SPDX-License-Identifier: Apache-2.0
"""Units of ZeRO stage 3 that are gathered while the one before computes."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed.fully_shard import units_of
from tenon.distributed.prefetch import GatherOrder
from tenon.utils.checkpoint import checkpoint

WIDTH = 6
INPUTS = np.random.default_rng(0).normal(size=(8, 4, WIDTH)).astype("f4")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        tenon.manual_seed(1)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)]
        )

    def forward(self, x, numbers=(0, 1, 2, 3), recompute=False):
        for i in numbers:
            x = checkpoint(self.blocks[i], x) if recompute else self.blocks[i](x)
        return x


def shard(model):
    for block in model.blocks:
        dist.fully_shard(block)
    return model


def in_ranks(size, work, *args):
    with dist.local(size, timeout=60.0) as ranks:
        return ranks.run(work, *args)


def bits(model):
    with dist.whole_parameters(model):
        return [
            [tensor.detach().numpy().tobytes() for tensor in (block[0].weight, block[0].bias)]
            for block in model.blocks
        ]


def train(wrap, calls, **options):
    """One step for each list of blocks."""
    model = Net()
    wrapped = wrap(model)
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    for step, numbers in enumerate(calls):
        optimizer.zero_grad()
        x = tenon.tensor(INPUTS[step] + dist.get_rank())
        wrapped(x, numbers, **options).square().mean().backward()
        optimizer.step()
    return model


def test_the_next_unit_is_on_its_way():
    def work():
        model = shard(Net())
        x = tenon.tensor(INPUTS[0], requires_grad=True)
        model(x).sum().backward()
        units = units_of(model)
        assert [unit.gathers_ahead for unit in units] == [0] * 4  # the first pass tells the order
        model(x).sum().backward()
        # Forward all but the first, backward all but the last.
        assert [unit.gathers_ahead for unit in units] == [1, 2, 2, 1]
        assert [unit.gathers for unit in units] == [4] * 4
        assert all(unit._wholes is None for unit in units)

    in_ranks(2, work)


@pytest.mark.parametrize(
    "calls",
    [
        [range(4)] * 4,
        [[0, 1, 2, 3], [0, 2, 3], [0, 1], [3, 2, 1, 0], [2, 2, 1], [0, 1, 2, 3], [1, 3]],
    ],
    ids=["alike", "differ"],
)
@pytest.mark.parametrize("recompute", [False, True])
def test_bits_whatever_is_predicted(calls, recompute, monkeypatch):
    """Those of units that are gathered when they are called."""

    def work():
        return bits(train(shard, calls, recompute=recompute))

    got = in_ranks(2, work)
    monkeypatch.setattr(GatherOrder, "gather", lambda order, unit: unit.start()())
    assert got == in_ranks(2, work)


def test_values_that_changed_meanwhile_are_gathered_again():
    """Predicted, left out, and changed before it is called."""

    def work():
        model = shard(Net())
        x = tenon.tensor(INPUTS[0])
        with tenon.no_grad():
            model(x)
            model(x, [0, 1])  # the next one, 2, is on its way
            for param in model.parameters():
                param.mul_(2.0)
            got = model(x, [2])
            with dist.whole_parameters(model):
                layer = model.blocks[2][0]
                want = tenon.tanh(x @ layer.weight.T + layer.bias)
        assert (got == want).all().item()

    in_ranks(2, work)


def test_what_was_predicted_wrongly_is_forgotten():
    def work():
        model = shard(Net())
        x = tenon.tensor(INPUTS[0])
        unit = units_of(model)[2]
        with tenon.no_grad():
            model(x)
            for _ in range(3):
                model(x, [0, 1])
        return unit.gathers

    assert in_ranks(2, work) == [2, 2]  # and not once in every pass
