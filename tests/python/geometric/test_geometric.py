# SPDX-License-Identifier: Apache-2.0
"""tenon.geometric against sums over dense matrices."""

import math

import numpy as np
import pytest
import tenon
from tenon import geometric as G
from tenon import nn

RNG = np.random.default_rng(0)
# A graph of 5 nodes; node 4 has no neighbours, and one edge is there twice.
EDGES = np.array([[0, 1, 2, 2, 3, 0, 0], [1, 0, 1, 3, 2, 3, 3]])
N = 5
ADJACENCY = np.zeros((N, N))  # row: target, column: source
for source, target in EDGES.T:
    ADJACENCY[target, source] += 1
X = RNG.normal(size=(N, 4)).astype(np.float32)
T = tenon.tensor


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 3)])
def test_segments(shape):
    x, index = RNG.normal(size=shape), np.array([2, 0, 2, 4, 0, 2, 4])
    for name, reduce in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        got = G.aggregate(T(x), T(index), 5, name).numpy()
        want = np.stack(
            [
                reduce(x[index == i], 0) if (index == i).any() else np.zeros(shape[1:])
                for i in range(5)
            ]
        )
        np.testing.assert_allclose(got, want)
    share = G.segment_softmax(T(x * 100), T(index), 5).numpy()
    for i in (0, 2, 4):
        np.testing.assert_allclose(share[index == i].sum(0), 1.0)
    with pytest.raises(ValueError, match="expected a reduction of sum, add, mean, max, got 'min'"):
        G.aggregate(T(x), T(index), 5, "min")


def test_gradients_of_segments():
    x, index = T(RNG.normal(size=(7, 2))), T([2, 0, 2, 4, 0, 2, 4])
    x.requires_grad = True
    for function in (G.segment_sum, G.segment_mean, G.segment_max, G.segment_softmax):
        assert tenon.autograd.gradcheck(lambda x, f=function: f(x, index, 5), (x,))
    assert G.segment_max(tenon.zeros([0, 2]), T([1])[:0], 3).shape == (3, 2)


def test_large_segments_of_maxima():
    x, index = RNG.normal(size=(5000, 2)), RNG.integers(0, 40, size=5000)
    want = np.full((40, 2), -np.inf)
    np.maximum.at(want, index, x)
    np.testing.assert_array_equal(G.segment_max(T(x), T(index), 40).numpy(), want)


def test_gcn():
    layer = G.GCNConv(4, 3)
    nn.init.normal_(layer.bias)
    full = ADJACENCY + np.eye(N)
    root = 1 / np.sqrt(full.sum(1))
    weight = layer.lin.weight.detach().numpy()
    want = root[:, None] * full * root @ X @ weight.T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(T(X), T(EDGES)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    plain = G.GCNConv(4, 3, normalize=False, bias=False)
    weights = RNG.uniform(size=EDGES.shape[1]).astype(np.float32)
    weighted = np.zeros((N, N))
    np.add.at(weighted, (EDGES[1], EDGES[0]), weights)
    got = plain(T(X), T(EDGES), T(weights)).detach().numpy()
    np.testing.assert_allclose(
        got, weighted @ X @ plain.lin.weight.detach().numpy().T, rtol=1e-4, atol=1e-6
    )
    cached = G.GCNConv(4, 3, cached=True)
    first = cached(T(X), T(EDGES)).tolist()
    assert cached(T(X), T(EDGES[:, :0])).tolist() == first


@pytest.mark.parametrize("aggr", ["mean", "sum", "max"])
def test_sage(aggr):
    layer = G.SAGEConv(4, 3, aggr)
    neighbours = np.zeros_like(X)
    for i in range(N):
        rows = X[EDGES[0, EDGES[1] == i]]
        if len(rows):
            neighbours[i] = getattr(rows, aggr)(0)
    left, right = layer.lin_l, layer.lin_r
    want = neighbours @ left.weight.detach().numpy().T + left.bias.detach().numpy()
    want = want + X @ right.weight.detach().numpy().T
    np.testing.assert_allclose(layer(T(X), T(EDGES)).detach().numpy(), want, rtol=1e-4, atol=1e-6)
    assert set(layer.state_dict()) == {"lin_l.weight", "lin_l.bias", "lin_r.weight"}
    unit = G.SAGEConv(4, 3, normalize=True)(T(X), T(EDGES)).detach().numpy()
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-5)


def test_sage_between_two_kinds_of_nodes():
    layer = G.SAGEConv((4, 2), 3)
    edges = T([[0, 4, 3], [1, 0, 1]])
    assert layer((T(X), tenon.ones([2, 2])), edges).shape == (2, 3)


@pytest.mark.parametrize("concat", [True, False])
def test_gat(concat):
    layer = G.GATConv(4, 3, heads=2, concat=concat)
    features = (X @ layer.lin.weight.detach().numpy().T).reshape(N, 2, 3)
    to = (features * layer.att_dst.detach().numpy()).sum(-1)
    of = (features * layer.att_src.detach().numpy()).sum(-1)
    full = ADJACENCY + np.eye(N)
    score = to[:, None] + of[None]
    score = np.where(score > 0, score, 0.2 * score)
    power = full[..., None] * np.exp(score)
    want = np.einsum("ijh,jhc->ihc", power / power.sum(1, keepdims=True), features)
    want = want.reshape(N, 6) if concat else want.mean(1)
    np.testing.assert_allclose(layer(T(X), T(EDGES)).detach().numpy(), want, rtol=1e-4, atol=1e-6)
    assert set(layer.state_dict()) == {"lin.weight", "att_src", "att_dst", "bias"}


