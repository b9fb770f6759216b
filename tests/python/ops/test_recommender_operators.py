# SPDX-License-Identifier: Apache-2.0
"""Operators of recommenders and of mixtures of experts beside loops in NumPy."""

import numpy as np
import pytest
import tenon


def test_ranks_choose_matrices():
    generator = np.random.default_rng(0)
    x, param = generator.standard_normal((3, 2)), generator.standard_normal((8, 3))
    offset = np.array([[1, 1, 0, 2, 1], [0, 1, 0, 0, 0], [2, 2, 2, 0, 0]])
    out = tenon.rank_attention(
        tenon.tensor(x), tenon.tensor(offset), tenon.tensor(param), 2
    ).numpy()
    wanted = np.zeros((3, 3))
    for i, row in enumerate(offset):
        for k in range(2):
            other, index = row[1 + 2 * k], row[2 + 2 * k]
            if row[0] and other:
                block = ((row[0] - 1) * 2 + other - 1) * 2
                wanted[i] += x[index] @ param[block : block + 2]
    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-12)
    with pytest.raises(IndexError, match="expected ranks from 0 to 2, got 10"):
        tenon.rank_attention(tenon.tensor(x), tenon.tensor(offset + 9), tenon.tensor(param), 2)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([5, 1, 0, 0, 0, 0, 0], "expected ranks from 0 to 3, got 5"),
        ([1, 5, 0, 0, 0, 0, 0], "expected ranks of others from 0 to 3, got 5"),
        ([1, 1, 0, 2, 10, 0, 0], "expected rows from 0 to 9, got 10"),
        ([1, 1, 0, -1, 0, 0, 0], "expected ranks of others from 0 to 3, got -1"),
    ],
)
def test_ranks_and_rows_have_limits_of_their_own(row, text):
    """With more items than ranks, a rank above the largest one is no row of the table."""
    offset = tenon.tensor([row] + [[0] * 7] * 9)
    with pytest.raises(IndexError, match=text):
        tenon.rank_attention(tenon.ones([10, 2]), offset, tenon.ones([18, 4]), 3)


def test_nodes_that_are_drawn_are_of_the_layer_and_different():
    tenon.manual_seed(1)
    travel = np.array([[1, 3, 7], [1, 4, 0], [2, 5, 9]])
    layer = [1, 2, 6, 3, 4, 5, 7, 8, 9, 10]
    offsets, counts = [0, 2, 6, 10], [1, 2, 3]
    items = [0, 1, 2] * 40
    out, labels, mask = (
        x.numpy()
        for x in tenon.tdm_sampler(
            tenon.tensor(items), tenon.tensor(travel), tenon.tensor(layer), counts, offsets
        )
    )
    begin = 0
    for level, count in enumerate(counts):
        columns = slice(begin, begin + 1 + count)
        nodes = layer[offsets[level] : offsets[level + 1]]
        for row, item in enumerate(items):
            own = travel[item, level]
            if own == 0:
                assert not out[row, columns].any() and not mask[row, columns].any()
                continue
            drawn = out[row, columns].tolist()
            assert drawn[0] == own and len({*drawn}) == 1 + count and {*drawn} <= {*nodes}
            assert labels[row, columns].tolist() == [1] + [0] * count
            assert mask[row, columns].all()
        begin += 1 + count
    # Of three other nodes two are drawn: each as often as another.
    others = out[0::3, 2 + 1 : 2 + 3]
    assert {*others.reshape(-1).tolist()} == {4, 5, 6}
    bare, _, _ = tenon.tdm_sampler(
        tenon.tensor([0]), tenon.tensor(travel), tenon.tensor(layer), counts, offsets, False
    )
    assert list(bare.shape) == [1, 6]
    with pytest.raises(
        ValueError, match="expected counts from 0 to one less than a layer's nodes, got 2"
    ):
        tenon.tdm_sampler(
            tenon.tensor([0]), tenon.tensor(travel), tenon.tensor(layer), [2, 2, 3], offsets
        )


def test_children_of_nodes_outside_are_refused():
    tree = tenon.tensor([[0, 0, 0, 0], [0, 0, 0, 2], [7, 1, 1, 0]])
    with pytest.raises(IndexError, match="expected nodes from 0 to 2, got 3"):
        tenon.tdm_child(tenon.tensor([3]), tree, 1)
    wrong = tenon.tensor([[0, 0, 0, 0], [0, 0, 0, 5], [7, 1, 1, 0]])
    with pytest.raises(IndexError, match="expected children from 0 to 2, got 5"):
        tenon.tdm_child(tenon.tensor([1]), wrong, 1)


def test_bytes_of_a_table():
    generator = np.random.default_rng(2)
    data = generator.integers(0, 256, (4, 8), dtype=np.uint8)
    table = np.concatenate([np.array([[-1.0, 3.0]] * 4, np.float32), data.view(np.float32)], 1)
    out = tenon.embedding_dequantized(
        tenon.tensor(table), tenon.tensor([[2, 0], [3, 3]]), 0
    ).numpy()
    wanted = data.astype(np.float32) * (4 / 256) - 1
    np.testing.assert_allclose(
        out, np.stack([[wanted[2], 0 * wanted[0]], [wanted[3], wanted[3]]]), rtol=1e-6
    )


def test_parts_of_a_table_add_up():
    weight = tenon.randn([6, 3])
    index = tenon.tensor([[0, 5], [2, 3]])
    parts = [tenon.embedding_of_part(weight[i : i + 2], index, i) for i in (0, 2, 4)]
    assert (parts[0] + parts[1] + parts[2]).tolist() == tenon.embedding(weight, index).tolist()


