# SPDX-License-Identifier: Apache-2.0
"""Conditional random fields beside all sequences, beams beside a search of everything, and features of sequences beside loops."""

import itertools
import math

import numpy as np
import pytest
import tenon


def _score(emission, transition, tags):
    total = transition[0][tags[0]] + transition[1][tags[-1]]
    total += sum(emission[t][tag] for t, tag in enumerate(tags))
    return total + sum(transition[2 + a][b] for a, b in itertools.pairwise(tags))


@pytest.fixture
def field():
    generator = np.random.default_rng(0)
    return (
        generator.standard_normal((3, 4, 3)),
        generator.standard_normal((5, 3)),
        np.array([4, 1, 2]),
    )


def test_a_chain_is_beside_the_sum_over_all_tags(field):
    emission, transition, lengths = field
    target = np.random.default_rng(1).integers(0, 3, (3, 4))
    loss = tenon.linear_chain_crf(
        *(tenon.tensor(x) for x in (emission, transition, target, lengths))
    )
    for n, length in enumerate(lengths):
        scores = [
            _score(emission[n], transition, each)
            for each in itertools.product(range(3), repeat=length)
        ]
        right = _score(emission[n], transition, target[n][:length])
        assert loss[n].item() == pytest.approx(
            math.log(sum(map(math.exp, scores))) - right, rel=1e-10
        )


def test_decoding_finds_the_best_of_all_tags(field):
    emission, transition, lengths = field
    path = tenon.crf_decoding(*(tenon.tensor(x) for x in (emission, transition, lengths)))
    for n, length in enumerate(lengths):
        every = itertools.product(range(3), repeat=length)
        best = max(every, key=lambda tags: _score(emission[n], transition, tags))
        assert path[n].tolist() == [*best, *[0] * (4 - length)]
    right = tenon.crf_decoding(*(tenon.tensor(x) for x in (emission, transition, lengths)), path)
    assert right.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]]


def test_what_tags_of_a_chain_must_be():
    emission, transition = tenon.zeros([1, 2, 3]), tenon.zeros([5, 3])
    lengths = tenon.tensor([2])
    with pytest.raises(
        ValueError, match=r"expected emission \[N, T, tags\] and transition \[tags \+ 2, tags\]"
    ):
        tenon.crf_decoding(emission, tenon.zeros([4, 3]), lengths)
    with pytest.raises(ValueError, match="expected lengths from 1 to 2, got 3"):
        tenon.crf_decoding(emission, transition, tenon.tensor([3]))
    with pytest.raises(IndexError, match="expected tags from 0 to 2, got 3"):
        tenon.linear_chain_crf(emission, transition, tenon.tensor([[0, 3]]), lengths)


class _Chain:
    """A cell whose next word depends on the last one alone."""

    def __init__(self, table):
        self.table = tenon.tensor(table)

    def __call__(self, words, state):
        return tenon.index_select(self.table, words, 0), state


def test_beams_are_beside_a_search_of_everything():
    generator = np.random.default_rng(3)
    words, end, steps = 4, 3, 3
    table = generator.standard_normal((words, words))
    log_p = table - np.log(np.exp(table).sum(1, keepdims=True))

    def sequences(before=(), last=0, score=0.0):
        if len(before) == steps or (before and last == end):
            yield score, before
            return
        for word in range(words):
            yield from sequences((*before, word), word, score + log_p[last][word])

    # With as many beams as there are sequences of two words nothing is lost.
    decoder = tenon.nn.BeamSearchDecoder(_Chain(table), start_token=0, end_token=end, beam_size=16)
    ids, state, lengths = tenon.nn.dynamic_decode(
        decoder, tenon.zeros([2, 1], dtype=tenon.float64), max_step_num=steps, return_length=True
    )
    wanted = sorted(sequences(), reverse=True)[:5]
    for batch in range(2):
        for beam, (score, sequence) in enumerate(wanted):
            assert state.scores[batch, beam].item() == pytest.approx(score, rel=1e-9)
            assert lengths[batch, beam].item() == len(sequence)
            assert ids[batch, : len(sequence), beam].tolist() == list(sequence)


def test_beams_of_a_recurrent_cell_and_the_order_of_axes():
    tenon.manual_seed(0)
    cell, embedding, out = tenon.nn.GRUCell(4, 4), tenon.nn.Embedding(5, 4), tenon.nn.Linear(4, 5)
    decoder = tenon.nn.BeamSearchDecoder(cell, 0, 1, 3, embedding_fn=embedding, output_fn=out)
    first = tenon.randn([2, 4])
    ids, _ = tenon.nn.dynamic_decode(decoder, first, max_step_num=6)
    by_time, _ = tenon.nn.dynamic_decode(decoder, first, max_step_num=6, output_time_major=True)
    assert ids.shape[0] == 2 and ids.shape[2] == 3 and ids.shape[1] <= 6
    assert by_time.transpose(0, 1).tolist() == ids.tolist()
    # The first step of the best beam is the best word where one beam is followed.
    greedy = tenon.nn.BeamSearchDecoder(cell, 0, 1, 1, embedding_fn=embedding, output_fn=out)
    alone, _ = tenon.nn.dynamic_decode(greedy, first, max_step_num=1)
    words = tenon.zeros([2], dtype=tenon.int64)
    assert alone[:, 0, 0].tolist() == tenon.argmax(out(cell(embedding(words), first)), 1).tolist()