@pytest.mark.parametrize("train_eps", [True, False])
def test_gin(train_eps):
    layer = G.GINConv(nn.Linear(4, 3), 0.5, train_eps)
    want = layer.nn(T((1.5 * X + ADJACENCY @ X).astype(np.float32)))
    np.testing.assert_allclose(
        layer(T(X), T(EDGES)).detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert ("eps" in dict(layer.named_parameters())) == train_eps


def test_messages_of_ones_own():
    class Difference(G.MessagePassing):
        def __init__(self, flow="source_to_target"):
            super().__init__("max", flow)

        def forward(self, x, edge_index):
            return self.propagate(edge_index, x=x, scale=2.0)

        def message(self, x_i, x_j, scale):
            return (x_j - x_i) * scale

        def update(self, aggregated):
            return aggregated + 1

    for flow, (j, i) in (("source_to_target", EDGES), ("target_to_source", EDGES[::-1])):
        got = Difference(flow)(T(X), T(EDGES)).numpy()
        want = np.ones_like(X)
        for node in range(N):
            rows = 2 * (X[j[i == node]] - X[node])
            want[node] += rows.max(0) if len(rows) else 0
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        ValueError, match=r"Difference: expected edges \[2, count\] of a whole dtype"
    ):
        Difference()(T(X), T(EDGES).to(tenon.float32))
    with pytest.raises(ValueError, match="expected flow 'source_to_target' or"):
        Difference("up")


def test_edges():
    edges = T(EDGES)
    assert G.degree(edges[0], N).tolist() == [3, 1, 2, 1, 0]
    looped, weights = G.add_self_loops(edges, tenon.ones([7]), 2.0, N)
    assert looped.shape == (2, 12) and weights.tolist() == [1.0] * 7 + [2.0] * 5
    bare, weights = G.remove_self_loops(looped, weights)
    assert bare.tolist() == EDGES.tolist() and weights.tolist() == [1.0] * 7
    once = G.coalesce(edges).tolist()
    assert list(zip(*once)) == sorted(set(zip(*EDGES.tolist())))
    both = set(zip(*G.to_undirected(edges).tolist()))
    assert both == {(a, b) for s, t in EDGES.T.tolist() for a, b in ((s, t), (t, s))}


def test_batches_of_graphs():
    x, edges, batch = G.batch_graphs([(T(X), T(EDGES)), (T(X[:2]), T([[0], [1]]))])
    assert x.shape == (7, 4) and batch.tolist() == [0] * 5 + [1] * 2
    assert edges[:, -1].tolist() == [5, 6]
    np.testing.assert_allclose(G.global_add_pool(x, batch).numpy()[0], X.sum(0), rtol=1e-5)
    np.testing.assert_allclose(G.global_mean_pool(x, batch).numpy()[1], X[:2].mean(0), rtol=1e-5)
    assert G.global_max_pool(x, batch, 3).numpy()[2].tolist() == [0, 0, 0, 0]


def test_samples_of_neighbours():
    tenon.manual_seed(0)
    edges = RNG.integers(0, 40, size=(2, 600))
    into = [sorted(edges[0, edges[1] == node].tolist()) for node in range(40)]
    sampler = G.NeighborSampler(T(edges), 40, [5, 3])
    part = sampler.sample(T([7, 3]))
    nodes = part.nodes.tolist()
    assert nodes[:2] == [7, 3] and len(set(nodes)) == len(nodes) and part.batch_size == 2
    source, target = ([nodes[i] for i in row] for row in part.edge_index.tolist())
    assert target.count(7) == 5 and target.count(3) == 5
    for node in set(target):
        chosen = [s for s, t in zip(source, target) if t == node]
        rest = list(into[node])
        for each in chosen:  # no edge more than once
            rest.remove(each)
        assert len(chosen) == min(len(into[node]), 5 if node in (7, 3) else 3)
    whole = G.NeighborSampler(T(edges), 40, [-1]).sample(T([7]))
    assert sorted(whole.nodes[whole.edge_index[0]].tolist()) == into[7]
    seen = [b.batch_size for b in sampler.batches(tenon.arange(40), 16, shuffle=True)]
    assert seen == [16, 16, 8]
    alone = G.NeighborSampler(T([[0], [1]]), 3, [2, 2]).sample(T([2]))
    assert alone.nodes.tolist() == [2] and alone.edge_index.shape == (2, 0)
    with pytest.raises(ValueError, match="expected sizes of at least 0, or -1 for all, got"):
        G.NeighborSampler(T(edges), 40, [-2])


def test_every_neighbour_is_equally_likely():
    tenon.manual_seed(0)
    edges = np.array([[1, 2, 3, 4], [0, 0, 0, 0]])
    sampler = G.NeighborSampler(T(edges), 5, [2])
    counts = np.zeros(5)
    for _ in range(400):
        for node in sampler.sample(T([0])).nodes.tolist()[1:]:
            counts[node] += 1
    assert (np.abs(counts[1:] - 200) < 4 * math.sqrt(100)).all()