def test_experts_have_room_for_the_first():
    generator = np.random.default_rng(3)
    experts = generator.integers(-1, 4, 50)
    counts = np.array([3, 0, 100, 7])
    left = counts.copy()
    wanted = []
    for expert in experts:
        if expert < 0 or left[expert] == 0:
            wanted.append(-1)
        else:
            left[expert] -= 1
            wanted.append(expert)
    assert (
        tenon.prune_gate_by_capacity(tenon.tensor(experts), tenon.tensor(counts)).tolist() == wanted
    )
    held = tenon.expert_counts(tenon.tensor(experts), 4)
    assert held.tolist() == [int((experts == e).sum()) for e in range(4)]
    order = tenon.expert_positions(tenon.tensor(experts), int((experts >= 0).sum())).tolist()
    assert order == sorted(np.flatnonzero(experts >= 0).tolist(), key=lambda i: experts[i])
    asked = generator.integers(0, 6, (3, 4))
    limited = tenon.limit_by_capacity(tenon.tensor(asked.reshape(-1)), tenon.tensor(counts), 3)
    room, taken = counts.copy(), np.zeros_like(asked)
    for worker in range(3):
        taken[worker] = np.minimum(asked[worker], room)
        room -= taken[worker]
    assert limited.tolist() == taken.reshape(-1).tolist()


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_the_structure_of_a_transpose(dtype):
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.random(40, 30, 0.2, format="csr", random_state=4)
    indptr, indices, order = tenon.csr_transpose(
        tenon.tensor(a.indptr.astype(np.int64)), tenon.tensor(a.indices.astype(dtype)), 30
    )
    assert str(indices.dtype) == dtype and str(order.dtype) == dtype
    wanted = a.T.tocsr()
    wanted.sort_indices()
    assert indptr.tolist() == wanted.indptr.tolist() and indices.tolist() == wanted.indices.tolist()
    assert a.data[order.numpy()].tolist() == wanted.data.tolist()
    with pytest.raises(IndexError, match="expected columns from 0 to 2"):
        tenon.csr_transpose(tenon.tensor([0, 1]), tenon.tensor([3]), 3)
    with pytest.raises(ValueError, match="expected an indptr that ascends"):
        tenon.csr_transpose(tenon.tensor([0, 2, 1]), tenon.tensor([0]), 3)


def test_matches_in_a_sorted_list():
    generator = np.random.default_rng(5)
    for size in (0, 1, 7, 500):
        held = np.sort(generator.integers(0, 700, size))
        for values in (np.sort(generator.integers(0, 700, 300)), generator.integers(-9, 709, 300)):
            at, place = tenon.sorted_matches(tenon.tensor(held), tenon.tensor(values))
            wanted = np.flatnonzero(np.isin(values, held))
            assert at.tolist() == wanted.tolist()
            assert place.tolist() == np.searchsorted(held, values[wanted]).tolist()


def test_dtypes_are_checked_before_kernels_run():
    """Of operators whose results' shapes depend on data, by a rule that the definition makes."""
    numbers = tenon.tensor([1, 2])
    with pytest.raises(
        TypeError,
        match=r"\[sorted_matches\] expected values of dtype int64, got float32; convert it with cast\(\)",
    ):
        tenon.sorted_matches(numbers, tenon.tensor([1.0]))
    with pytest.raises(
        TypeError,
        match=r"\[csr_product\] expected indices_y of dtype integer, got float32",
    ):
        values, indptr = tenon.tensor([1.0]), tenon.tensor([0, 1])
        tenon.csr_product(indptr, tenon.tensor([0]), values, indptr, tenon.tensor([0.0]), values, 1)
    with pytest.raises(
        TypeError, match=r"\[text_lower\] expected offsets of dtype integer, got float32"
    ):
        tenon.text_lower(tenon.tensor([72], dtype=tenon.uint8), tenon.tensor([0.0, 1.0]))


def test_a_table_of_bytes_is_float32():
    with pytest.raises(
        TypeError, match="expected a float32 weight, whose bits are bytes, got float64"
    ):
        tenon.embedding_dequantized(tenon.ones([2, 3]).astype("float64"), tenon.tensor([0]))
    with pytest.raises(ValueError, match=r"with a width above 0, got shape \(2, 2\)"):
        tenon.embedding_dequantized(tenon.ones([2, 2]), tenon.tensor([0]))


def test_what_losses_of_pairs_and_capacities_take():
    ones = tenon.ones([2, 3])
    with pytest.raises(
        ValueError, match=r"expected anchor and positive \[N, M\] of one shape, got"
    ):
        tenon.npair_loss(tenon.ones([2, 3, 1, 1]), tenon.ones([2, 3, 1, 1]), tenon.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"expected target \[N\] beside anchor \[N, M\], got"):
        tenon.npair_loss(ones, ones, tenon.tensor([[0], [1]]))
    counts, capacity = tenon.tensor([3, 1, 2, 4]), tenon.tensor([4, 2])
    with pytest.raises(TypeError, match="expected integers counts, got float32"):
        tenon.limit_by_capacity(counts.to("float32"), capacity, 2)
    with pytest.raises(TypeError, match="expected integers capacity, got float32"):
        tenon.limit_by_capacity(counts, capacity.to("float32"), 2)
    with pytest.raises(ValueError, match=r"counts \[workers \* experts\] and capacity \[experts\]"):
        tenon.limit_by_capacity(counts, capacity, 3)
