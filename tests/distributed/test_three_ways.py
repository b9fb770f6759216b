# SPDX-License-Identifier: Apache-2.0
"""Stages of a pipeline, parts of the batch and parts of weights on a mesh of 2 x 2 x 2 ranks train as one process does."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, RowwiseParallel, checkpoint

WIDTH, TOKENS = 6, 7
IDS = np.random.default_rng(0).integers(0, TOKENS, (8, 3))
TARGETS = np.random.default_rng(1).standard_normal((8, 3, TOKENS)).astype("f4")
PLAN = {
    "embed": ColwiseParallel(output_layouts=dist.Replicate()),
    "blocks.*.up": ColwiseParallel(),
    "blocks.*.down": RowwiseParallel(),
}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = (
            nn.Linear(WIDTH, 5),
            nn.Linear(5, WIDTH),
        )  # of 5, which 2 share unevenly

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Head(nn.Module):
    """Scores by the weights of the embedding."""

    def __init__(self, embed):
        super().__init__()
        self.tied = embed

    def forward(self, x):
        return nn.functional.linear(x, self.tied.weight)


class WholeHead(Head):
    """What it returns is plain: with sharded weights each rank has a part of the sum over features."""

    def forward(self, x):
        y = super().forward(x)
        return y.full_tensor() if isinstance(y, dist.DTensor) else y


def made(is_tied):
    tenon.manual_seed(5)
    embed = nn.Embedding(TOKENS, WIDTH)
    blocks = nn.Sequential(*[Block() for _ in range(4)])
    layers = {"embed": embed, "blocks": blocks}
    layers["head"] = WholeHead(embed) if is_tied else nn.Linear(WIDTH, TOKENS)
    return nn.Sequential(layers)


def loss_of(y, target):
    return (y - target).square().mean()


def numbers(tensor):
    tensor = tensor.detach()
    return (tensor.full_tensor() if isinstance(tensor, dist.DTensor) else tensor).numpy().copy()


def alone(is_tied, steps=3):
    model = made(is_tied)
    optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    told = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(tenon.tensor(IDS)), tenon.tensor(TARGETS))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        told.append((loss.item(), norm.item()))
    assert told[0][1] > 0.5  # it clips
    return told, {name: numbers(p) for name, p in model.named_parameters()}, optimizer


def on_eight(is_tied, schedule, folder=None, steps=3):
    mesh = dist.init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
    model = dist.parallelize_module(made(is_tied), mesh["tp"], PLAN)
    pipe = dist.pipeline(
        model,
        mesh.get_group("pp"),
        microbatches=2,
        schedule=schedule,
        split=["blocks.1", "blocks.2", "blocks.3"] if schedule == "interleaved" else ["blocks.2"],
    )
    optimizer = optim.SGD(pipe.parameters(), lr=0.2, momentum=0.9)
    part, group = mesh.get_local_rank("dp"), mesh.get_group("dp")
    rows = slice(4 * part, 4 * part + 4)
    told = []
    for _ in range(steps):
        optimizer.zero_grad()
        ids, target = tenon.tensor(IDS[rows]), tenon.tensor(TARGETS[rows])
        loss = pipe.step(ids, target=target, loss_fn=loss_of).reshape([1])
        for p in pipe.parameters():
            grad = p.grad.to_local() if isinstance(p, dist.DTensor) else p.grad
            group.all_reduce(grad, "mean", out=grad)
        norm = dist.clip_grad_norm_(pipe.parameters(), 0.5, pipeline=pipe)
        optimizer.step()
        told.append((group.all_reduce(loss, "mean").item(), norm.item()))
    if folder is not None:
        checkpoint.save({"model": pipe, "optimizer": optimizer}, folder)
    return told, {name: numbers(p) for name, p in pipe.named_parameters()}


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B", "interleaved", "ZB-H1"])
@pytest.mark.parametrize("is_tied", [False, True])
def test_training_is_that_of_one_process(schedule, is_tied):
    want, parameters, _ = alone(is_tied)
    seen = set()
    with dist.local(8) as ranks:
        told = ranks.run(on_eight, is_tied, schedule)
    assert len({tuple(got) for got, _ in told}) == 1  # one norm, of the same bits
    for got, own in told:
        close(got, want)
        for name, value in own.items():
            close(value, parameters[name.replace("head.tied", "embed")])
        seen |= own.keys()
    assert seen >= parameters.keys()


def test_a_checkpoint_of_eight_ranks_is_loaded_by_one(tmp_path):
    with dist.local(8) as ranks:
        ranks.run(on_eight, False, "1F1B", tmp_path / "saved")
    _, parameters, trained = alone(False)
    model = made(False)
    optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    checkpoint.load({"model": model, "optimizer": optimizer}, tmp_path / "saved")
    for (name, p), other in zip(
        model.named_parameters(), trained.param_groups[0]["params"], strict=True
    ):
        close(p.detach().numpy(), parameters[name])
        (got,) = optimizer.state[p].values()
        (expected,) = trained.state[other].values()
        close(got.numpy(), expected.numpy())


def test_stages_hand_on_plain_tensors_and_norms_need_the_group_of_parts():
    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "tp"))
        model = nn.Sequential({"up": nn.Linear(4, 6), "down": nn.Linear(6, 4)})
        plan = {
            "up": ColwiseParallel(use_local_output=False),
            "down": RowwiseParallel(),
        }
        dist.parallelize_module(model, mesh["tp"], plan)
        # Ranks that are told may be in the call before.
        with pytest.raises((TypeError, dist.CollectiveAborted), match="layout sharded"):
            pipe = dist.pipeline(model, mesh.get_group("pp"), microbatches=2, split=["down"])
            pipe.step(tenon.ones([4, 4]), target=tenon.ones([4, 4]), loss_fn=loss_of)

    with dist.local(4) as ranks:
        ranks.run(work)

    def norm():
        layer = nn.Linear(4, 4)
        dist.fully_shard(layer)
        layer(tenon.ones([2, 4])).sum().backward()
        pipe = dist.pipeline([layer], dist.world().split(dist.get_rank()), microbatches=1)
        with pytest.raises(ValueError, match="ranks that have the same stages of the pipeline"):
            dist.clip_grad_norm_(layer.parameters(), 1.0, pipeline=pipe)
        return dist.clip_grad_norm_(layer.parameters(), 1.0, dist.world(), pipeline=pipe).item()

    with dist.local(2) as ranks:
        close(ranks.run(norm), [np.sqrt(4 * 4 * 4 + 4 * 4)] * 2)
