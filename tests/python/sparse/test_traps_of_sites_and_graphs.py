# SPDX-License-Identifier: Apache-2.0
"""Faults that sites, ragged tensors, graphs and texts of other libraries once had, by name: README.md says where they
were reported."""

import numpy as np
import pytest
import tenon
from tenon import geometric, sparse
from tenon.nn import functional as F
from tenon.sparse import nn as snn
from tenon.text import StringTensor
from twice import check_gradients_twice

T = tenon.tensor


# -- sites


def test_other_kernel_same_pairs():
    """A layer does not find the pairs of one with another kernel, or dilation, at the same sites."""
    rng = np.random.default_rng(3)
    indices = np.stack(np.unravel_index(rng.permutation(64)[:20], (1, 8, 8)))
    x = sparse.coo(indices, rng.normal(size=(20, 2)).astype(np.float32), (1, 8, 8, 2))
    dense = tenon.permute(x.to_dense(), [0, 3, 1, 2])
    for kernel, dilation in ((3, 1), ((1, 3), 1), ((3, 1), 1), (3, 2), (5, 1), (3, 1)):
        layer = snn.SubmConv2d(2, 3, kernel, dilation)
        pads = [(k - 1) // 2 * dilation for k in layer.kernel_size]
        whole = F.conv2d(dense, layer.weight, layer.bias, 1, pads, dilation)
        at = tuple(T(row) for row in indices)
        expected = tenon.permute(whole, [0, 2, 3, 1])[at].detach().numpy()
        got = layer(x).detach().to_dense()[at].numpy()
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_no_sites():
    none = sparse.coo(np.zeros((4, 0), np.int64), np.zeros((0, 2), np.float32), (1, 4, 4, 4, 2))
    for layer in (
        snn.SubmConv3d(2, 3, 3),
        snn.Conv3d(2, 3, 3),
        snn.MaxPool3d(2),
        snn.LayerNorm(2),
        snn.BatchNorm(2).eval(),
    ):
        result = layer(none)
        assert result.nnz == 0 and result.layout == "coo"
        assert not result.to_dense().any().item()


# -- ragged


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_empty_bag(mode):
    weight = T([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    ids = tenon.ragged([[], [1, 0], [], []], dtype=tenon.int64)
    out = F.embedding_bag(ids, weight, mode=mode)
    for bag in (0, 2, 3):
        assert out[bag].tolist() == [0.0, 0.0]
    out.sum().backward()
    assert tenon.isfinite(weight.grad).all().item()
    none = F.embedding_bag(tenon.ragged([[], []], dtype=tenon.int64), weight, mode=mode)
    assert none.tolist() == [[0.0, 0.0]] * 2


def test_falling_offsets():
    weight = tenon.ones([3, 2])
    for offsets in ([0, 2, 1], [0, 5, 3], [1, 1, 3], [0, -1, 3]):
        with pytest.raises((ValueError, IndexError)) as error:
            F.embedding_bag(T([0, 1, 2]), weight, T(offsets))
        assert str(error.value)
    with pytest.raises(ValueError, match="ascend"):
        sparse.ragged_from_offsets([0, 2, 1, 3], T([1.0, 2.0, 3.0]))


def test_longest_is_not_total():
    """Three rows whose longest has 2 elements, 4 in all."""
    r = tenon.ragged([[1.0, 2.0], [3.0], [4.0]])
    assert tuple(r.shape) == (3, 2) and r.values().shape == (4,)
    assert r.to_dense().tolist() == [[1.0, 2.0], [3.0, 0.0], [4.0, 0.0]]
    r = tenon.ragged([[1.0, 2.0, 3.0, 4.0], []])
    assert tuple(r.shape) == (2, 4) and r.to_dense().shape == (2, 4)
    assert tuple(tenon.ragged([[], []]).shape) == (2, 0)


def test_pad_and_back():
    offsets = T([0, 2, 2, 5])
    values = T(np.arange(10.0).reshape(5, 2), requires_grad=True)

    def there_and_back(v):
        r = sparse.ragged_from_offsets(offsets, v)
        back = sparse.ragged_from_dense(r.to_dense(7.0), sparse.lengths(r))
        assert back.offsets().tolist() == offsets.tolist()
        return back.values() ** 2

    assert there_and_back(values).tolist() == (values**2).tolist()
    check_gradients_twice(there_and_back, (values,))


# -- graphs

EDGES = T([[1, 2, 3, 0, 2], [0, 0, 0, 1, 1]])  # from the first row's nodes to the second's


def test_seeds_repeat():
    with pytest.raises(ValueError, match="different nodes, got 0 again at position 2"):
        geometric.NeighborSampler(EDGES, 4, [2]).sample(T([0, 1, 0]))


def test_same_seed_same_sample():
    sampler = geometric.NeighborSampler(EDGES, 4, [2, 1])

    def drawn(seed):
        tenon.manual_seed(seed)
        part = sampler.sample(T([0]))
        return part.nodes.tolist(), part.edges.tolist()

    assert drawn(5) == drawn(5)
    assert len({str(drawn(seed)) for seed in range(20)}) > 1
    tenon.manual_seed(5)
    first = [sampler.sample(T([0])).edges.tolist() for _ in range(20)]
    assert any(one != first[0] for one in first)  # the stream goes on between calls


def test_nodes_equal_edges():
    """Graphs with as many nodes as edges: neither is taken for the other."""
    x = T(np.arange(10.0, dtype=np.float32).reshape(5, 2))
    ring = T([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    features, edges, batch = geometric.batch_graphs([(x, ring), (x, ring)])
    assert (
        features.shape == (10, 2) and edges.shape == (2, 10) and batch.tolist() == [0] * 5 + [1] * 5
    )
    assert edges[:, 5:].tolist() == (ring + 5).tolist()
    part = geometric.NeighborSampler(ring, 5, [-1]).sample(T([0, 1]))
    assert part.nodes.tolist() == [0, 1, 4] and sorted(part.edges.tolist()) == [0, 4]


def test_zero_weight():
    """An edge that weighs nothing is never drawn, not even where there are too few others."""
    start, row = T([0, 3]), T([0, 0, 0])
    for weights, possible in (([0.0, 1.0, 1.0], [1, 2]), ([0.0, 0.0, 0.0], [])):
        for size in (1, 2, 3):
            taken = tenon.sample_subgraph(row, start, T([0]), [size], T(weights))[3].tolist()
            assert set(taken) <= set(possible) and len(taken) == min(size, len(possible))


def test_no_neighbours():
    alone = geometric.NeighborSampler(EDGES, 4, [2, 2]).sample(T([3]))
    assert alone.nodes.tolist() == [3] and alone.edge_index.shape == (2, 0)
    mixed = geometric.NeighborSampler(EDGES, 4, [-1]).sample(T([3, 1]))
    assert mixed.nodes.tolist() == [3, 1, 0, 2]
    none = tenon.zeros([2, 0], dtype=tenon.int64)
    for layer in (
        geometric.GCNConv(2, 3),
        geometric.SAGEConv(2, 3, "max"),
        geometric.GATConv(2, 3),
    ):
        assert tenon.isfinite(layer(tenon.ones([4, 2]), none)).all().item()


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_empty_segment(reduce):
    x = T([[-1.0], [-2.0], [-3.0]], requires_grad=True)
    out = getattr(geometric, f"segment_{reduce}")(x, T([0, 0, 3]), 4)
    assert out[1].tolist() == [0.0] and out[2].tolist() == [0.0] and out[3].tolist() == [-3.0]
    out.sum().backward()
    assert x.grad[2].item() == 1.0 and x.grad.sum().item() == (3.0 if reduce == "sum" else 2.0)


# -- texts


def test_lower_grows():
    """Three bytes for the two of a letter, and two letters for one."""
    words = ["İ", "Aİ", "x", "ẞẞ", "ß"]
    assert StringTensor(words).lower().tolist() == [each.lower() for each in words]
    assert StringTensor(words).upper().tolist() == [each.upper() for each in words]


def test_not_ascii():
    words = ["ÀÉ", "ΣΑΣ", "日本", "\U00010400", ""]
    assert StringTensor(words).lower().tolist() == [each.lower() for each in words]
    assert StringTensor(["ÀB"]).lower(ascii_only=True).tolist() == ["Àb"]
