# SPDX-License-Identifier: Apache-2.0
"""paddle.geometric and the names of graphs in paddle.incubate: against definitions, and beside Paddle where it is installed."""

import numpy as np
import pytest
import tenon
from tenon.compat import paddle as P

ROW, COLPTR = [3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7], [0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]
NODES, EIDS = [0, 8, 1, 2], list(range(100, 113))
X = np.array([[0, 2, 3], [1, 4, 5], [2, 6, 7]], np.float32)
Y = np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 4, 4]], np.float32)
SRC, DST = [0, 1, 2, 0], [1, 2, 1, 0]


def answers(paddle, tensor):
    """What both libraries give, by name."""
    g, i = paddle.geometric, paddle.incubate
    ints = lambda values: tensor(np.array(values, np.int64))
    x, y, src, dst = tensor(X), tensor(Y), ints(SRC), ints(DST)
    row, colptr, nodes, eids = map(ints, (ROW, COLPTR, NODES, EIDS))
    for reduce in ("sum", "mean", "max", "min"):
        yield f"send_u_recv {reduce}", g.send_u_recv(x, src, dst, reduce)
        yield f"send_ue_recv {reduce}", g.send_ue_recv(x, y, src, dst, "mul", reduce, 4)
        segment = getattr(g, f"segment_{reduce}")
        yield f"segment_{reduce}", segment(y, ints([0, 0, 1, 3]))
    yield "send_u_recv size", g.send_u_recv(x, src, dst, out_size=5)
    for message in ("add", "sub", "mul", "div"):
        yield f"send_uv {message}", g.send_uv(x + 1.0, x + 1.0, src, dst, message)
    if (
        paddle is P
    ):  # Paddle 3.3.1 ends the process in its sampler, also with the example of its page
        found = g.sample_neighbors(row, colptr, nodes, -1, eids, True)
        yield from zip(("neighbors", "counts", "eids"), found)
        weights = tensor(np.arange(1, 14, dtype=np.float32))
        found = g.weighted_sample_neighbors(row, colptr, weights, nodes, 1)
        yield "counts of weighted ones", found[1]
        found = i.graph_sample_neighbors(row, colptr, nodes)
        yield from zip(("neighbors of old", "counts of old"), found)
    neighbors, counts = ints([8, 9, 0, 4, 7, 6, 7]), paddle.to_tensor([2, 3, 2], "int32")
    some = ints([0, 5, 8])
    yield from zip(("source", "target", "nodes"), g.reindex_graph(some, neighbors, counts))
    others, more = ints([0, 2, 3, 5, 1]), paddle.to_tensor([1, 3, 1], "int32")
    of_types = g.reindex_heter_graph(some, [neighbors, others], [counts, more])
    yield from zip(("source of types", "target of types", "nodes of types"), of_types)
    yield from zip(("source", "target", "nodes"), i.graph_reindex(some, neighbors, counts))
    yield "send_recv", i.graph_send_recv(x, src, dst)


def array(x):
    return np.asarray(x.numpy())


def test_against_definitions():
    found = dict(answers(P, tenon.tensor))
    sums = np.zeros_like(X)
    np.add.at(sums, DST, X[SRC])
    np.testing.assert_allclose(array(found["send_u_recv sum"]), sums)
    np.testing.assert_allclose(array(found["send_uv sub"]), X[SRC] - X[DST])
    assert found["send_u_recv size"].shape == (5, 3) and found["send_ue_recv max"].shape == (4, 3)
    want = [ROW[edge] for node in NODES for edge in range(COLPTR[node], COLPTR[node + 1])]
    for which in ("", " of old"):
        assert found[f"neighbors{which}"].tolist() == want
        assert found[f"counts{which}"].tolist() == [2, 2, 2, 1]
    assert found["counts of weighted ones"].tolist() == [1, 1, 1, 1]
    assert [ROW[number - 100] for number in found["eids"].tolist()] == want
    assert found["nodes of types"].tolist()[:3] == [0, 5, 8]
    assert found["target of types"].tolist() == [0, 0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2]
    old = np.array(found["nodes of types"].tolist())
    assert old[found["source of types"].tolist()].tolist() == [8, 9, 0, 4, 7, 6, 7, 0, 2, 3, 5, 1]
    ints = lambda values: tenon.tensor(values, dtype=tenon.int64)
    args = ints(ROW), ints(COLPTR), ints([0, 8]), [-1, -1]
    source, target, nodes, numbers, edges = P.incubate.graph_khop_sampler(*args, ints(EIDS), True)
    assert numbers.tolist() == [0, 1] and nodes.tolist()[:2] == [0, 8]
    whole = [
        (ROW[edge - 100], np.searchsorted(COLPTR, edge - 100, "right") - 1)
        for edge in edges.tolist()
    ]
    old = nodes.tolist()
    assert [(old[s], old[t]) for s, t in zip(source.tolist(), target.tolist())] == whole


def test_refusals():
    row, colptr, nodes = map(tenon.tensor, (ROW, COLPTR, NODES))
    for call in (
        lambda: P.geometric.sample_neighbors(row, colptr, nodes, return_eids=True),
        lambda: P.incubate.graph_sample_neighbors(row, colptr, nodes, return_eids=True),
        lambda: P.incubate.graph_khop_sampler(row, colptr, nodes, [1], return_eids=True),
    ):
        with pytest.raises(ValueError, match="eids, the numbers of edges, for return_eids=True"):
            call()
    with pytest.raises(ValueError, match="of each type of edges, got 1 and 2"):
        P.geometric.reindex_heter_graph(nodes, [row], [nodes, nodes])
    with pytest.raises(AttributeError, match="does not cover paddle.geometric.walks"):
        P.geometric.walks
    with pytest.raises(TypeError, match="generator"):
        P.geometric.sample_neighbors(row, colptr, nodes, generator=tenon.random.Generator())


def test_beside_the_library():
    pytest.importorskip("paddle.geometric")
    import paddle

    paddle.set_device("cpu")
    ours = dict(answers(P, tenon.tensor))
    for name, want in answers(paddle, paddle.to_tensor):
        np.testing.assert_allclose(array(ours[name]), array(want), rtol=1e-6, err_msg=name)
    assert sorted(paddle.geometric.__all__) == P.geometric.__all__
