# SPDX-License-Identifier: Apache-2.0
"""Steps of transformers: caches that grow, long positions, empty sequences, and what is refused."""

import numpy as np
import pytest
import tenon
from running import skip_unserved, to_tensor


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def test_a_cache_gives_what_the_whole_sequence_gives(device):
    """Token by token, with blocks in any order, or all at once."""
    query, key, value = random(1, 4, 5, 6), random(1, 2, 5, 6), random(1, 2, 5, 6)
    whole = tenon.scaled_dot_product_attention(
        *(to_tensor(a, device) for a in (query, key, value)), causal=True, enable_gqa=True
    )
    want = whole.to("cpu").numpy()
    keys, values = (np.pad(a, [(0, 0), (0, 0), (0, 1), (0, 0)]) for a in (key, value))
    table = np.array([[3, 0, 2]])
    blocks = [np.zeros((4, 2, 2, 6)) for _ in range(2)]
    for block, cache in zip(blocks, (keys, values), strict=True):
        for i, b in enumerate(table[0]):
            block[b] = cache[0, :, 2 * i : 2 * i + 2]
    for t in range(5):
        step = to_tensor(query[:, :, t], device)
        length = to_tensor(np.array([t + 1]), device)
        one = tenon.cached_attention(
            step, to_tensor(keys, device), to_tensor(values, device), length
        )
        np.testing.assert_allclose(one.to("cpu").numpy(), want[:, :, t], rtol=1e-9, atol=1e-12)
        paged = tenon.paged_attention(
            step, *(to_tensor(b, device) for b in blocks), to_tensor(table, device), length
        )
        np.testing.assert_allclose(paged.to("cpu").numpy(), want[:, :, t], rtol=1e-9, atol=1e-12)


def test_sequences_without_queries_or_keys(device):
    query, key = to_tensor(random(3, 2, 4), device), to_tensor(random(4, 2, 4), device)
    offsets = to_tensor(np.array([0, 0, 2, 3]), device), to_tensor(np.array([0, 1, 1, 4]), device)
    out = tenon.varlen_attention(query, key, key, *offsets, 2, 3)
    assert out[:2].tolist() == np.zeros((2, 2, 4)).tolist()  # nothing to see
    want = tenon.scaled_dot_product_attention(
        query[2:].transpose(0, 1), key[1:].transpose(0, 1), key[1:].transpose(0, 1)
    )
    np.testing.assert_allclose(
        out[2:].to("cpu").numpy(), want.transpose(0, 1).to("cpu").numpy(), rtol=1e-9
    )
    none = to_tensor(np.array([0]), device)
    empty = to_tensor(random(0, 2, 4), device)
    assert tenon.varlen_attention(empty, empty, empty, none, none, 0, 0).shape == (0, 2, 4)


def test_angles_of_long_positions_keep_their_digits(device):
    skip_unserved(device, "float64")
    positions = np.array([10**7 + 3])
    cos, sin = tenon.rotary_tables(to_tensor(positions, device), 8)
    angle = positions[:, None] * 10000.0 ** (-np.arange(4) / 4)
    np.testing.assert_allclose(cos.to("cpu").numpy(), np.cos(angle), atol=1e-6)
    np.testing.assert_allclose(sin.to("cpu").numpy(), np.sin(angle), atol=1e-6)


def test_a_rotation_keeps_distances(device):
    x, y = to_tensor(random(1, 8), device), to_tensor(random(2, 8)[:1], device)

    def score(i, j):
        turned = [
            tenon.rotary_embedding(v, *(t.to("float64") for t in tenon.rotary_tables(p, 8)))
            for v, p in (
                (x, to_tensor(np.array([i]), device)),
                (y, to_tensor(np.array([j]), device)),
            )
        ]
        return (turned[0] * turned[1]).sum().item()

    assert score(3, 5) == pytest.approx(score(13, 15), rel=1e-5)


