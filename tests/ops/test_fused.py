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


def ragged(rng, lengths, rows, pool=np.float32, heads=6, kv_heads=2, features=20, size=4):
    """Arguments of paged_attention: sequences in scattered blocks, the others of which are NaN."""
    width = -(-max(lengths) // size)
    blocks = rng.permutation(len(lengths) * width + 3)
    table = np.full((len(lengths), width), -7, np.int32)  # which nothing reads
    pools = [np.full((len(blocks), kv_heads, size, features), np.nan, np.float32) for _ in range(2)]
    for n, length in enumerate(lengths):
        used = -(-length // size)
        table[n, :used] = blocks[n * width : n * width + used]
        for place in range(length):
            for kept in pools:
                kept[table[n, place // size], :, place % size] = rng.standard_normal(
                    (kv_heads, features)
                )
    offsets = np.cumsum([0, *rows]).astype(np.int32)
    query = rng.standard_normal((offsets[-1], heads, features)).astype(np.float32)
    return query, *pools, table, np.array(lengths, np.int32), offsets


@pytest.mark.parametrize("window, softcap", [(None, None), (21, None), (None, 3.0)])
def test_pages_give_a_row_the_same_bits_in_every_batch(window, softcap):
    query, keys, values, table, lengths, offsets = ragged(
        np.random.default_rng(7), [70, 3, 33], [70, 2, 5]
    )
    pools = tenon.tensor(keys), tenon.tensor(values)

    def attend(rows, table, lengths, offsets):
        given = (tenon.tensor(np.ascontiguousarray(each)) for each in (table, lengths))
        return tenon.paged_attention(
            tenon.tensor(rows), *pools, *given, None, tenon.tensor(offsets), window, softcap
        ).numpy()

    whole = attend(query, table, lengths, offsets)
    assert np.isfinite(whole).all()
    for n in range(3):
        rows = offsets[n + 1] - offsets[n]
        for row in range(rows):
            length = np.array([lengths[n] - rows + row + 1], np.int32)
            at = offsets[n] + row
            one = attend(query[at : at + 1], table[n : n + 1], length, np.array([0, 1], np.int32))
            assert one.tobytes() == whole[at : at + 1].tobytes(), (n, row)
    threads = tenon.get_num_threads()
    try:
        tenon.set_num_threads(4)
        assert attend(query, table, lengths, offsets).tobytes() == whole.tobytes()
    finally:
        tenon.set_num_threads(threads)


@pytest.mark.parametrize("pool, query_type", [("float16", "float32"), ("bfloat16", "bfloat16")])
def test_pages_of_small_floats(pool, query_type, device):
    skip_unserved(device, pool)
    query, keys, values, *numbers = ragged(np.random.default_rng(8), [20, 9], [3, 9])
    keys, values = np.nan_to_num(keys), np.nan_to_num(values)
    numbers[0] = np.maximum(numbers[0], 0)
    low = [to_tensor(each, device, dtype=pool) for each in (keys, values)]
    table, lengths, offsets = (to_tensor(each, device) for each in numbers)
    given = to_tensor(query, device, dtype=query_type)
    got = tenon.paged_attention(given, *low, table, lengths, None, offsets)
    assert got.dtype == given.dtype
    wide = [each.to("float32") for each in (given, *low)]
    want = tenon.paged_attention(*wide, table, lengths, None, offsets)
    close = 2e-2 if query_type == "bfloat16" else 1e-5
    np.testing.assert_allclose(
        got.to("float32").to("cpu").numpy(), want.to("cpu").numpy(), atol=close
    )


@pytest.mark.parametrize("recording", [False, True])  # the kernel, and the decomposition
def test_pages_of_int8_are_codes_times_the_scales_behind_them(device, recording):
    skip_unserved(device, "int8")
    query, keys, values, *numbers = ragged(np.random.default_rng(9), [20, 9, 40], [3, 9, 1])
    numbers[0] = np.maximum(numbers[0], 0)
    small, plain = [], []
    for pool in (np.nan_to_num(keys), np.nan_to_num(values)):
        scale = np.maximum(np.abs(pool).max(-1, keepdims=True) / 127, 1e-9).astype(np.float32)
        codes = np.round(pool / scale).astype(np.int8)
        small.append(to_tensor(np.concatenate([codes, scale.view(np.int8)], -1), device))
        plain.append(to_tensor(codes.astype(np.float32) * scale, device))
    table, lengths, offsets = (to_tensor(each, device) for each in numbers)
    given = to_tensor(query, device).requires_grad_(recording)
    got = tenon.paged_attention(given, *small, table, lengths, None, offsets)
    want = tenon.paged_attention(given, *plain, table, lengths, None, offsets)
    got, want = (each.detach().to("cpu").numpy() for each in (got, want))
    if device == "cpu" and not recording:  # the same products in the same order
        assert got.tobytes() == want.tobytes()
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_pages_of_int8_without_scales_are_refused():
    pages = tenon.zeros((3, 1, 2, 4), dtype=tenon.int8)
    numbers = [tenon.tensor([[0, 1], [1, 2]]), tenon.tensor([3, 2])]
    with pytest.raises(ValueError, match="4 more of int8, whose last bytes are a float32"):
        tenon.paged_attention(tenon.ones((2, 2, 4)), pages, pages, *numbers)


PAGES = tenon.zeros((3, 1, 2, 4))


@pytest.mark.parametrize("recording", [False, True])  # the kernel, and the decomposition
@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"block_table": [[0, 3], [1, 2]]}, IndexError, "blocks of block_table from 0 to 2, got 3"),
        ({"lengths": [5, 2]}, ValueError, "expected lengths from 0 to 4, got 5"),
        ({"offsets": [0, 1, 2]}, ValueError, "a last offset from 3 to 3, got 2"),
        ({"offsets": [0, 4, 3]}, ValueError, "expected (offsets|rows)"),
        ({"offsets": [0, 3]}, ValueError, r"expected integer offsets \[3\], one more than"),
        ({"lengths": [1, 1]}, ValueError, "expected lengths"),
        ({"window": 0}, ValueError, "expected a window of at least 1, got 0"),
        ({"softcap": 0.0}, ValueError, "expected a softcap above 0, got 0"),
    ],
)
def test_pages_that_are_refused(recording, change, error, message):
    given = {"block_table": [[0, 1], [1, 2]], "lengths": [3, 2], "offsets": [0, 2, 3], **change}
    given = {
        name: tenon.tensor(value, dtype="int32") if isinstance(value, list) else value
        for name, value in given.items()
    }
    query = tenon.ones((3, 2, 4)).requires_grad_(recording)
    with pytest.raises(error, match=message):
        tenon.paged_attention(query, PAGES, PAGES, **given)
