# SPDX-License-Identifier: Apache-2.0
"""Transformers, packed sequences and projections: against compositions of parts that other tests check."""

import numpy as np
import pytest
import tenon
from tenon import nn
from test_nn import First, check, random
from test_recurrent import rnn_step, sigmoid


def close(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_masks_of_attention():
    tenon.manual_seed(0)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x = tenon.tensor(random(2, 4, 8))
    causal, _ = attention(x, is_causal=True)
    above = tenon.tensor(np.triu(np.ones((4, 4), bool), 1))
    masked, weights = attention(x, attn_mask=above)
    close(masked, causal)
    np.testing.assert_allclose(weights.sum(axis=-1).detach().numpy(), np.ones((2, 4)), rtol=1e-5)
    added = nn.Transformer.generate_square_subsequent_mask(4)
    close(attention(x, attn_mask=added, need_weights=False)[0], causal)
    padding = tenon.tensor([[False] * 3 + [True]] * 2)
    short, _ = attention(x[:, :3])
    close(attention(x, key_padding_mask=padding)[0][:, :3], short)
    close(
        attention(x, key_padding_mask=padding, is_causal=True, need_weights=False)[0][:, :3],
        attention(x[:, :3], is_causal=True)[0],
    )
    heads = attention(x, average_attn_weights=False)[1]
    assert heads.shape == (2, 2, 4, 4)


def test_layouts_of_attention():
    tenon.manual_seed(0)
    first, second = nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    second.load_state_dict(first.state_dict())
    x = tenon.tensor(random(5, 3, 8))
    out, weights = first(x)
    close(second(x.transpose(0, 1))[0].transpose(0, 1), out)
    close(first(x[:, 1])[0], out[:, 1])
    assert weights.shape == (3, 5, 5)
    with pytest.raises(ValueError, match="expected embed_dim divisible by num_heads 3, got 8"):
        nn.MultiheadAttention(8, 3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_layers_are_compositions(norm_first):
    tenon.manual_seed(0)
    x, memory = tenon.tensor(random(5, 2, 8)), tenon.tensor(random(4, 2, 8, seed=1))
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, norm_first=norm_first)

    def feed(x):
        return layer.linear2(tenon.relu(layer.linear1(x)))

    if norm_first:
        y = layer.norm1(x)
        y = x + layer.self_attn(y)[0]
        want = y + feed(layer.norm2(y))
    else:
        y = layer.norm1(x + layer.self_attn(x)[0])
        want = layer.norm2(y + feed(y))
    close(layer(x), want)
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, norm_first=norm_first)
    if norm_first:
        y = layer.norm1(x)
        y = x + layer.self_attn(y)[0]
        y = y + layer.multihead_attn(layer.norm2(y), memory)[0]
        want = y + feed(layer.norm3(y))
    else:
        y = layer.norm1(x + layer.self_attn(x)[0])
        y = layer.norm2(y + layer.multihead_attn(y, memory)[0])
        want = layer.norm3(y + feed(y))
    close(layer(x, memory), want)


def test_transformer_is_causal_where_it_should_be():
    tenon.manual_seed(0)
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True).eval()
    src, tgt = tenon.tensor(random(2, 4, 8)), tenon.tensor(random(2, 5, 8, seed=1))
    full = model(src, tgt, tgt_is_causal=True)
    assert full.shape == (2, 5, 8)
    close(model(src, tgt[:, :3], tgt_is_causal=True), full[:, :3])
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    close(model(src, tgt, tgt_mask=mask), full)
    with pytest.raises(ValueError, match="expected activation 'relu', 'gelu' or a function"):
        nn.TransformerEncoderLayer(8, 2, activation="tanh")


def test_relu_rnn():
    def expected(x, w_ih, w_hh, b_ih, b_hh):
        h = np.zeros((2, 4))
        out = []
        for part in x:
            h = np.maximum(part @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 0.0)
            out.append(h)
        return np.stack(out)

    check(First(nn.RNN(3, 4, nonlinearity="relu")), expected, random(5, 2, 3))
    with pytest.raises(ValueError, match="expected nonlinearity 'tanh' or 'relu', got 'gelu'"):
        nn.RNN(3, 4, nonlinearity="gelu")


