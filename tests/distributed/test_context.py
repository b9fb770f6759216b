# SPDX-License-Identifier: Apache-2.0
"""Sequences that are cut over ranks: attention, gradients and losses of the whole."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.distributed import ring_attention
from tenon.nn import functional as F

RNG = np.random.default_rng(0)
BATCH, HEADS, LENGTH, FEATURES = 2, 4, 16, 6


def draw(heads, features=FEATURES):
    return RNG.normal(size=(BATCH, heads, LENGTH, features)).astype("f4")


def whole(arrays, weights, **options):
    tensors = [tenon.tensor(x, requires_grad=True) for x in arrays]
    out = F.scaled_dot_product_attention(*tensors, **options)
    (out * tenon.tensor(weights)).sum().backward()
    return out.detach().numpy(), [x.grad.numpy() for x in tensors]


def cut(arrays, weights, layout, method, options):
    """The same on ranks, joined again."""
    context = dist.ContextParallel(layout=layout, method=method)
    tensors = [context.split(tenon.tensor(x), 2) for x in arrays]
    for x in tensors:
        x.requires_grad = True
    out = context.attention(*tensors, **options)
    (out * context.split(tenon.tensor(weights), 2)).sum().backward()
    joined = [context.join(x, 2).numpy() for x in (out.detach(), *(x.grad for x in tensors))]
    return joined[0], joined[1:]


def in_ranks(size, work, *args):
    with dist.local(size, timeout=60.0) as ranks:
        return ranks.run(work, *args)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("layout", "method"),
    [("zigzag", "ring"), ("contiguous", "ring"), ("zigzag", "heads"), ("contiguous", "heads")],
)
def test_attention_of_the_whole(size, causal, layout, method):
    arrays, weights = [draw(HEADS), draw(HEADS), draw(HEADS, 3)], draw(HEADS, 3)
    options = {"causal": causal, "scale": 0.7}
    want, want_grads = whole(arrays, weights, **options)
    for got, grads in in_ranks(size, cut, arrays, weights, layout, method, options):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        for grad, want_grad in zip(grads, want_grads, strict=True):
            np.testing.assert_allclose(grad, want_grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["ring", "heads"])
def test_heads_that_share_keys(method):
    arrays, weights = [draw(HEADS), draw(2), draw(2)], draw(HEADS)
    options = {"causal": True, "enable_gqa": True}
    want, want_grads = whole(arrays, weights, **options)
    for got, grads in in_ranks(2, cut, arrays, weights, "zigzag", method, options):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        for grad, want_grad in zip(grads, want_grads, strict=True):
            np.testing.assert_allclose(grad, want_grad, rtol=1e-5, atol=1e-5)


def test_a_part_of_the_queries_at_a_time(monkeypatch):
    """Backward, whatever the number of scores that are held."""
    monkeypatch.setattr(ring_attention, "SCORES_AT_ONCE", 3 * BATCH * HEADS * LENGTH // 2)
    arrays, weights = [draw(HEADS), draw(HEADS), draw(HEADS)], draw(HEADS)
    _, want_grads = whole(arrays, weights, causal=True)
    _, grads = in_ranks(2, cut, arrays, weights, "zigzag", "ring", {"causal": True})[0]
    for grad, want_grad in zip(grads, want_grads, strict=True):
        np.testing.assert_allclose(grad, want_grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_dtypes(dtype):
    arrays, weights = [draw(HEADS), draw(HEADS), draw(HEADS)], draw(HEADS)
    want, want_grads = whole([x.astype("f8") for x in arrays], weights.astype("f8"), causal=True)

    def work():
        context = dist.ContextParallel()
        tensors = [context.split(tenon.tensor(x).to(dtype), 2) for x in arrays]
        for x in tensors:
            x.requires_grad = True
        out = context.attention(*tensors, causal=True)
        assert out.dtype.name == dtype
        (out * context.split(tenon.tensor(weights).to(dtype), 2)).sum().backward()
        parts = (out.detach(), *(x.grad for x in tensors))
        return [context.join(x.to("float64"), 2).numpy() for x in parts]

    tolerance = {"bfloat16": 0.06, "float64": 1e-12}[dtype]
    for got in in_ranks(4, work):
        for x, want_x in zip(got, (want, *want_grads), strict=True):
            np.testing.assert_allclose(x, want_x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layout", ["zigzag", "contiguous"])
def test_split_join_and_positions(layout):
    def work():
        context = dist.ContextParallel(layout=layout)
        x = tenon.arange(48.0).reshape([2, 8, 3])
        part = context.split(x, 1)
        numbers = context.positions(8)
        assert (part[0, :, 0] == x[0, numbers, 0]).all().item()
        part.requires_grad = True
        joined = context.join(part, -2)
        assert (joined == x).all().item()
        (joined * x).sum().backward()
        assert (part.grad == 2 * part.detach()).all().item()  # of both ranks' losses
        return numbers.tolist()

    want = {"zigzag": [[0, 1, 6, 7], [2, 3, 4, 5]], "contiguous": [[0, 1, 2, 3], [4, 5, 6, 7]]}
    assert in_ranks(2, work) == want[layout]


class Decoder(nn.Module):
    def __init__(self, context=None):
        super().__init__()
        tenon.manual_seed(1)
        self.context = context
        self.token, self.position = nn.Embedding(11, 8), nn.Embedding(LENGTH, 8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 11)

    def forward(self, tokens):
        batch, length = tokens.shape
        if self.context is None:
            numbers = tenon.arange(length)
            attention = F.scaled_dot_product_attention
        else:
            numbers = self.context.positions(length * self.context.group.size)
            attention = self.context.attention
        x = self.token(tokens) + self.position(numbers)
        q, k, v = (
            tenon.permute(part, [0, 2, 1, 3])
            for part in tenon.split(self.qkv(x).reshape([batch, length, 2, 12]), [4, 4, 4], 3)
        )
        y = tenon.permute(attention(q, k, v, causal=True), [0, 2, 1, 3])
        return self.out(x + y.reshape([batch, length, 8]))


@pytest.mark.parametrize("counts", ["all", "differ"])
def test_cp_loss_scale(counts):
    """Gradients do not depend on how many ranks a sequence is cut over, nor on which of them have tokens that count."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, 11, (4, LENGTH))
    targets = rng.integers(0, 11, (4, LENGTH))
    weights = np.ones((4, LENGTH), dtype="f4")
    if counts == "differ":
        weights[:, 11:] = 0  # padding
        weights[0, 3:] = 0

    def loss_of(model, index, target, weight):
        losses = F.cross_entropy(
            model(index).reshape([-1, 11]), target.reshape([-1]), reduction="none"
        )
        return losses, weight.reshape([-1])

    model = Decoder()
    losses, weight = loss_of(model, *map(tenon.tensor, (tokens, targets, weights)))
    want_loss = (losses * weight).sum() / weight.sum()
    want_loss.backward()
    want = {name: p.grad.numpy() for name, p in model.named_parameters()}

    def work(ranks_of_a_sequence):
        rank, size = dist.get_rank(), dist.get_world_size()
        shards = size // ranks_of_a_sequence
        context = dist.ContextParallel(dist.world().split(rank // ranks_of_a_sequence))
        model = Decoder(context)
        wrapped = dist.DistributedDataParallel(model)
        shard = rank // ranks_of_a_sequence
        own = slice(4 * shard // shards, 4 * (shard + 1) // shards)
        parts = [context.split(tenon.tensor(x[own]), 1) for x in (tokens, targets, weights)]
        losses, weight = loss_of(wrapped, *parts)
        loss = dist.functional.mean(losses, weight)
        loss.backward()
        if counts == "all":  # equally many: the mean of the ranks' means
            before = [p.grad.numpy().copy() for p in model.parameters()]
            model.zero_grad()
            losses, _ = loss_of(wrapped, *parts)
            losses.mean().backward()
            for p, grad in zip(model.parameters(), before, strict=True):
                np.testing.assert_allclose(p.grad.numpy(), grad, rtol=1e-4, atol=1e-6)
        return loss.item(), {name: p.grad.numpy() for name, p in model.named_parameters()}

    for size, of_a_sequence in ((2, 2), (4, 4), (4, 2)):
        for loss, grads in in_ranks(size, work, of_a_sequence):
            np.testing.assert_allclose(loss, want_loss.item(), rtol=1e-5)
            for name, grad in grads.items():
                np.testing.assert_allclose(grad, want[name], rtol=1e-4, atol=1e-6)


def test_second_derivatives():
    """By heads they are there; the ring says that it has none."""

    def work(method):
        context = dist.ContextParallel(method=method)
        q, k, v = (tenon.tensor(x[:, :2, :4], requires_grad=True) for x in arrays)
        (grad,) = tenon.autograd.grad(
            (context.attention(q, k, v) ** 2).sum(), [q], create_graph=True
        )
        (grad * grad).sum().backward()
        return k.grad is not None

    arrays = [draw(HEADS) for _ in range(3)]
    assert in_ranks(2, work, "heads") == [True, True]
    with pytest.raises(NotImplementedError, match="use method='heads'"):
        in_ranks(2, work, "ring")


def test_mean():
    def work():
        rank = dist.get_rank()
        x = tenon.full([1 + 2 * rank], float(rank + 1), requires_grad=True)
        loss = dist.functional.mean(x)
        loss.backward()
        weighted = dist.functional.mean(tenon.ones([2]) * rank, tenon.tensor([1.0, float(rank)]))
        return loss.item(), x.grad.tolist(), weighted.item()

    first, second = in_ranks(2, work)
    assert first[0] == second[0] == (1 + 3 * 2) / 4
    # Of the sum of both ranks' losses: their mean over ranks is that of the loss.
    assert first[1] == [0.5] and second[1] == [0.5] * 3
    np.testing.assert_allclose([first[2], second[2]], [2 / 3] * 2)


def test_errors():
    def work():
        with pytest.raises(ValueError, match="out of ring, heads, got 'contiguous' and 'tree'"):
            dist.ContextParallel(layout="contiguous", method="tree")
        context = dist.ContextParallel()
        with pytest.raises(ValueError, match="a length that 4 equal parts have together"):
            context.split(tenon.ones([2, 6]), 1)
        q = tenon.ones([1, 3, 4, 2])
        with pytest.raises(ValueError, match="of the same positions"):
            context.attention(q, q[:, :, :2], q[:, :, :2])
        with pytest.raises(ValueError, match="equal batches and features"):
            context.attention(q, q[..., :1], q)
        with pytest.raises(ValueError, match="a value for each key"):
            context.attention(q, q, q[:, :1])
        with pytest.raises(ValueError, match="as many heads of key and value"):
            context.attention(q, q[:, :1], q[:, :1])
        with pytest.raises(TypeError, match="of one dtype"):
            context.attention(q, q.to("float64"), q)
        with pytest.raises(ValueError, match=r"\[\.\.\., heads, length, features\]"):
            context.attention(q[0, 0], q[0, 0], q[0, 0])
        heads = dist.ContextParallel(method="heads")
        with pytest.raises(ValueError, match="a number of heads that 2 ranks can share, got 3"):
            heads.attention(q, q, q)
        with pytest.raises(ValueError, match="expected weights of shape"):
            dist.functional.mean(q, q[0])
        with pytest.raises(AttributeError, match="there is no operator named 'tenon::other'"):
            tenon._core.internal_operator("tenon::other")
        with pytest.raises(TypeError, match="expected floating-point numbers"):
            dist.functional.mean(tenon.arange(3))

    in_ranks(2, work)