def test_beams_of_a_dtype_without_infinities():
    probs = tenon.tensor([[[-1.0, -2.0, -3.0], [-0.5, -4.0, -1.0]]], dtype="float8_e4m3")
    scores, words = tenon.tensor([[-1.0, -1.5]], dtype="float8_e4m3"), tenon.tensor([[2, 0]])
    best, after, parents = tenon.beam_search_step(probs, scores, words, 3, 2)
    assert best.astype("float32").tolist() == [[-1.0, -2.0, -2.5]]
    assert after.tolist() == [[2, 0, 2]] and parents.tolist() == [[0, 1, 1]]


def test_a_step_of_beams_says_what_it_wants():
    with pytest.raises(
        ValueError, match="expected beams from 1 to 4 and end from 0 to 1, got 5 and 0"
    ):
        tenon.beam_search_step(
            tenon.zeros([1, 2, 2]),
            tenon.zeros([1, 2]),
            tenon.zeros([1, 2], dtype=tenon.int64),
            5,
            0,
        )


def test_a_decoder_of_ones_own_keeps_what_has_ended():
    class Counter:
        def initialize(self, inits):
            return None, inits, tenon.tensor([False, False])

        def step(self, time, inputs, states):
            return states, states + 1, None, states >= tenon.tensor([1, 3])

        def finalize(self, outputs, states, lengths):
            return outputs, states

    out, state, lengths = tenon.nn.dynamic_decode(
        Counter(), tenon.tensor([0, 0]), impute_finished=True, return_length=True
    )
    assert lengths.tolist() == [2, 4] and state.tolist() == [2, 4]
    assert out.shape[:2] == (2, 4) or list(out.shape[:2]) == [2, 4]


def test_rows_around_a_row():
    generator = np.random.default_rng(4)
    x, weight = generator.standard_normal((2, 4, 3)), generator.standard_normal((9, 2))
    lengths = [4, 2]
    out = tenon.sequence_conv(
        tenon.tensor(x), tenon.tensor(lengths), tenon.tensor(weight), 3, -1
    ).numpy()
    for n, length in enumerate(lengths):
        for t in range(4):
            window = [x[n, i] if 0 <= i < length else np.zeros(3) for i in range(t - 1, t + 2)]
            wanted = np.concatenate(window) @ weight if t < length else np.zeros(2)
            np.testing.assert_allclose(out[n, t], wanted, rtol=1e-10, atol=1e-12)
    # Without features, weight says nothing about length.
    with pytest.raises(ValueError, match="with D of at least 1 and weight"):
        tenon.sequence_conv(tenon.ones([1, 4, 0]), tenon.tensor([4]), tenon.ones([0, 2]), 2000, -1)


def test_positions_and_pairs_of_rows():
    x = np.random.default_rng(5).standard_normal((2, 3, 6))
    wanted = 0.5 * x
    for t in range(3):
        for k in range(3):
            angle = t / 10000 ** (k / 2)
            wanted[:, t, k] += 2 * math.sin(angle)
            wanted[:, t, 3 + k] += 2 * math.cos(angle)
    out = tenon.add_position_encoding(tenon.tensor(x), 0.5, 2.0)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-10)
    with pytest.raises(ValueError, match="with an even D"):
        tenon.add_position_encoding(tenon.zeros([1, 2, 3]))
    y, weight = np.random.default_rng(6).standard_normal((2, 5, 2)), np.ones((6, 4, 2))
    pairs = tenon.match_matrix_tensor(tenon.tensor(x), tenon.tensor(y), tenon.tensor(weight))
    np.testing.assert_allclose(
        pairs.numpy(), np.einsum("nld,dce,nre->nclr", x, weight, y), rtol=1e-10
    )


def test_beams_that_have_ended_cannot_be_kept():
    decoder = tenon.nn.BeamSearchDecoder(_Chain(np.zeros((3, 3))), 0, 1, 2)
    with pytest.raises(NotImplementedError, match="expected impute_finished=False with beams"):
        tenon.nn.dynamic_decode(
            decoder, tenon.zeros([1, 1], dtype=tenon.float64), max_step_num=2, impute_finished=True
        )
