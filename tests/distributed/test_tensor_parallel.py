# SPDX-License-Identifier: Apache-2.0
"""Tensor and sequence parallel models train as one process does, and say what does not fit."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, Replicate, RowwiseParallel, SequenceParallel, Shard

VOCABULARY, WIDTH, HEADS, LENGTH = 11, 8, 4, 6
IDS = np.random.default_rng(0).integers(0, VOCABULARY, (4, LENGTH + 1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm1(x)
        # Each rank has some of the heads, and counts them by itself.
        q, k, v = (
            layer(y).reshape([x.shape[0], LENGTH, -1, WIDTH // HEADS]).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        seen = nn.functional.scaled_dot_product_attention(q, k, v, causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape([x.shape[0], LENGTH, -1]))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        tenon.manual_seed(1)
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x = self.embed(ids) + self.position(tenon.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


TENSOR = {
    "blocks.*.[qkv]": ColwiseParallel(),
    "blocks.*.out": RowwiseParallel(),
    "blocks.*.up": ColwiseParallel(),
    "blocks.*.down": RowwiseParallel(),
}


def sequence_plan():
    """Activations between blocks are cut along the sequence."""
    column = {"input_layouts": Shard(1)}
    row = {"output_layouts": Shard(1), "use_local_output": False}
    return {
        "embed": ColwiseParallel(**row),
        "position": ColwiseParallel(output_layouts=Shard(0), use_local_output=False),
        "blocks.*.norm?": SequenceParallel(),
        "norm": SequenceParallel(),
        "blocks.*.[qkv]": ColwiseParallel(**column),
        "blocks.*.up": ColwiseParallel(**column),
        "blocks.*.out": RowwiseParallel(**row),
        "blocks.*.down": RowwiseParallel(**row),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }


def whole(tensor):
    return (tensor.full_tensor() if isinstance(tensor, dist.DTensor) else tensor).detach().numpy()


def train(model, rows=slice(None), average=None):
    # Not Adam, which divides by what it sees: the gradient of a key's bias is 0 but for rounding.
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        ids = tenon.tensor(IDS[rows])
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(
            logits.reshape([-1, VOCABULARY]), ids[:, 1:].reshape([-1])
        )
        loss.backward()
        if average:
            average(model)
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: whole(p) for name, p in model.named_parameters()}


def compare(got, want):
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    assert list(got[1]) == list(want[1])
    for name, value in want[1].items():
        np.testing.assert_allclose(got[1][name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("plan", ["tensor", "sequence"])
def test_training_is_that_of_one_process(plan):
    def work():
        mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        before = dist.reshard_policy("deny")
        try:
            model = dist.parallelize_module(
                Gpt(), mesh["tp"], TENSOR if plan == "tensor" else sequence_plan()
            )
            block = model.blocks[0]
            assert tuple(block.up.weight.to_local().shape) == (2 * WIDTH, WIDTH)
            assert tuple(block.down.weight.to_local().shape) == (WIDTH, 2 * WIDTH)
            return train(model)
        finally:
            dist.reshard_policy(before)

    want = train(Gpt())
    with dist.local(2) as ranks:
        for got in ranks.run(work):
            compare(got, want)


def test_heads_that_ranks_do_not_share_evenly():
    """Three ranks have one, one and two of four heads."""

    def work():
        mesh = dist.init_device_mesh("cpu", (3,))
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        model = dist.parallelize_module(
            nn.Sequential({"up": nn.Linear(5, 7), "down": nn.Linear(7, 3)}), mesh, plan
        )
        x = tenon.tensor(np.ones((2, 5), "f4"), requires_grad=True)
        y = model(x)
        y.square().sum().backward()
        return y.detach().numpy(), x.grad.numpy(), whole(model.up.weight.grad)

    def plain():
        model = nn.Sequential({"up": nn.Linear(5, 7), "down": nn.Linear(7, 3)})
        x = tenon.tensor(np.ones((2, 5), "f4"), requires_grad=True)
        y = model(x)
        y.square().sum().backward()
        return y.detach().numpy(), x.grad.numpy(), model.up.weight.grad.numpy()

    state = tenon.random.get_state()
    want = plain()
    tenon.random.set_state(state)
    with dist.local(3) as ranks:
        for got in ranks.run(work):
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_data_and_tensor_parallel_on_a_mesh_of_two_axes():
    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = dist.parallelize_module(Gpt(), mesh["tp"], TENSOR)
        group, rank = mesh.get_group("dp"), mesh.get_local_rank("dp")

        def average(model):
            for p in model.parameters():
                grad = p.grad.to_local() if isinstance(p, dist.DTensor) else p.grad
                group.all_reduce(grad, "mean", out=grad)

        return train(model, slice(2 * rank, 2 * rank + 2), average)

    want = train(Gpt())
    with dist.local(4) as ranks:
        got = ranks.run(work)
    for rank in range(4):
        for name, value in want[1].items():
            np.testing.assert_allclose(
                got[rank][1][name], value, rtol=1e-5, atol=1e-6, err_msg=name
            )


def test_what_does_not_fit_a_plan():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        with pytest.raises(ValueError, match="expected a module that 'bocks.*' names, got none"):
            dist.parallelize_module(Gpt(), mesh, {"bocks.*": ColwiseParallel()})
        with pytest.raises(TypeError, match="RowwiseParallel: expected a Linear, got LayerNorm"):
            dist.parallelize_module(Gpt(), mesh, {"norm": RowwiseParallel()})
        with pytest.raises(
            ValueError, match="expected one line of the plan for 'blocks.0.q', got two"
        ):
            dist.parallelize_module(
                Gpt(), mesh, {"blocks.*.q": ColwiseParallel(), "blocks.0.*": ColwiseParallel()}
            )
        with pytest.raises(NotImplementedError, match=r"expected Embedding\(sparse=False\)"):
            dist.parallelize_module(nn.Embedding(4, 4, sparse=True), mesh, ColwiseParallel())
        grid = dist.init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
        with pytest.raises(ValueError, match="expected a mesh of one axis"):
            dist.parallelize_module(Gpt(), grid, TENSOR)

    with dist.local(2) as ranks:
        ranks.run(work)


def test_blocks_of_sharded_weights_are_computed_again():
    """A region of checkpoint saves sharded tensors: gradients are those without it."""

    def gradients(is_again):
        def work():
            tenon.manual_seed(0)
            mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
            layers = {"up": nn.Linear(8, 16), "act": nn.GELU(), "down": nn.Linear(16, 8)}
            model = nn.Sequential(layers)
            plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
            dist.parallelize_module(model, mesh, plan)
            x = tenon.ones([4, 8], requires_grad=True)
            y = tenon.utils.checkpoint.checkpoint(model, x) if is_again else model(x)
            y.square().mean().backward()
            return [p.grad.full_tensor().tolist() for p in (model.up.weight, model.down.weight)]

        with dist.local(2, timeout=60.0) as ranks:
            return ranks.run(work)[0]

    assert gradients(True) == gradients(False)
