# SPDX-License-Identifier: Apache-2.0
"""Tables and scores of a vocabulary that is cut over ranks: the numbers of one process, and no message of their size."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.distributed import Replicate, RowwiseParallel, Shard

VOCABULARY, WIDTH = 11, 4
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(VOCABULARY, WIDTH)).astype("f4")
IDS = RNG.integers(0, VOCABULARY, (3, 5))
WEIGHTS = RNG.normal(size=(3, 5, WIDTH)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def embedding(padding_idx=None):
    layer = nn.Embedding(VOCABULARY, WIDTH, padding_idx=padding_idx)
    with tenon.no_grad():
        layer.weight.copy_(tenon.tensor(TABLE))
    return layer


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("padding_idx", [None, 7])
def test_rows_of_a_table(size, padding_idx):
    whole = embedding(padding_idx)
    want = whole(tenon.tensor(IDS))
    (want * tenon.tensor(WEIGHTS)).sum().backward()

    def work():
        mesh = dist.init_device_mesh("cpu", (size,))
        layer = dist.parallelize_module(embedding(padding_idx), mesh, RowwiseParallel())
        assert layer.weight.placements == (Shard(0),)
        out = layer(tenon.tensor(IDS))
        (out * tenon.tensor(WEIGHTS)).sum().backward()
        assert size == 1 or layer.weight.grad.placements == (Shard(0),)
        return out.detach().numpy(), layer.weight.grad.full_tensor().numpy()

    for out, grad in in_ranks(size, work):
        np.testing.assert_array_equal(out, want.detach().numpy())
        np.testing.assert_allclose(grad, whole.weight.grad.numpy(), rtol=1e-6)


def test_a_vocabulary_smaller_than_the_mesh():
    def work():
        mesh = dist.init_device_mesh("cpu", (3,))
        layer = nn.Embedding(2, WIDTH)
        with tenon.no_grad():
            layer.weight.copy_(tenon.tensor(TABLE[:2]))
        dist.parallelize_module(layer, mesh, RowwiseParallel())
        out = layer(tenon.tensor([1, 0, 1]))
        out.sum().backward()
        return out.detach().numpy(), layer.weight.grad.full_tensor().tolist()

    for out, grad in in_ranks(3, work):
        np.testing.assert_array_equal(out, TABLE[[1, 0, 1]])
        assert grad == [[1.0] * WIDTH, [2.0] * WIDTH]


def test_the_table_is_not_brought_together():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        layer = nn.Embedding(10_000, 8)
        dist.parallelize_module(layer, mesh, RowwiseParallel())
        before = dist.world().counters()["bytes_sent"]
        layer(tenon.arange(16)).sum().backward()
        return dist.world().counters()["bytes_sent"] - before

    assert in_ranks(2, work) == [16 * 8 * 4] * 2  # the all_reduce of the result


def test_the_sequence_may_be_cut_behind_it():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        style = RowwiseParallel(output_layouts=Shard(0), use_local_output=False)
        layer = dist.parallelize_module(embedding(), mesh, style)
        out = layer(tenon.tensor(IDS))
        assert out.placements == (Shard(0),)
        return out.full_tensor().detach().numpy()

    for out in in_ranks(2, work):
        np.testing.assert_array_equal(out, TABLE[IDS])


def test_what_is_refused():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        layer = dist.parallelize_module(embedding(), mesh, RowwiseParallel())
        for wrong in (VOCABULARY, -1):
            with pytest.raises(IndexError, match=f"expected indices from 0 to 10, got {wrong}"):
                layer(tenon.tensor([0, wrong]))
        for options in ({"sparse": True}, {"max_norm": 1.0}, {"scale_grad_by_freq": True}):
            with pytest.raises(
                NotImplementedError, match="a table that one of these was given for"
            ):
                dist.parallelize_module(nn.Embedding(4, 2, **options), mesh, RowwiseParallel())
        scores = dist.distribute_tensor(tenon.ones([3, 4]), mesh, [Shard(1)])
        call = dist.vocab_parallel_cross_entropy
        with pytest.raises(TypeError, match="expected scores of layout sharded|of layout sharded"):
            call(tenon.ones([3, 4]), tenon.zeros([3], dtype=tenon.int64))
        with pytest.raises(IndexError, match="expected targets from 0 to 3, or ignore_index -100"):
            call(scores, tenon.tensor([0, 4, 1]))
        with pytest.raises(ValueError, match=r"expected targets of shape \(3,\), got \(2,\)"):
            call(scores, tenon.tensor([0, 1]))
        with pytest.raises(ValueError, match="'mean', 'sum' or 'none', got 'avg'"):
            call(scores, tenon.tensor([0, 1, 2]), reduction="avg")
        with pytest.raises(
            NotImplementedError, match=r"expected a tensor of shape \(3, 4\) in \[Shard\(1\)\]"
        ):
            call(scores.redistribute([Replicate()]), tenon.tensor([0, 1, 2]))

    in_ranks(2, work)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_cross_entropy(size, reduction, dtype):
    scores = RNG.normal(size=(6, VOCABULARY)) * 10
    target = np.array([0, 10, 5, -100, 3, 10])
    whole = tenon.tensor(scores).to(dtype).requires_grad_()
    want = nn.functional.cross_entropy(whole, tenon.tensor(target), reduction=reduction)
    want.sum().backward()

    def work():
        mesh = dist.init_device_mesh("cpu", (size,))
        x = dist.distribute_tensor(whole.detach(), mesh, [Shard(1)]).requires_grad_()
        loss = dist.vocab_parallel_cross_entropy(x, tenon.tensor(target), reduction=reduction)
        assert loss.dtype == x.dtype and loss.layout == "strided"
        loss.sum().backward()
        assert size == 1 or x.grad.placements == (Shard(1),)
        return loss.detach().to(tenon.float64).numpy(), x.grad.full_tensor().to(
            tenon.float64
        ).numpy()

    rtol = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2e-2}[dtype]
    for loss, grad in in_ranks(size, work):
        np.testing.assert_allclose(loss, want.detach().to(tenon.float64).numpy(), rtol=rtol)
        np.testing.assert_allclose(
            grad, whole.grad.to(tenon.float64).numpy(), rtol=rtol, atol=rtol * 0.1
        )


def test_scores_that_are_not_finite():
    scores = np.array([[np.inf, 0, 1, 2], [np.nan, 0, 1, 2], [-np.inf, 0, 1, 2]], dtype="f4")
    target = [1, 1, 1]
    want = nn.functional.cross_entropy(
        tenon.tensor(scores), tenon.tensor(target), reduction="none"
    ).numpy()

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = dist.distribute_tensor(tenon.tensor(scores), mesh, [Shard(1)])
        return dist.vocab_parallel_cross_entropy(x, tenon.tensor(target), reduction="none").numpy()

    for got in in_ranks(2, work):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_many_rows_of_sixteen_bits(dtype, reduction):
    rows = 4099 if reduction == "mean" else 1031
    scores = tenon.zeros([rows, 4])
    scores[:, 0] = 20.0
    target = tenon.full([rows], 3, dtype=tenon.int64)
    want = nn.functional.cross_entropy(scores, target, reduction=reduction).to(dtype)

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = dist.distribute_tensor(scores.to(dtype), mesh, [Shard(1)]).requires_grad_()
        loss = dist.vocab_parallel_cross_entropy(x, target, reduction=reduction)
        loss.backward()
        return loss.detach(), x.grad.full_tensor().to("float32").numpy()

    for loss, grad in in_ranks(2, work):
        assert loss.dtype == want.dtype and loss.item() == want.item()
        share = 1.0 / rows if reduction == "mean" else 1.0
        # Gradients are rounded to the half precision of the scores.
        np.testing.assert_allclose(grad[:, 0], share, rtol=1e-2)
