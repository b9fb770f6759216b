# SPDX-License-Identifier: Apache-2.0
"""Layers on graphs of layout csr against the same edges, and samples of subgraphs against the graph."""

import numpy as np
import pytest
import tenon
from tenon import geometric as G
from tenon import nn, sparse

RNG = np.random.default_rng(7)
N, COUNT = 30, 120
EDGES = np.unique(RNG.integers(0, N, (2, COUNT)), axis=1)  # by source and target, with loops
ORDER = np.lexsort((EDGES[0], EDGES[1]))  # by target, as rows of a matrix
EDGES = EDGES[:, ORDER]
WEIGHTS = np.asarray(RNG.uniform(0.5, 2.0, EDGES.shape[1]), np.float32)
X = RNG.normal(size=(N, 6)).astype(np.float32)
T = tenon.tensor


def graph(values=None):
    starts = np.searchsorted(EDGES[1], np.arange(N + 1))
    values = np.ones(EDGES.shape[1], np.float32) if values is None else values
    return sparse.csr(T(starts), T(EDGES[0].copy()), T(values), (N, N))


@pytest.mark.parametrize(
    "layer",
    [
        G.GCNConv(6, 4),
        G.GCNConv(6, 4, add_self_loops=False),
        G.GCNConv(6, 4, normalize=False, bias=False),
        G.SAGEConv(6, 4),
        G.SAGEConv(6, 4, "sum"),
        G.SAGEConv(6, 4, "max", normalize=True),
        G.GATConv(6, 4, heads=2),
        G.GINConv(nn.Linear(6, 4)),
    ],
    ids=lambda layer: f"{type(layer).__name__}-{getattr(layer, 'aggr', '')}",
)
def test_a_matrix_is_its_edges(layer):
    def answer(edges):
        layer.zero_grad()
        x = T(X, requires_grad=True)
        y = layer(x, edges)
        (y * y).sum().backward()
        return [y.detach(), x.grad, *(p.grad for p in layer.parameters())]

    for ours, other in zip(answer(graph()), answer(T(EDGES)), strict=True):
        np.testing.assert_allclose(ours.numpy(), other.numpy(), rtol=2e-4, atol=2e-5)


def test_weights_are_the_matrix():
    layer = G.GCNConv(6, 4)
    want = layer(T(X), T(EDGES), T(WEIGHTS)).detach().numpy()
    np.testing.assert_allclose(
        layer(T(X), graph(WEIGHTS)).detach().numpy(), want, rtol=1e-4, atol=1e-5
    )
    with pytest.raises(ValueError, match="expected no edge_weight beside a graph of layout 'csr'"):
        layer(T(X), graph(), T(WEIGHTS))


def check_sample(part, seeds, sizes):
    nodes, edges = part.nodes.numpy(), part.edge_index.numpy()
    assert nodes[: len(seeds)].tolist() == seeds and len(set(nodes)) == len(nodes)
    whole = EDGES[:, part.edges.numpy()]
    np.testing.assert_array_equal(nodes[edges], whole)  # edges of the graph, numbered anew
    assert len(set(part.edges.tolist())) == edges.shape[1]  # each once
    degree = np.bincount(EDGES[1], minlength=N)
    frontier, known = set(seeds), set(seeds)
    for size in sizes:
        reached = set()
        for node in frontier:
            of_node = whole[0][whole[1] == node]
            wanted = degree[node] if size < 0 else min(size, degree[node])
            assert len(of_node) == wanted
            reached |= set(of_node.tolist())
        frontier = reached - known
        known |= frontier
    assert known == set(nodes.tolist())


@pytest.mark.parametrize("sizes", [[-1], [2], [3, 2], [1, -1, 2], [0], []], ids=str)
def test_samples(sizes):
    seeds = [7, 3, 29]
    for sampler in (G.NeighborSampler(graph(), sizes), G.NeighborSampler(T(EDGES), N, sizes)):
        tenon.manual_seed(4)
        first = sampler.sample(T(seeds))
        check_sample(first, seeds, sizes)
        tenon.manual_seed(4)
        again = sampler.sample(T(seeds))
        assert again.edges.tolist() == first.edges.tolist()
    shuffled = RNG.permutation(EDGES.shape[1])
    part = G.NeighborSampler(T(EDGES[:, shuffled]), N, sizes).sample(T(seeds))
    whole = EDGES[:, shuffled][:, part.edges.numpy()]
    np.testing.assert_array_equal(part.nodes.numpy()[part.edge_index.numpy()], whole)


def test_every_neighbour_is_drawn_as_often():
    starts, row = T([0, 0, 5]), T([0, 0, 0, 0, 0])  # five edges to node 1
    tenon.manual_seed(1)
    for size, each in (2, 0.4), (1, 0.2), (4, 0.8):
        counts = np.zeros(5)
        for _ in range(2000):
            counts[tenon.sample_subgraph(row, starts, T([1]), [size])[3].numpy()] += 1
        np.testing.assert_allclose(counts / 2000, each, atol=0.05)


