# SPDX-License-Identifier: Apache-2.0
"""paddle.static.nn and paddle.incubate.layers: branches, loops, sequences and features."""

import numpy as np
import pytest
import tenon
from tenon.compat import paddle

S = paddle.static.nn
L = paddle.incubate.layers


def ragged(*lengths):
    rows = np.arange(sum(lengths), 0.0, -1.0).reshape(-1, 1)
    return tenon.sparse.ragged(np.split(rows, np.cumsum(lengths)[:-1]), dtype="float32")


@pytest.mark.parametrize(
    "pool_type,wanted",
    [
        ("average", [6.5, 4.0, -1.0, 1.5]),
        ("sum", [13.0, 12.0, -1.0, 3.0]),
        ("SQRT", [13 / 2**0.5, 12 / 3**0.5, -1.0, 3 / 2**0.5]),
        ("max", [7.0, 5.0, -1.0, 2.0]),
        ("last", [6.0, 3.0, -1.0, 1.0]),
        ("first", [7.0, 5.0, -1.0, 2.0]),
    ],
)
def test_pools_of_sequences(pool_type, wanted):
    x = ragged(2, 3, 0, 2)
    np.testing.assert_allclose(
        S.sequence_pool(x, pool_type, False, -1.0).numpy()[:, 0], wanted, rtol=1e-6
    )
    if pool_type in ("last", "first"):
        step = getattr(S, f"sequence_{pool_type}_step")(x)
        assert step.tolist() == [[w if w != -1 else 0.0] for w in wanted]


def test_sequences_are_ragged():
    with pytest.raises(TypeError, match="expected a tensor of layout ragged, got strided"):
        S.sequence_pool(tenon.ones([3, 1]), "sum")
    with pytest.raises(ValueError, match="expected pool_type 'average', 'sum', .*, got 'min'"):
        S.sequence_pool(ragged(2), "min")
    with pytest.raises(ValueError, match=r"expected elements of one number, got shape \(2,\)"):
        S.sequence_softmax(tenon.sparse.ragged([[[1.0, 2.0]]]))


def test_softmax_of_sequences():
    result = S.sequence_softmax(ragged(2, 0, 3))
    wanted = [np.exp([5.0, 4.0]), np.exp([3.0, 2.0, 1.0])]
    wanted = np.concatenate([w / w.sum() for w in wanted])
    assert tenon.sparse.lengths(result).tolist() == [2, 0, 3]
    np.testing.assert_allclose(result.values().numpy()[:, 0], wanted, rtol=1e-6)


def test_a_loop():
    i, total = S.while_loop(
        lambda i, total: i < 5,
        lambda i, total: [i + 1, total + i],
        [tenon.tensor(0), tenon.tensor(0)],
    )
    assert (i.item(), total.item()) == (5, 10)
    assert S.while_loop(lambda i: i < 3, lambda i: i + 1, (tenon.tensor([0]),))[0].tolist() == [3]
    program = tenon.export(
        lambda n: S.while_loop(lambda i: i < n, lambda i: i * 2, [tenon.tensor(1)])[0],
        (tenon.tensor(20),),
    )
    assert [program(tenon.tensor(n)).item() for n in (20, 3)] == [32, 4]
    with pytest.raises(ValueError, match="expected loop_vars as a list or tuple with at least one"):
        S.while_loop(lambda: True, lambda: None, [])


def test_branches():
    one, two, three = (lambda value=value: tenon.tensor(value) for value in (1, 2, 3))
    true, false = tenon.tensor(True), tenon.tensor([False])
    assert S.cond(true, one, two).item() == 1 and S.cond(false, one) is None
    assert S.case([(false, one), (true, two)], three).item() == 2
    assert S.case([(false, one), (false, two)], three).item() == 3
    assert S.case([(false, one), (false, two)]).item() == 2
    assert S.switch_case(tenon.tensor(1), {1: one, 2: two}).item() == 1
    assert S.switch_case(tenon.tensor(0), {7: three, 2: two}).item() == 3
    assert S.switch_case(tenon.tensor(1), [one, two], three).item() == 2
    assert S.switch_case(tenon.tensor(5), [(0, one), (4, two)], three).item() == 3
    with pytest.raises(ValueError, match=r"expected different numbers of functions, got \[1, 1\]"):
        S.switch_case(tenon.tensor(1), [(1, one), (1, two)])
    with pytest.raises(TypeError, match="expected a function for default, got int"):
        S.case([(true, one)], 3)


def test_the_layer_that_has_the_parameters_is_named():
    with pytest.raises(
        AttributeError, match="paddle.static.nn.nce, which makes parameters.*NCELoss"
    ):
        _ = S.nce
    with pytest.raises(AttributeError, match="layers.batch_fc, which makes .* use tenon.batch_fc"):
        _ = L.batch_fc
    with pytest.raises(AttributeError, match="paddle.static.Program: there is no program to build"):
        _ = paddle.static.Program


def test_a_batch_in_random_order():
    x = tenon.arange(24).reshape(3, 4, 2)
    first, second = L.shuffle_batch(x, seed=5), L.shuffle_batch(x, tenon.tensor([5]))
    assert first.tolist() == second.tolist() != x.tolist()
    assert sorted(first.reshape(-1, 2).tolist()) == x.reshape(-1, 2).tolist()
    tenon.manual_seed(3)
    before = tenon.rand(2).tolist()
    tenon.manual_seed(3)
    L.shuffle_batch(x, 7)  # has a generator of its own
    assert tenon.rand(2).tolist() == before


def test_parts_of_columns_and_sums_of_sequences():
    x = tenon.tensor([[0.0, 1, 2], [3, 4, 5]])
    assert L.partial_concat([x, x + 6], 0, 2).tolist() == [[0, 1, 6, 7], [3, 4, 9, 10]]
    assert L.partial_sum([x, x + 6], start_index=1).tolist() == [[8, 10], [14, 16]]
    pooled = tenon.sparse.ragged([[[1.0, 0, 3], [2, 1, 5]], [[4.0, 1, 1]]])
    (result,) = L.fused_seqpool_cvm([pooled], "sum", tenon.ones([2, 2]))
    wanted = [[np.log(4), np.log(2 / 4), 8], [np.log(5), np.log(2 / 5), 1]]
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)
    (bare,) = L.fused_seqpool_cvm([pooled], "sum", tenon.ones([2, 2]), use_cvm=False)
    assert bare.tolist() == [[8.0], [1.0]]
    with pytest.raises(
        ValueError, match=r"expected cvm of shape \(2, 2\) for the sequences of inp"
    ):
        L.fused_seqpool_cvm([pooled], "sum", tenon.ones([3, 2]))
    with pytest.raises(NotImplementedError, match="expected cvm_offset=2"):
        L.fused_seqpool_cvm([pooled], "sum", tenon.ones([2, 2]), cvm_offset=1)