def test_lstm_with_a_projection():
    def expected(x, w_ih, w_hh, b_ih, b_hh, w_hr):
        h, c = np.zeros((2, 3)), np.zeros((2, 4))
        out = []
        for part in x:
            i, f, g, o = np.split(part @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = (sigmoid(o) * np.tanh(c)) @ w_hr.T
            out.append(h)
        return np.stack(out)

    check(First(nn.LSTM(3, 4, proj_size=3)), expected, random(4, 2, 3))
    with pytest.raises(ValueError, match="GRU: expected proj_size 0"):
        nn.GRU(3, 4, proj_size=2)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_packed_sequences_equal_single_ones(kind):
    tenon.manual_seed(0)
    module = kind(3, 4, num_layers=2, bidirectional=True)
    parts = [tenon.tensor(random(n, 3, seed=n)) for n in (2, 5, 3)]
    packed = nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 1, 1]
    out, state = module(packed)
    for i, (part, got) in enumerate(zip(parts, nn.utils.rnn.unpack_sequence(out))):
        want, after = module(part)
        close(got, want)
        first = state if isinstance(state, tuple) else (state,)
        after = after if isinstance(after, tuple) else (after,)
        for a, b in zip(first, after):
            close(a[:, i], b)


def test_padding_of_sequences():
    rnn = nn.utils.rnn
    parts = [tenon.ones(2), tenon.ones(3)]
    assert rnn.pad_sequence(parts, True).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert rnn.pad_sequence(parts, True, -1.0, "left").tolist() == [[-1, 1, 1], [1, 1, 1]]
    padded, lengths = rnn.pad_packed_sequence(
        rnn.pack_sequence(parts, enforce_sorted=False), batch_first=True, total_length=4
    )
    assert padded.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]] and lengths.tolist() == [2, 3]
    with pytest.raises(ValueError, match=r"expected lengths that fall, got \[2, 3\]"):
        rnn.pack_padded_sequence(tenon.zeros(3, 2, 1), [2, 3])
    with pytest.raises(ValueError, match="expected 2 lengths from 1 to 3"):
        rnn.pack_padded_sequence(tenon.zeros(3, 2, 1), [4, 3])
    with pytest.raises(ValueError, match="expected padding_side 'left' or 'right'"):
        rnn.pad_sequence(parts, padding_side="both")


def test_two_cells_run_in_both_directions():
    tenon.manual_seed(0)
    forward, backward = nn.RNNCell(3, 4), nn.RNNCell(3, 4)
    out, states = nn.BiRNN(forward, backward)(tenon.tensor(random(5, 2, 3)))
    assert out.shape == (5, 2, 8) and states[0].shape == (2, 4)
    weights = [p.detach().numpy() for p in backward.parameters()]
    h = (np.zeros((2, 4)),)
    for part in random(5, 2, 3)[::-1]:
        h = rnn_step(part, h, weights)
    np.testing.assert_allclose(out[0, :, 4:].detach().numpy(), h[0], rtol=1e-4, atol=1e-5)


def test_a_step_of_decoding_writes_the_caches():
    heads, shared, features, length = 4, 2, 6, 5
    query, key, value = (
        tenon.tensor(random(2, h, length, features)) for h in (heads, shared, shared)
    )
    whole = tenon.scaled_dot_product_attention(query, key, value, causal=True, enable_gqa=True)
    dense = [tenon.zeros((2, shared, length, features)) for _ in range(2)]
    paged = [tenon.zeros((7, shared, 2, features)) for _ in range(2)]
    table = tenon.tensor([[6, 0, 3], [1, 5, 2]])
    for t in range(length):
        step = query[:, :, t], key[:, :, t], value[:, :, t]
        used = tenon.tensor([t, t])
        close(nn.functional.masked_multihead_attention(*step, *dense, used), whole[:, :, t])
        got = nn.functional.paged_multihead_attention(*step, *paged, table, used)
        close(got, whole[:, :, t])
    close(dense[0], key)


def test_experts_are_weighed():
    tenon.manual_seed(0)
    x, logits = tenon.tensor(random(6, 3)), tenon.tensor(random(6, 4), requires_grad=True)
    experts = [nn.Linear(3, 2) for _ in range(4)]
    got = nn.functional.mixture_of_experts(x, logits, experts, 2)
    weights, chosen = tenon.moe_gate(logits, 2)
    made = tenon.stack([expert(x) for expert in experts], 1)
    index = chosen.unsqueeze(-1).expand([6, 2, 2])
    close(got, (tenon.gather(made, index, 1) * weights.unsqueeze(-1)).sum(axis=1))
    got.sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0
    with pytest.raises(ValueError, match=r"expected logits of shape \(6, 3\), got \(6, 4\)"):
        nn.functional.mixture_of_experts(x, logits, experts[:3])