def test_many_neighbours():
    count = 1000
    starts, row = T([0, count]), tenon.zeros([count], dtype=tenon.int64)
    for size in (64, 65, 999):
        edges = tenon.sample_subgraph(row, starts, T([0]), [size])[3].tolist()
        assert len(set(edges)) == size and set(edges) < set(range(count))


def test_draws_follow_weights():
    weights = np.array([1.0, 2.0, 0.0, 3.0], np.float32)
    starts, row = T([0, 0, 4]), T([0, 0, 0, 0])
    tenon.manual_seed(1)
    counts = np.zeros(4)
    for _ in range(3000):
        counts[tenon.sample_subgraph(row, starts, T([1]), [1], T(weights))[3].numpy()] += 1
    np.testing.assert_allclose(counts / 3000, weights / 6, atol=0.04)
    taken = tenon.sample_subgraph(row, starts, T([1]), [4], T(weights))[3].tolist()
    assert sorted(taken) == [0, 1, 3]  # what weighs nothing is never drawn


def test_faults_are_named():
    row, starts = T([1, 0, 1]), T([0, 2, 3])
    sample = tenon.sample_subgraph
    with pytest.raises(IndexError, match="neighbours from 0 to 1, got 5 at position 0"):
        sample(T([5, 0, 1]), starts, T([0]), [2])
    with pytest.raises(ValueError, match="`start` to ascend from 0 to the 3 edges, got 2 and 9 at"):
        sample(row, T([0, 2, 9]), T([1]), [2])
    with pytest.raises(ValueError, match="different nodes, got 1 again at position 1"):
        sample(row, starts, T([1, 1]), [2])
    with pytest.raises(IndexError, match="2"):
        sample(row, starts, T([2]), [1])
    with pytest.raises(ValueError, match="sizes of at least 0, or -1 for all neighbours, got -2"):
        sample(row, starts, T([1]), [-2])
    with pytest.raises(ValueError, match="a weight for each of 3 edges, got shape \\(2,\\)"):
        sample(row, starts, T([1]), [1], tenon.ones([2]))
    with pytest.raises(ValueError, match="finite weights of at least 0, got -1 at position 2"):
        sample(row, starts, T([1]), [1], T([1.0, 1.0, -1.0]))
    with pytest.raises(TypeError, match="a graph of layout 'csr' and sizes"):
        G.NeighborSampler(T(EDGES), [2, 2])


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 2.0, 1.0, 1.0]], ids=str)
def test_other_devices_draw_by_other_operators(weights, request):
    from devices import DEVICES

    starts, row = [0, 3, 4, 5], [1, 2, 0, 0, 1]
    for device in DEVICES:
        given = [T(each).to(device) for each in (row, starts, [0])]
        weight = None if weights is None else T(weights).to(device)
        source, target, nodes, edges = tenon.sample_subgraph(*given, [-1, 2], weight)
        kept = [0, 1, 2, 3, 4] if weights is None else [0, 2, 3]
        assert sorted(edges.tolist()) == (kept if weights is None else sorted(edges.tolist()))
        found, ends = nodes.tolist(), np.array(row)[edges.tolist()]
        assert [found[i] for i in source.tolist()] == ends.tolist()
        assert weights is None or 1 not in edges.tolist()
        assert target.device == given[0].device


def test_layers_have_no_more_nodes_than_they_may():
    tenon.manual_seed(3)
    whole = {tuple(edge) for edge in EDGES.T.tolist()}
    nodes = [4, 9, 17]
    for sampler in (G.LayerSampler(graph(), [5, 3]), G.LayerSampler(T(EDGES), N, [5, 3])):
        before = T(nodes)
        for size, layer in zip((5, 3), sampler.sample(T(nodes)), strict=True):
            assert layer.nodes.shape[0] <= size
            assert len(set(layer.nodes.tolist())) == layer.nodes.shape[0]
            source, target = layer.edge_index.tolist()
            far, near = layer.nodes.tolist(), before.tolist()
            assert all((far[s], near[t]) in whole for s, t in zip(source, target, strict=True))
            sums = np.zeros(len(near))
            np.add.at(sums, target, layer.weight.numpy())
            np.testing.assert_allclose(sums[np.unique(target)], 1.0, rtol=1e-5)
            before = layer.nodes
    with pytest.raises(ValueError, match="expected sizes of at least 1, got \\[0\\]"):
        G.LayerSampler(graph(), [0])
    with pytest.raises(TypeError, match="LayerSampler: expected a list of sizes, .* got 5"):
        G.LayerSampler(graph(), 5)


@pytest.mark.parametrize("edges", [graph(), T(EDGES)], ids=["csr", "edges"])
def test_a_layer_of_attention_has_its_own_update(edges):
    class Doubled(G.GATConv):
        def update(self, aggregated):
            return 2 * aggregated

    plain, doubled = G.GATConv(6, 4, heads=2, bias=False), Doubled(6, 4, heads=2, bias=False)
    doubled.load_state_dict(plain.state_dict())
    wanted = 2 * plain(T(X), edges).detach().numpy()
    np.testing.assert_allclose(doubled(T(X), edges).detach().numpy(), wanted, rtol=1e-5)
