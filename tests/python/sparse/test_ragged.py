# SPDX-License-Identifier: Apache-2.0
"""Layout 'ragged': rows of different lengths, against the same rows one by one."""

import copy
import pickle

import numpy as np
import pytest
import tenon
from tenon import nn, sparse
from tenon.nn import functional as F
from twice import check_gradients_twice

T = tenon.tensor
RNG = np.random.default_rng(23)
LENGTHS = [3, 0, 5, 1]


def rows(*trailing, lengths=LENGTHS, dtype=np.float32):
    return [RNG.normal(size=(n, *trailing)).astype(dtype) for n in lengths]


def same(r, expected):
    assert r.layout == "ragged"
    for i, row in enumerate(expected):
        np.testing.assert_allclose(r[i].detach().numpy(), row, rtol=1e-5, atol=1e-6)


def test_creation_parts_and_dense():
    r = tenon.ragged([[1, 2, 3], [], [4]])
    assert r.layout == "ragged" and tuple(r.shape) == (3, 3) and r.dtype == tenon.int64
    assert r.offsets().tolist() == [0, 3, 3, 4] and r.values().tolist() == [1, 2, 3, 4]
    assert sparse.lengths(r).tolist() == [3, 0, 1]
    assert r.to_dense().tolist() == [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    assert r.to_dense(-1).tolist() == [[1, 2, 3], [-1, -1, -1], [4, -1, -1]]
    truths = tenon.ragged([[True, False], [True]])
    assert truths.to_dense(1).tolist() == [[True, False], [True, True]]
    with pytest.raises(TypeError, match="expected a `pad` that int64 holds, got 0.5"):
        r.to_dense(0.5)
    x = rows(2)
    back = sparse.ragged_from_dense(tenon.ragged(x).to_dense(7.0), T(LENGTHS))
    same(back, x)
    parts = sparse.ragged_from_offsets([0, 2, 3], T([1.0, 2.0, 3.0]))
    assert tuple(parts.shape) == (2, 2)
    assert tenon.ragged([[], []]).to_dense().shape == (2, 0)


def test_printing_pickling_saving_moving(tmp_path):
    r = tenon.ragged(rows(2))
    assert "offsets=tensor(" in repr(r) and "layout=ragged" in repr(r)
    for again in (pickle.loads(pickle.dumps(r)), copy.deepcopy(r), r.clone(), r.to("cpu")):
        assert again.layout == "ragged" and again.to_dense().tolist() == r.to_dense().tolist()
    tenon.save({"r": r}, tmp_path / "r.safetensors")
    assert tenon.load(tmp_path / "r.safetensors")["r"].to_dense().tolist() == r.to_dense().tolist()
    assert r.to(tenon.float64).dtype == tenon.float64


def test_elementwise_sees_what_is_there():
    x, y = rows(2), rows(2)
    r = tenon.ragged(x)
    s = sparse.ragged_from_offsets(r.offsets().clone(), T(np.concatenate(y)))
    same(tenon.exp(r), [np.exp(a) for a in x])  # 0 would be 1: what is absent is no zero
    same(r + 1.0, [a + 1 for a in x])
    same(2.0 - r, [2 - a for a in x])
    same(r * s, [a * b for a, b in zip(x, y)])
    trailing = RNG.normal(size=2).astype(np.float32)
    same(r + T(trailing), [a + trailing for a in x])
    by_row = RNG.normal(size=(4, 1, 2)).astype(np.float32)
    same(r - T(by_row), [a - b for a, b in zip(x, by_row)])
    whole = RNG.normal(size=(4, 5, 2)).astype(np.float32)
    same(r * T(whole), [a * b[: len(a)] for a, b in zip(x, whole)])
    same(T(whole[:1]) * r, [a * whole[0, : len(a)] for a in x])
    with pytest.raises(NotImplementedError, match="rows have the same lengths"):
        r + tenon.ragged(rows(2, lengths=[5, 1, 2, 1]))
    with pytest.raises(NotImplementedError, match=r"broadcasts to \[?\(?4, 5, 2"):
        r + tenon.ones([3, 5, 2])
    with pytest.raises(NotImplementedError, match="beside one of layout csr"):
        tenon.ragged(rows()) + tenon.ones([4, 5]).to_sparse("csr")


def test_reductions_along_the_ragged_axis():
    x = rows(2)
    r = tenon.ragged(x)
    np.testing.assert_allclose(r.sum(1).numpy(), [a.sum(0) for a in x], rtol=1e-5)
    assert r.sum(1, keepdim=True).shape == (4, 1, 2)
    np.testing.assert_allclose(r.sum().item(), sum(a.sum() for a in x), rtol=1e-5)
    np.testing.assert_allclose(r.mean().item(), np.concatenate(x).mean(), rtol=1e-4)
    same(r.sum(2), [a.sum(1) for a in x])
    same(r.mean(-1, keepdim=True), [a.mean(1, keepdims=True) for a in x])
    full = rows(2, lengths=[3, 2, 5, 1])
    s = tenon.ragged(full)
    for name in ("max", "min", "mean"):
        expected = [getattr(a, name)(0) for a in full]
        np.testing.assert_allclose(getattr(tenon, name)(s, 1).numpy(), expected, rtol=1e-5)
    integers = tenon.ragged([[1, 2], [250]], dtype=tenon.uint8)
    assert integers.sum(1).dtype == T([1], dtype=tenon.uint8).sum().dtype
    assert integers.sum(1).tolist() == [3, 250]
    with pytest.raises(ValueError, match="got a row without any"):
        tenon.max(r, 1)
    for function in (lambda: r.sum(0), lambda: tenon.std(r, 1), lambda: r.sum([0, 1])):
        with pytest.raises(NotImplementedError, match="layout ragged"):
            function()


def test_softmax():
    x = rows(2)
    r = tenon.ragged(x)

    def softmax(a, axis):
        powers = np.exp(a - a.max(axis, keepdims=True)) if a.size else a
        return powers / powers.sum(axis, keepdims=True)

    same(tenon.softmax(r, 1), [softmax(a, 0) for a in x])
    same(tenon.log_softmax(r, 1), [np.log(softmax(a, 0)) for a in x])
    same(tenon.softmax(r, -1), [softmax(a, 1) for a in x])
    with pytest.raises(NotImplementedError, match="layout ragged"):
        tenon.softmax(r, 0)


def test_gradients_twice():
    lengths = [2, 3, 1]
    offsets = T([0, 2, 5, 6])
    values = T(RNG.normal(size=(6, 2)), dtype=tenon.float64, requires_grad=True)
    weight = T(RNG.normal(size=(3, 3, 2)), dtype=tenon.float64)

    for function in (
        lambda r: tenon.softmax(r, 1).to_dense() * weight,
        lambda r: tenon.log_softmax(r, 1).to_dense() * weight,
        lambda r: tenon.max(r, 1),
        lambda r: (r * r).sum(1) * r.mean(1),
        lambda r: r[1],
        lambda r: r.to_dense(2.0) * weight,
        lambda r: tenon.concat([r, r * 2.0], 1).to_dense() ** 2,
    ):
        call = lambda v: function(sparse.ragged_from_offsets(offsets, v))  # noqa: B023
        check_gradients_twice(call, (values,))
    leaf = tenon.ragged([np.ones((n, 2), np.float32) for n in lengths]).requires_grad_()
    (leaf * 3.0).sum().backward()
    assert leaf.grad.layout == "ragged" and (leaf.grad.values() == 3.0).all().item()
    parts = [T([1.0, 2.0], requires_grad=True), T([3.0], requires_grad=True)]
    (tenon.ragged(parts) * 2.0).sum().backward()
    assert parts[0].grad.tolist() == [2.0, 2.0] and parts[1].grad.tolist() == [2.0]


def test_layers_of_each_element():
    x = rows(4)
    r = tenon.ragged(x)
    linear, norm = nn.Linear(4, 3), nn.LayerNorm(3)
    with tenon.no_grad():
        result = tenon.relu(norm(linear(r)))
        same(result, [tenon.relu(norm(linear(T(a)))).numpy() for a in x])
        w = T(RNG.normal(size=(4, 2)).astype(np.float32))
        same(r @ w, [a @ w.numpy() for a in x])
        rms = nn.RMSNorm(4)
        same(rms(r), [rms(T(a)).numpy() for a in x])
        table = nn.Embedding(10, 3)
        ids = tenon.ragged([[1, 2, 3], [], [9]])
        embedded = table(ids)
        assert tuple(embedded.shape) == (3, 3, 3)
        same(embedded, [table(row).numpy() for row in (T([1, 2, 3]), T([9, 1])[:0], T([9]))])
    heads = r.reshape([4, 5, 2, 2])
    same(heads, [a.reshape(-1, 2, 2) for a in x])


def test_tensors_like_it_and_its_rows():
    x = rows(2)
    r = tenon.ragged(x)
    same(tenon.zeros_like(r), [0 * a for a in x])
    same(tenon.ones_like(r), [0 * a + 1 for a in x])
    same(tenon.full_like(r, 3.0), [0 * a + 3 for a in x])
    kept = F.dropout(r, 0.5)
    assert kept.layout == "ragged" and kept.values().shape == r.values().shape
    assert set((kept.values() / r.values()).tolist()[0]) <= {0.0, 2.0}
    assert len(r) == 4 and [tuple(row.shape) for row in r] == [(n, 2) for n in LENGTHS]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    weight = T(RNG.normal(size=(10, 3)).astype(np.float32), requires_grad=True)
    ids = [[1, 2, 2], [], [9], [0, 4]]
    result = F.embedding_bag(tenon.ragged(ids), weight, mode=mode)
    flat, offsets = T([i for row in ids for i in row]), T([0, 3, 3, 4])
    expected = F.embedding_bag(flat, weight, offsets, mode)
    assert result.tolist() == expected.tolist()
    result.sum().backward()
    assert weight.grad[9].tolist() == [1.0, 1.0, 1.0] and weight.grad[3].tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="expected no offsets with indices of layout ragged"):
        F.embedding_bag(tenon.ragged(ids), weight, offsets)