def test_experts_and_back(device):
    """Experts that do nothing give the tokens back."""
    tokens, logits = to_tensor(random(7, 3), device), to_tensor(random(7, 5), device)
    weights, experts = tenon.moe_gate(logits, 2)
    rows, counts, order = tenon.moe_dispatch(tokens, experts, 5)
    assert rows.shape == (14, 3) and sum(counts.tolist()) == 14
    back = tenon.moe_combine(rows, weights, order)
    np.testing.assert_allclose(back.to("cpu").numpy(), tokens.to("cpu").numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_large_residuals_do_not_overflow(dtype, device):
    x = tenon.full((1, 4), 300.0, dtype=dtype, device=device)
    out, total = tenon.add_rms_norm(x, x)
    assert out.to("cpu").to("float32").tolist() == [[1.0] * 4]
    assert total.dtype == x.dtype


Q, KV, ONE = tenon.ones((2, 4, 3)), tenon.ones((2, 3, 5, 3)), tenon.tensor([1, 1])
ROWS, OFFSETS = tenon.ones((4, 2, 3)), tenon.tensor([0, 1, 4])
REFUSED = {
    "heads": (
        lambda: tenon.cached_attention(Q, KV, KV, ONE),
        r"\[cached_attention\] expected query \[N, heads, features\], keys and values",
    ),
    "gqa heads": (
        lambda: tenon.scaled_dot_product_attention(
            tenon.ones((1, 3, 2, 2)), *[tenon.ones((1, 2, 2, 2))] * 2, enable_gqa=True
        ),
        "expected heads of query, .* multiple of those of key, got shapes",
    ),
    "cache": (
        lambda: tenon.cached_attention(Q[:, :3], KV, KV, tenon.tensor([1, 6])),
        "expected lengths from 0 to 5, got 6",
    ),
    "table": (
        lambda: tenon.paged_attention(Q[:, :3], KV, KV, ONE, ONE),
        r"expected block_table \[N, blocks of a sequence\], got shape \(2,\)",
    ),
    "lengths beyond the largest": (
        lambda: tenon.varlen_attention(ROWS, ROWS, ROWS, OFFSETS, OFFSETS, 2, 3),
        "expected lengths of sequences from 0 to 2, got 3",
    ),
    "offsets beyond the rows": (
        lambda: tenon.varlen_attention(ROWS, ROWS, ROWS, tenon.tensor([0, 9]), OFFSETS, 9, 3),
        "expected offsets from 0 to 4, got 9",
    ),
    "other sequences": (
        lambda: tenon.varlen_attention(ROWS, ROWS, ROWS, OFFSETS, tenon.tensor([0, 4]), 3, 4),
        "expected offsets of as many sequences of keys as of queries, got 1 and 2",
    ),
    "odd features": (
        lambda: tenon.rotary_embedding(tenon.ones((3,)), tenon.ones((1,)), tenon.ones((1,))),
        "an even number of features, and cos and sin",
    ),
    "odd tables": (
        lambda: tenon.rotary_tables(ONE, 3),
        "expected an even number of features and a base above 0, got 3 and 10000",
    ),
    "activation": (lambda: tenon.bias_act(Q, None, "mish"), "expected activation 'relu', 'gelu'"),
    "odd gate": (
        lambda: tenon.bias_act(Q, None, "swiglu"),
        r"expected a last axis of even length for 'swiglu', got shape \(2, 4, 3\)",
    ),
    "dispatch": (
        lambda: tenon.moe_dispatch(Q, ONE, 2),
        r"expected x \[tokens, features\], integer experts \[tokens, k\] and a count",
    ),
    "combine": (
        lambda: tenon.moe_combine(tenon.ones((4, 2)), tenon.ones((3, 2)), ONE),
        r"expected rows \[tokens \* k, features\], weights \[tokens, k\] and order",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_an_expert_that_is_not_there():
    with pytest.raises(IndexError, match="expected experts from 0 to 1, got 2"):
        tenon.moe_dispatch(tenon.ones((1, 2)), tenon.tensor([[2]]), 2)
