# SPDX-License-Identifier: Apache-2.0
"""The decoder beside a dense one in NumPy, in chunks and among other sequences."""

import numpy
import pytest
import tenon
from tenon.llm import Decoder, DecoderConfig
from tenon.llm.models import Experts, LayerOptions, Rotary

ROTARY = Rotary(tuple(10000.0 ** (-2 * pair / 8) for pair in range(3)))  # 6 of 8 features


def config(**options):
    given = {
        "vocab_size": 31,
        "hidden_size": 24,
        "intermediate_size": 20,
        "layers": 2,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 8,
        "max_positions": 64,
        "layer_options": (LayerOptions(None, ROTARY), LayerOptions(5, ROTARY)),
        **options,
    }
    return DecoderConfig(**given)


def decoder(seed=0, **options):
    made = config(**options)
    numbers = numpy.random.default_rng(seed)
    return Decoder(
        made,
        {
            name: tenon.from_numpy(numbers.normal(0, 0.3, shape).astype(numpy.float32))
            for name, shape in made.weight_shapes().items()
        },
    )


def int32(values):
    return tenon.tensor(values, dtype=tenon.int32)


def step(model, pools, parts, picks=None):
    """`parts`: tokens, first position and blocks of each sequence."""
    tokens, positions, slots, offsets = [], [], [], [0]
    for ids, first, blocks in parts:
        indices = range(first, first + len(ids))
        tokens += ids
        positions += indices
        slots += [blocks[place // 16] * 16 + place % 16 for place in indices]
        offsets.append(len(tokens))
    lengths = [first + len(ids) for ids, first, _ in parts]
    picks = range(len(tokens)) if picks is None else picks
    numbers = [tokens, positions, slots, offsets, [blocks for *_, blocks in parts], lengths, picks]
    return model(*(int32(list(each)) for each in numbers), pools).numpy()


def dense(model, ids):
    """Logits of all rows by the definitions, in float64."""
    c, w = (
        model.config,
        {name: t.numpy().astype(numpy.float64) for name, t in model.weights.items()},
    )

    def norm(x, name):
        return x / numpy.sqrt((x**2).mean(-1, keepdims=True) + c.norm_eps) * w[f"{name}.weight"]

    def turned(x):
        angles = numpy.arange(len(ids))[:, None, None] * numpy.array(ROTARY.frequencies)
        first, second, rest = x[..., :3], x[..., 3:6], x[..., 6:]
        cos, sin = numpy.cos(angles), numpy.sin(angles)
        return numpy.concatenate([first * cos - second * sin, second * cos + first * sin, rest], -1)

    x = w["embedding.weight"][ids]
    for layer, options in enumerate(c.layer_options):
        at = f"layers.{layer}"
        y = norm(x, f"{at}.attention_norm")
        q, k, v = (
            (y @ w[f"{at}.{name}.weight"].T).reshape(len(ids), -1, c.head_dim)
            for name in ("query", "key", "value")
        )
        k, v = (each.repeat(c.heads // c.kv_heads, 1) for each in (turned(k), v))
        scores = numpy.einsum("qhd,khd->hqk", turned(q), k) / c.head_dim**0.5
        if c.attention_softcap:
            scores = c.attention_softcap * numpy.tanh(scores / c.attention_softcap)
        behind = numpy.arange(len(ids))[:, None] - numpy.arange(len(ids))
        seen = (behind >= 0) & (behind < (options.window or len(ids)))
        weights = numpy.exp(numpy.where(seen, scores, -numpy.inf))
        weights /= weights.sum(-1, keepdims=True)
        out = numpy.einsum("hqk,khd->qhd", weights, v).reshape(len(ids), -1)
        x = x + out @ w[f"{at}.output.weight"].T
        y = norm(x, f"{at}.mlp_norm")
        gate, up = (y @ w[f"{at}.mlp.{name}.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + numpy.exp(-gate)) * up) @ w[f"{at}.mlp.down.weight"].T
    return norm(x, "final_norm") @ w["head.weight"].T


IDS = numpy.random.default_rng(1).integers(0, 31, 37).tolist()


@pytest.mark.parametrize("cap", [None, 2.0])
@pytest.mark.parametrize("chunk", [37, 16, 5, 1])
def test_chunks_equal_the_definition(chunk, cap):
    model = decoder(attention_softcap=cap)
    pools = model.new_pools(6)
    found = [step(model, pools, [(IDS[i : i + chunk], i, [4, 1, 3])]) for i in range(0, 37, chunk)]
    assert numpy.abs(numpy.concatenate(found) - dense(model, IDS)).max() < 2e-5


def test_neighbours_in_a_ragged_batch_do_not_matter():
    model = decoder()
    pools = model.new_pools(8)
    step(model, pools, [(IDS[:20], 0, [4, 1])])
    # One token of the first sequence beside the prompt of another.
    found = step(model, pools, [([IDS[20]], 20, [4, 1]), (IDS[5:15], 0, [7, 2])])
    assert numpy.abs(found[0] - dense(model, IDS[:21])[-1]).max() < 2e-5
    assert numpy.abs(found[1:] - dense(model, IDS[5:15])).max() < 2e-5


def test_only_picked_rows_have_logits_and_slot_minus_one_is_not_written():
    model = decoder()
    pools = model.new_pools(2)
    assert step(model, pools, [(IDS[:4], 0, [1])], picks=[3, 1]).shape == (2, 31)
    before = [kept.numpy().copy() for kept in pools[0]]
    numbers = ([IDS[4]], [4], [-1], [0, 1], [[1]], [4], [0])
    model(*map(int32, numbers), pools)
    assert all((kept.numpy() == old).all() for kept, old in zip(pools[0], before))


def test_experts_take_their_tokens():
    model = decoder(experts=Experts(3, 2, 12, normalize=False, shared_size=16))
    pools = model.new_pools(3)
    whole = step(model, pools, [(IDS[:9], 0, [0])])
    rows = [step(model, pools, [([token], i, [1])])[0] for i, token in enumerate(IDS[:9])]
    assert numpy.abs(whole - numpy.stack(rows)).max() < 2e-5


@pytest.mark.parametrize(
    "place, value, message",
    [
        (0, [31, 0], "tokens: expected numbers from 0 to 30, got 31 at 0"),
        (1, [0, 64], "positions: expected numbers from 0 to 63, got 64 at 1"),
        (2, [0, 32], "slots: expected numbers from -1 to 31, got 32 at 1"),
        (2, [0], "expected 2 positions and slots"),
        (3, [0, 1], r"offsets that rise from 0 to the 2 rows, got \[0, 1\]"),
        (4, [[2]], "sequence 0: blocks: expected numbers from 0 to 1, got 2"),
        (5, [17], "sequence 0: expected a length from its 2 rows to the 16 slots"),
        (5, [1], "sequence 0: expected a length from its 2 rows"),
        (6, [2], "picks: expected numbers from 0 to 1, got 2"),
    ],
)
def test_numbers_out_of_range_are_named(place, value, message):
    model = decoder()
    numbers = [[1, 2], [0, 1], [0, 1], [0, 2], [[0]], [2], [1]]
    numbers[place] = value
    with pytest.raises(ValueError, match=message):
        model(*map(int32, numbers), model.new_pools(2))


def test_pools_that_are_refused():
    with pytest.raises(
        ValueError,
        match="expected keys and values of float32, bfloat16, float16, int8, got float8_e4m3",
    ):
        decoder().new_pools(2, dtype="float8_e4m3")
    with pytest.raises(ValueError, match="of int8 need a head_dim that is a multiple of 4, got 6"):
        decoder(head_dim=6).new_pools(2, dtype="int8")


def test_weights_must_be_those_of_the_config():
    model = decoder()
    weights = dict(model.weights)
    del weights["layers.1.key.weight"]
    with pytest.raises(
        ValueError, match=r"a weight 'layers.1.key.weight' of shape \(16, 24\), got none"
    ):
        Decoder(model.config, weights)
    with pytest.raises(ValueError, match="no part of the model takes the weights 'extra'"):
        Decoder(model.config, {**model.weights, "extra": tenon.ones([1])})
    with pytest.raises(ValueError, match=r"'head.weight': expected shape \(31, 24\), got \(1,\)"):
        Decoder(model.config, {**model.weights, "head.weight": tenon.ones([1])})
