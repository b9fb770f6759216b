# SPDX-License-Identifier: Apache-2.0
"""Random walks, edges that are not there, and generators of samplers."""

import numpy as np
import pytest
import tenon
from tenon import geometric as G
from tenon import sparse

RNG = np.random.default_rng(3)
N = 40
EDGES = np.unique(RNG.integers(0, N, (2, 150)), axis=1)
EDGES = EDGES[:, EDGES[0] != 17]  # no edge leaves node 17
THERE = {tuple(edge) for edge in EDGES.T.tolist()}


def graph():
    order = np.lexsort((EDGES[0], EDGES[1]))  # rows of the matrix are targets
    starts = np.searchsorted(EDGES[1][order], np.arange(N + 1))
    return sparse.csr(starts, EDGES[0][order], np.ones(len(order), np.float32), (N, N))


@pytest.mark.parametrize(
    "edges",
    [EDGES, EDGES.tolist(), tenon.tensor(EDGES), graph()],
    ids=["array", "list", "tensor", "csr"],
)
def test_walks_follow_edges(edges):
    walk = G.random_walk(edges, [0, 5, 17, 5], 6, N).tolist()
    assert len(walk) == 4 and [row[0] for row in walk] == [0, 5, 17, 5]
    assert walk[2] == [17] * 7
    for row in walk:
        for a, b in zip(row, row[1:]):
            assert (a, b) in THERE or (a == b and not any(s == a for s, _ in THERE))


def test_walks_take_all_edges_alike():
    walk = G.random_walk([[0, 0, 0, 0], [1, 2, 3, 4]], [0] * 4000, 1).numpy()
    counts = np.bincount(walk[:, 1], minlength=5)
    assert counts[0] == 0 and (abs(counts[1:] - 1000) < 150).all()


def test_walks_at_the_ends():
    assert G.random_walk(np.zeros((2, 0), np.int64), [0, 1], 3, 2).tolist() == [[0] * 4, [1] * 4]
    assert G.random_walk(EDGES, [], 2).shape == (0, 3)
    assert G.random_walk(EDGES, [3], 0).tolist() == [[3]]
    with pytest.raises(IndexError, match=f"nodes from 0 to {N - 1} to start at, got \\[{N}\\]"):
        G.random_walk(EDGES, [N], 2, N)
    with pytest.raises(ValueError, match="a walk_length of at least 0, got -1"):
        G.random_walk(EDGES, [0], -1)
    with pytest.raises(ValueError, match="random_walk: expected edges \\[2, count\\]"):
        G.random_walk([0, 1], [0], 1)


@pytest.mark.parametrize("count", [0, 7, 500, None, 10**6])
def test_negative_edges_are_others(count):
    found = G.negative_sampling(graph(), N, count)
    pairs = {tuple(pair) for pair in found.numpy().T.tolist()}
    free = N * N - len(THERE | {(i, i) for i in range(N)})
    wanted = len(EDGES[0]) if count is None else min(count, free)
    assert found.shape == (2, wanted) and len(pairs) == wanted
    assert not pairs & THERE and all(a != b for a, b in pairs)


def test_negative_edges_are_drawn_alike():
    edges = [[0, 1], [1, 2]]  # of three nodes: four others
    counts = {}
    for _ in range(1200):
        for pair in G.negative_sampling(edges, 3, 1).numpy().T.tolist():
            counts[tuple(pair)] = counts.get(tuple(pair), 0) + 1
    assert sorted(counts) == [(0, 2), (1, 0), (2, 0), (2, 1)]
    assert all(220 < each < 380 for each in counts.values()), counts
    with pytest.raises(ValueError, match="num_neg_samples of at least 0, got -2"):
        G.negative_sampling(edges, 3, -2)


DRAWS = {
    "random_walk": lambda g: G.random_walk(EDGES, range(20), 5, N, generator=g),
    "negative_sampling": lambda g: G.negative_sampling(EDGES, N, 30, generator=g),
    "NeighborSampler": lambda g: G.NeighborSampler(graph(), [1, 1]).sample([3, 9], g).edges,
    "batches": lambda g: tenon.concat(
        [
            part.edges
            for part in G.NeighborSampler(graph(), [1]).batches(range(N), 8, True, generator=g)
        ]
    ),
    "LayerSampler": lambda g: G.LayerSampler(graph(), [5]).sample([3, 9, 11], g)[0].nodes,
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_take_the_numbers_of_a_generator(name):
    draw = DRAWS[name]
    tenon.manual_seed(1)
    before = tenon.random.get_state()
    generator = tenon.random.Generator(seed=8)
    first, second = draw(generator).tolist(), draw(generator).tolist()
    assert tenon.random.get_state() == before  # the device's stream is where it was
    assert draw(generator.manual_seed(8)).tolist() == first != second
    with tenon.random.Generator(seed=8):
        assert draw(None).tolist() == first
    with pytest.raises(TypeError, match="expected a tenon.random.Generator as generator, got int"):
        draw(3)
