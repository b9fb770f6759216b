# SPDX-License-Identifier: Apache-2.0
"""Attention with a part left out beside the dense one under a mask."""

import math

import numpy as np
import pytest
import tenon
from devices import DEVICES
from tenon.nn import functional as F


def _dense(q, k, v, shown):
    score = np.where(shown, q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    largest = score.max(-1, keepdims=True)
    weight = np.exp(score - np.where(np.isfinite(largest), largest, 0))
    total = weight.sum(-1, keepdims=True)
    return weight / np.where(total > 0, total, 1) @ v


@pytest.fixture
def qkv():
    generator = np.random.default_rng(0)
    return [generator.standard_normal((2, 3, 5, 4)) for _ in range(3)]


def test_a_pattern_for_each_head(qkv):
    generator = np.random.default_rng(1)
    shown = np.zeros((2, 3, 5, 5), bool)
    offsets, columns = np.zeros((2, 3, 6), np.int64), []
    for b in range(2):
        for h in range(3):
            flat = np.sort(generator.choice(25, 9, replace=False))
            shown[b, h].reshape(-1)[flat] = True
            offsets[b, h, 1:] = np.cumsum(shown[b, h].sum(1))
            columns.append(flat % 5)
    columns = np.array(columns).reshape(2, 3, 9)
    args = [tenon.tensor(x, requires_grad=True) for x in qkv]
    structure = tenon.tensor(offsets), tenon.tensor(columns)
    out = F.sparse_attention(*args, *structure)
    np.testing.assert_allclose(out.detach().numpy(), _dense(*qkv, shown), rtol=1e-9, atol=1e-12)
    out.sum().backward()
    assert all(bool(tenon.all(tenon.isfinite(x.grad))) for x in args)
    padding, mask = generator.integers(0, 2, (2, 5)), generator.integers(0, 2, (5, 5))
    out = F.sparse_attention(*args, *structure, tenon.tensor(padding), tenon.tensor(mask))
    shown = shown & (padding[:, None, None, :] != 0) & (mask != 0)
    np.testing.assert_allclose(out.detach().numpy(), _dense(*qkv, shown), rtol=1e-9, atol=1e-12)
    with pytest.raises(IndexError, match="expected columns from 0 to 4"):
        F.sparse_attention(*args, structure[0], structure[1] + 5)
    with pytest.raises(ValueError, match="expected offsets from 0 to the 9 columns of each head"):
        F.sparse_attention(*args, structure[0] + 1, structure[1])


def test_columns_end_at_rows(qkv):
    start = np.random.default_rng(2).integers(0, 7, (2, 1, 5))
    q, k, v = (np.swapaxes(x, 1, 2) for x in qkv)  # [N, L, heads, E]
    rows, columns = np.arange(5)[:, None], np.arange(5)
    out = F.flash_attention_with_sparse_mask(
        *(tenon.tensor(np.ascontiguousarray(x)) for x in (q, k, v)), tenon.tensor(start)
    )
    shown = (rows < start[:, :, None, :]) & (rows >= columns)
    wanted = np.swapaxes(_dense(*qkv, shown), 1, 2)
    some = np.swapaxes(np.broadcast_to(shown.any(-1, keepdims=True), (2, 3, 5, 4)), 1, 2)
    np.testing.assert_allclose(out.numpy()[some], wanted[some], rtol=1e-9, atol=1e-12)


def test_how_much_a_key_is_attended_to(qkv):
    q, k, _ = (np.swapaxes(x, 1, 2) for x in qkv)
    score = qkv[0] @ np.swapaxes(qkv[1], -1, -2) / 2.0
    lse = np.log(np.exp(score).sum(-1))
    out = F.reduced_attention_scores(*(tenon.tensor(np.ascontiguousarray(x)) for x in (q, k, lse)))
    np.testing.assert_allclose(
        out.numpy(), np.exp(score - lse[..., None]).sum(2, keepdims=True), rtol=1e-9
    )


def test_softmaxes_with_masks():
    x = np.random.default_rng(3).standard_normal((2, 3, 3))
    lower = np.tril(np.ones((3, 3), bool))
    weight = np.exp(np.where(lower, x, -np.inf))
    out = F.softmax_upper_hidden(tenon.tensor(x)).numpy()
    np.testing.assert_allclose(out, weight / weight.sum(-1, keepdims=True), rtol=1e-12)
    mask = np.where(lower, 0.0, -np.inf)
    np.testing.assert_allclose(
        F.softmax_with_mask(tenon.tensor(x), tenon.tensor(mask)).numpy(), out, rtol=1e-12
    )
    with pytest.raises(ValueError, match=r"expected x \[..., L, L\]"):
        F.softmax_upper_hidden(tenon.zeros([2, 3]))


def test_a_norm_and_its_activation():
    tenon.manual_seed(0)
    x, residual = tenon.randn([4, 3, 2, 2]), tenon.randn([4, 3, 2, 2])
    mean, var = tenon.zeros([3]), tenon.ones([3])
    plain = F.batch_norm(x, mean.clone(), var.clone(), training=True)
    out = F.batch_norm_act(x, mean, var, training=True, activation="tanh", residual=residual)
    np.testing.assert_allclose(
        out.numpy(), np.tanh((plain + residual).numpy()), rtol=1e-5, atol=1e-6
    )
    assert mean.tolist() != [0.0, 0.0, 0.0]
    with pytest.raises(
        ValueError, match="expected the name of an activation, such as 'relu', got 'load'"
    ):
        F.batch_norm_act(x, mean, var, activation="load")


def test_tensors_side_by_side():
    parts = [tenon.ones([2, 3]), tenon.full([4], 2.0)]
    views, whole = tenon.nn.utils.coalesce_tensors(parts)
    assert whole.tolist() == [1.0] * 6 + [2.0] * 4 and [list(x.shape) for x in views] == [
        [2, 3],
        [4],
    ]
    whole.mul_(3.0)
    assert views[1].tolist() == [6.0] * 4 and parts[1].tolist() == [2.0] * 4
    _, empty = tenon.nn.utils.coalesce_tensors(parts, copy_data=False)
    assert empty.tolist() == [0.0] * 10
    with pytest.raises(ValueError, match="expected tensors of one dtype"):
        tenon.nn.utils.coalesce_tensors([parts[0], tenon.zeros([1], dtype=tenon.float64)])


@pytest.mark.parametrize("device", DEVICES)
def test_a_pattern_on_other_devices(device):
    q = tenon.ones([1, 1, 2, 4], device=device)
    structure = [tenon.tensor(x, device=device) for x in ([[[0, 1, 3]]], [[[0, 0, 1]]])]
    mask = tenon.tensor([[1, 1], [0, 1]], device=device)
    value = tenon.arange(8.0, device=device).reshape([1, 1, 2, 4])
    out = F.sparse_attention(q, q, value, *structure, attn_mask=mask)
    assert out.device == q.device
    np.testing.assert_allclose(out.to("cpu").numpy(), value.to("cpu").numpy())