def test_joining():
    x, y = rows(2), rows(2, lengths=[1, 2, 0, 4])
    a, b = tenon.ragged(x), tenon.ragged(y)
    below = tenon.concat([a, b])
    assert tuple(below.shape) == (8, 5, 2)
    same(below, [*x, *y])
    beside = tenon.concat([a, b], 1)
    assert tuple(beside.shape) == (4, 5, 2)
    same(beside, [np.concatenate(pair) for pair in zip(x, y)])
    deeper = tenon.concat([a, a * 2.0], 2)
    same(deeper, [np.concatenate([v, v * 2], 1) for v in x])
    with pytest.raises(NotImplementedError, match="layout ragged"):
        tenon.concat([a, b], 2)
    with pytest.raises(NotImplementedError, match="layout ragged"):
        tenon.stack([a, a])


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    lengths = [3, 1, 4]
    q, k, v = (rows(2, 4, lengths=lengths) for _ in range(3))
    result = sparse.ragged_attention(*map(tenon.ragged, (q, k, v)), causal=causal)
    for i, n in enumerate(lengths):
        for head in range(2):
            scores = q[i][:, head] @ k[i][:, head].T / 2.0
            if causal:
                scores = np.where(np.tril(np.ones((n, n))) > 0, scores, -np.inf)
            weights = np.exp(scores - scores.max(1, keepdims=True))
            expected = weights / weights.sum(1, keepdims=True) @ v[i][:, head]
            np.testing.assert_allclose(result[i].numpy()[:, head], expected, atol=1e-5)
    with pytest.raises(ValueError, match="expected `key` of layout ragged"):
        sparse.ragged_attention(tenon.ragged(q), T(k[0]), tenon.ragged(v))


