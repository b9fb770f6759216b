# SPDX-License-Identifier: Apache-2.0
"""Operators of recommenders and of sequences beside PaddlePaddle's, where it is installed, and what they refuse."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tenon


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


# The folder of tests is a package "paddle", too.
needs_paddle = pytest.mark.skipif(not is_there("paddle.nn"), reason="PaddlePaddle is not installed")
RNG = np.random.default_rng(4)
T = tenon.tensor


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


WORDS = RNG.integers(-(2**31), 2**31, (3, 11))
X, W, B = normal(4, 3), normal(6, 3), normal(6)
LABELS = [[1, 4], [0, 0], [5, 2], [3, 3]]
CHANCES = np.array([0.05, 0.3, 0.1, 0.25, 0.2, 0.1], np.float32)
FACTORS = np.array([0.5, 2.0, 1.0, 3.0], np.float32)
LENGTHS = [2, 0, 3, 1]
ROWS = normal(6, 2)
# Two sequences of two beams; the second beam of the first one has ended.
LAST = [[5], [3], [7], [2]]
SCORES = [[-1.0], [-1.2], [-0.3], [-2.0]]
OFFERED = [[4, 2, 5], [1, 3, 2], [0, 3, 6], [2, 4, 1]]
OFFERS = [[-1.5, -1.3, -2.0], [-1.6, -1.3, -4.0], [-0.9, -0.8, -5.0], [-2.2, -2.5, -2.1]]
BEAMS = [[2, 2], [1, 1, 1, 1]]


# PaddlePaddle gives hashes in the dtype of what is hashed.
MODULUS = {"int32": 10**9 + 7, "int64": 10**12 + 7}


def hash_call(dtype, columns):
    inputs = {"X": [WORDS[:, :columns].tolist(), dtype, None]}
    return ["hash", inputs, {"Out": "int64"}, {"num_hash": 3, "mod_by": MODULUS[dtype]}]


def nce_call(given, sampler):
    inputs = {
        "Input": [X.tolist(), "float32", None],
        "Label": [LABELS, "int64", None],
        "Weight": [W.tolist(), "float32", None],
        "Bias": [B[:, None].tolist(), "float32", None],
        **given,
    }
    outputs = {"Cost": "float32", "SampleLogits": "float32", "SampleLabels": "int64"}
    attributes = {"num_total_classes": 6, "num_neg_samples": 5, "sampler": sampler, "seed": 3}
    return ["nce", inputs, outputs, {**attributes, "is_sparse": False, "is_test": False}]


def beam_call(scores, accumulated):
    inputs = {
        "pre_ids": [LAST, "int64", BEAMS],
        "pre_scores": [SCORES, "float32", BEAMS],
        "ids": [OFFERED, "int64", BEAMS],
        "scores": [scores, "float32", BEAMS],
    }
    outputs = {"selected_ids": "int64", "selected_scores": "float32", "parent_idx": "int32"}
    return [
        "beam_search",
        inputs,
        outputs,
        {"level": 0, "beam_size": 2, "end_id": 3, "is_accumulated": accumulated},
    ]


CALLS = {
    **{
        f"hash {dtype} {n}": hash_call(dtype, n)
        for dtype in ("int32", "int64")
        for n in (1, 2, 3, 5, 9, 11)
    },
    "nce": nce_call({}, 0),
    "nce weighted": nce_call({"SampleWeight": [FACTORS[:, None].tolist(), "float32", None]}, 0),
    "nce log uniform": nce_call({}, 1),
    "beams": beam_call(OFFERS, True),
    "beams of probabilities": beam_call(np.exp(OFFERS).tolist(), False),
    **{
        f"pool {reduce}": [
            "sequence_pool",
            {"X": [ROWS.tolist(), "float32", [LENGTHS]]},
            {"Out": "float32", "MaxIndex": "int32"},
            {"pooltype": reduce, "pad_value": -7.0, "is_test": True},
        ]
        for reduce in ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")
    },
}


@pytest.fixture(scope="module")
def told():
    """What PaddlePaddle answers to the calls."""
    program = pathlib.Path(__file__).with_name("paddle_programs.py")
    done = subprocess.run(
        [sys.executable, program],
        input=json.dumps([*CALLS.values()]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(CALLS, json.loads(done.stdout[done.stdout.index("[[") :]), strict=True))


@needs_paddle
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 9, 11])
def test_hashes(told, dtype, columns):
    mine = tenon.hash(T(WORDS[:, :columns].astype(dtype)), 3, MODULUS[dtype])
    assert mine.tolist() == told[f"hash {dtype} {columns}"][0]


@needs_paddle
@pytest.mark.parametrize("case", ["nce", "nce weighted", "nce log uniform"])
def test_noise_contrastive_losses(told, case):
    cost, _, sampled = told[case]
    negatives = np.array(sampled)[:, 2:]
    assert np.array(sampled)[:, :2].tolist() == LABELS
    # PaddlePaddle draws from all classes but the last one where they are sorted by how frequent they are.
    log_uniform = T(np.log1p(1 / np.arange(1.0, 7)).astype(np.float32) / np.log(6))
    chances = log_uniform if "uniform" in case else None
    factors = T(FACTORS) if "weighted" in case else None
    mine = tenon.nce(T(X), T(LABELS), T(W), T(B), chances, factors, T(negatives))
    np.testing.assert_allclose(mine.numpy(), cost, rtol=2e-5)


@needs_paddle
@pytest.mark.parametrize("case", ["beams", "beams of probabilities"])
def test_beams(told, case):
    scores = np.exp(OFFERS) if "probabilities" in case else np.array(OFFERS)
    new, words, parents = tenon.beam_search(
        T(LAST).reshape(2, 2),
        T(SCORES).reshape(2, 2),
        T(OFFERED).reshape(2, 2, 3),
        T(scores.astype(np.float32)).reshape(2, 2, 3),
        2,
        3,
        "probabilities" not in case,
    )
    # Paddle orders the chosen by the beam that they continue, and counts beams over all sequences.
    ids, totals, origin = (np.array(x).reshape(-1) for x in told[case])
    theirs = sorted(zip(origin.tolist(), ids.tolist(), totals.tolist(), strict=True))
    flat = (parents + T([[0], [2]])).reshape(-1).tolist()
    mine = sorted(zip(flat, words.reshape(-1).tolist(), new.reshape(-1).tolist(), strict=True))
    assert [each[:2] for each in mine] == [each[:2] for each in theirs]
    np.testing.assert_allclose([m[2] for m in mine], [t[2] for t in theirs], rtol=1e-5)


@needs_paddle
@pytest.mark.parametrize("reduce", ["AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST"])
def test_pools_of_sequences(told, reduce):
    mine = tenon.sequence_pool(
        T(ROWS), T(LENGTHS), {"AVERAGE": "mean"}.get(reduce, reduce.lower()), -7.0
    )
    np.testing.assert_allclose(mine.numpy(), told[f"pool {reduce}"][0], rtol=1e-6)


@pytest.mark.parametrize("sampler", ["uniform", "log_uniform", "custom_dist"])
def test_negative_classes_follow_their_distribution(sampler):
    """The mean loss of zeros over many draws says how probable the drawn classes were."""
    tenon.manual_seed(0)
    chances = [0.7, 0.1, 0.1, 0.1]
    layer = tenon.nn.NCELoss(2, 4, 2000, sampler, chances if sampler == "custom_dist" else None)
    with tenon.no_grad():
        layer.weight.copy_(T([[3.0, 0], [0, 0], [0, 0], [0, 0]]))
    x = tenon.ones([8, 2])
    loss = layer(x, tenon.zeros([8, 1], dtype=tenon.int64)).mean().item()
    whole = np.log(5)
    p = {
        "uniform": np.full(4, 0.25),
        "log_uniform": np.log([2, 3 / 2, 4 / 3, 5 / 4]) / whole,
        "custom_dist": np.array(chances),
    }[sampler]
    s, b = 1 / (1 + np.exp(-np.array([3.0, 0, 0, 0]))), p * 2000
    wanted = -np.log(s[0] / (s[0] + b[0])) - 2000 * (p * np.log(b / (s + b))).sum()
    assert loss == pytest.approx(wanted, rel=5e-3)
    loss = layer(x.requires_grad_(), tenon.zeros([8, 1], dtype=tenon.int64)).sum()
    loss.backward()
    assert all(each.grad is not None for each in (layer.weight, layer.bias, x))


def test_norms_by_sums_over_all_data():
    layer = tenon.nn.DataNorm(4, slot_dim=2, batch_size=10.0, batch_square_sum=5.0)
    x = np.array([[1.0, 2, 0, 3], [4, 1, 2, -1], [2, 2, 1, 5]], np.float32)
    out = layer(T(x))
    wanted = x * np.sqrt(10 / 5)
    wanted[0, 2:] = 0
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-6)
    counts = np.array([3, 3, 2, 2])
    np.testing.assert_allclose(layer.batch_size.numpy(), 10 + counts, rtol=1e-6)
    seen = x.copy()
    seen[0, 2:] = 0
    np.testing.assert_allclose(layer.batch_sum.numpy(), seen.sum(0), rtol=1e-6)
    squares = 5 + (seen**2).sum(0) + counts * 1e-5
    np.testing.assert_allclose(layer.batch_square_sum.numpy(), squares, rtol=1e-6)
    layer.eval()
    before = layer.batch_sum.tolist()
    second = layer(T(x)).numpy()
    mean = seen.sum(0) / (10 + counts)
    np.testing.assert_allclose(
        second[1], ((x - mean) * np.sqrt((10 + counts) / squares))[1], rtol=1e-5
    )
    assert layer.batch_sum.tolist() == before
    assert tenon.nn.DataNorm(3, enable_scale_and_shift=True).weight.tolist() == [1.0] * 3


def test_sums_of_float16_features_are_those_of_the_statistics():
    layer = tenon.nn.DataNorm(1, batch_size=1.0, batch_square_sum=1.0, summary_decay_rate=1.0)
    layer(tenon.ones(70000, 1, dtype="float16"))
    assert layer.batch_size.tolist() == [70001.0] and layer.batch_sum.tolist() == [70000.0]


def test_shows_that_are_nan_do_not_become_zeros():
    ones = tenon.ones(2)
    out = tenon.data_norm(
        tenon.tensor([[float("nan"), 1.0]]), ones, ones, ones, None, None, slot_dim=2
    )[0]
    assert out.isnan().tolist() == [[True, False]]


def test_a_class_without_noise_is_certain():
    """The sigmoid of -200 is 0 in float32, and so was its sum with a noise of 0."""
    x, target = tenon.tensor([[-200.0]]), tenon.tensor([[0]])
    assert tenon.nce(x, target, tenon.ones(2, 1), count=0).tolist() == [[0.0]]


def test_negative_classes_of_a_generator():
    x, target = tenon.ones(3, 2), tenon.zeros(3, 1, dtype="int64")
    layer = tenon.nn.NCELoss(2, 1000, generator=tenon.Generator(seed=5))
    outside = tenon.random.get_state("cpu")
    first = layer(x, target).tolist()
    assert tenon.random.get_state("cpu") == outside
    layer.generator.manual_seed(5)
    assert layer(x, target).tolist() == first


def test_a_mixed_batch_of_features():
    x = T([[1, 2], [3, 4], [5, 6]])
    tags, lengths = T([3, 1, 2, 2]), T([1, 1, 2])
    rows, weight, index = tenon.filter_by_instag(x, tags, lengths, T([2, 3]))
    assert rows.tolist() == [[1, 2], [5, 6]] and index.tolist() == [0, 2]
    assert weight.dtype == tenon.float32 and weight.tolist() == [[1.0], [1.0]]
    rows, weight, index = tenon.filter_by_instag(x, tags, lengths, T([9]), -5)
    assert (rows.tolist(), weight.tolist(), index.tolist()) == ([[-5, -5]], [[0.0]], [-1])


def test_rows_in_random_order_keep_their_gradients():
    tenon.manual_seed(1)
    x = tenon.arange(12.0).reshape(2, 3, 2).requires_grad_()
    out, index = tenon.shuffle_batch(x)
    assert sorted(index.tolist()) == list(range(6)) and index.tolist() != list(range(6))
    assert out.reshape(6, 2).tolist() == x.reshape(6, 2)[index].tolist()
    (out.reshape(6, 2) * tenon.arange(6.0).unsqueeze(1)).sum().backward()
    assert x.grad.reshape(6, 2)[index][:, 0].tolist() == list(range(6))


REFUSED = {
    "sum of lengths": (
        lambda: tenon.sequence_pool(tenon.ones([4, 2]), T([1, 2])),
        "lengths whose sum is the number of rows, from 4 to 4, got 3",
    ),
    "no lengths": (
        lambda: tenon.sequence_pool(tenon.ones([4, 2]), T([], dtype="int64")),
        "expected lengths of 4 rows, got no lengths",
    ),
    "kind of pool": (
        lambda: tenon.sequence_pool(tenon.ones([1]), T([1]), "median"),
        "expected reduce 'sum', 'mean', .* got 'median'",
    ),
    "mean of integers": (
        lambda: tenon.sequence_pool(T([1]), T([1]), "mean"),
        "expected a floating x for reduce 'mean', got int64",
    ),
    "blank": (
        lambda: tenon.ctc_greedy_decode(tenon.ones([1, 2, 3]), blank=3),
        "expected a blank from 0 to 2, got 3",
    ),
    "beams": (
        lambda: tenon.beam_search(T([[1]]), T([[0.0]]), None, tenon.ones([1, 1, 3]), 4, 0),
        "expected beams from 1 to 3, got 4",
    ),
    "candidates": (
        lambda: tenon.beam_search(T([[1]]), T([[0.0]]), T([[[1]]]), tenon.ones([1, 1, 3]), 1, 0),
        r"candidates and candidate_scores \[N, beams, K\], got shapes",
    ),
    "steps": (
        lambda: tenon.beam_search_decode(T([[[1]]]), tenon.ones([1, 2, 1]), T([[[0]]]), 0),
        r"expected words, scores and parents \[T, N, beams\], got shapes",
    ),
    "slots": (
        lambda: tenon.batch_fc(tenon.ones([2, 1, 3]), tenon.ones([1, 3, 2]), tenon.ones([2, 2])),
        r"\[slots, inputs, outputs\] and bias \[slots, outputs\], got shapes",
    ),
    "classes": (
        lambda: tenon.nce(tenon.ones([1, 2]), T([[4]]), tenon.ones([4, 2])),
        "expected classes from 0 to 3, got 4",
    ),
    "negatives and a count": (
        lambda: tenon.nce(
            tenon.ones([1, 2]), T([[0]]), tenon.ones([4, 2]), negatives=T([[1]]), count=2
        ),
        r"a count of at least 0 or negatives, got 4 classes, 2 and negatives \(1, 1\)",
    ),
    "tags": (
        lambda: tenon.filter_by_instag(tenon.ones([2]), T([1, 2]), T([1, 2]), T([1])),
        "tag_lengths whose sum is the number of tags, from 2 to 2, got 3",
    ),
    "slot_dim": (
        lambda: tenon.data_norm(tenon.ones([2, 3]), *[tenon.ones([3])] * 3, slot_dim=2),
        "expected a slot_dim that divides the 3 columns, got 2",
    ),
    "sums": (
        lambda: tenon.data_norm(tenon.ones([2, 3]), *[tenon.ones([1])] * 3),
        r"expected batch_size of shape \[3\], got shape \(1,\)",
    ),
    "positions": (
        lambda: tenon.fused_embedding_seq_pool(tenon.ones([2, 3]), T([0, 1]), T([1])),
        "lengths whose sum is the number of positions, from 2 to 2, got 1",
    ),
    "modulus": (
        lambda: tenon.hash(T([[1]]), 1, 0),
        "num_hash of at least 1 and mod_by from 1 to 2\\^62, got",
    ),
    "scores that are integers": (
        lambda: tenon.beam_search(T([[5, 1]]), T([[-1, -3]]), None, T([[[-4], [-5]]]), 2, 1),
        "expected floating scores and candidate_scores, got int64 and int64",
    ),
    "sampler": (
        lambda: tenon.nn.NCELoss(2, 3, sampler="alias"),
        "expected sampler 'uniform', 'log_uniform' or 'custom_dist', got 'alias'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call, text = REFUSED[case]
    with pytest.raises((ValueError, TypeError, IndexError), match=text):
        call()