def test_hostile_offsets():
    for offsets in ([0, 3, 2], [1, 2, 2], [0, 1], [0, -5, 2], [0, 1, 2**40]):
        with pytest.raises(ValueError, match="ascends from 0 to the 2 stored elements"):
            sparse.ragged_from_offsets(offsets, [1.0, 2.0])
    with pytest.raises(ValueError, match="rows of at most 1 elements, got one of 2"):
        sparse.ragged_from_offsets([0, 2], [1.0, 2.0], 1)
    # Written after they were checked.
    offsets = np.array([0, 1, 2, 4])
    r = sparse.ragged_from_offsets(offsets, np.arange(4, dtype=np.float32))
    calls = (
        lambda: r.to_dense(),
        lambda: r.sum(1),
        lambda: tenon.softmax(r, 1),
        lambda: r[1],
        lambda: tenon.concat([r, r]),
        lambda: tenon.concat([r, r], 1),
        lambda: r * tenon.ones([3, 2]),
    )
    for at, wrong in ((1, -1), (1, 9), (2, 2**50), (3, 3), (0, 1), (3, 5), (2, 0)):
        offsets[:] = [0, 1, 2, 4]
        offsets[at] = wrong
        for call in calls:
            with pytest.raises((ValueError, IndexError)):
                call()
    offsets[:] = [0, 0, 0, 4]  # sound, but a row is longer than the shape says
    with pytest.raises((ValueError, IndexError)):
        r.to_dense()


def test_refusals():
    r = tenon.ragged(rows(2))
    for function in (
        lambda: r.T,
        lambda: r.reshape([-1]),
        lambda: tenon.sort(r, 1),
        lambda: r @ r,
        lambda: r[:, 0],
        lambda: r.to_sparse("csr"),
        lambda: r.indices(),
        lambda: r.numpy(),
    ):
        with pytest.raises((NotImplementedError, TypeError), match="layout|compos"):
            function()
    with pytest.raises(TypeError, match="expected a tensor of layout ragged with `pad`"):
        tenon.ones([2, 2]).to_sparse("csr").to_dense(1.0)
    with pytest.raises(ValueError, match="differ in their lengths alone"):
        tenon.ragged([T([1.0]), T([[1.0]])])
    with pytest.raises(TypeError, match="ragged_from_dense"):
        tenon.ragged(tenon.ones([2, 2]))
    with pytest.raises(ValueError, match="at least one row"):
        tenon.ragged([])
