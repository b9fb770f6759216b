# SPDX-License-Identifier: Apache-2.0
"""Sequences of different length: packed, padded, and back, beside lists of arrays."""

import numpy as np
import pytest
import tenon
from tenon.nn.utils import rnn

T = tenon.tensor
rng = np.random.default_rng(0)
LENGTHS = [4, 3, 3, 1]
SEQUENCES = [rng.standard_normal((n, 2)) for n in LENGTHS]


def padded(sequences, value=0.0, length=None, side="right"):
    """[batch, length, features]"""
    length = length or max(map(len, sequences))
    made = np.full((len(sequences), length, 2), value)
    for row, each in zip(made, sequences):
        if side == "right":
            row[: len(each)] = each
        else:
            row[length - len(each) :] = each
    return made


def same(got, want):
    assert got.tolist() == np.asarray(want).tolist()


@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences_are_padded_on_either_side(batch_first):
    tensors = [T(each) for each in SEQUENCES]
    for value in (0.0, 7.0):
        for side in ("right", "left"):
            want = padded(SEQUENCES, value, side=side)
            got = rnn.pad_sequence(tensors, batch_first, value, side)
            same(got, want if batch_first else want.transpose(1, 0, 2))
    whole = rnn.pad_sequence(tensors, batch_first)
    for lengths in (LENGTHS, T(LENGTHS)):
        for one, each in zip(rnn.unpad_sequence(whole, lengths, batch_first), SEQUENCES):
            same(one, each)
    with pytest.raises(ValueError, match="expected padding_side 'left' or 'right', got 'both'"):
        rnn.pad_sequence(tensors, padding_side="both")


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_packing_and_back(batch_first, order):
    sequences = [SEQUENCES[i] for i in order]
    lengths = [LENGTHS[i] for i in order]
    is_sorted = order == sorted(order)
    given = padded(sequences)
    x = T(given if batch_first else given.transpose(1, 0, 2).copy())
    for counts in (lengths, T(lengths)):
        packed = rnn.pack_padded_sequence(x, counts, batch_first, enforce_sorted=is_sorted)
        assert packed.batch_sizes.tolist() == [4, 3, 3, 1]
        steps = [each[t] for t in range(4) for each in SEQUENCES if t < len(each)]
        same(packed.data, steps)
        assert (packed.sorted_indices is None) == is_sorted == (packed.unsorted_indices is None)
        for options, value, length in (
            ({}, 0.0, 4),
            ({"padding_value": 9.0, "total_length": 6}, 9.0, 6),
        ):
            back, counted = rnn.pad_packed_sequence(packed, batch_first, **options)
            want = padded(sequences, value, length)
            same(back, want if batch_first else want.transpose(1, 0, 2))
            assert counted.tolist() == lengths
        for one, each in zip(rnn.unpack_sequence(packed), sequences):
            same(one, each)
    again = rnn.pack_sequence([T(each) for each in sequences], is_sorted)
    same(again.data, packed.data.numpy())
    doubled = packed.to(tenon.float32)
    assert doubled.data.dtype == tenon.float32 and doubled.batch_sizes is packed.batch_sizes
    moved = packed.with_padded(packed.padded()[0] * 2)
    same(moved.data, packed.data.numpy() * 2)


def test_lengths_that_do_not_fit_are_refused():
    x = T(padded(SEQUENCES).transpose(1, 0, 2).copy())
    for lengths in ([4, 3, 3], [4, 3, 3, 0], [5, 3, 3, 1], []):
        with pytest.raises(
            ValueError, match="pack_padded_sequence: expected 4 lengths from 1 to 4, got"
        ):
            rnn.pack_padded_sequence(x, lengths)
    with pytest.raises(ValueError, match=r"expected lengths that fall, got \[1, 3, 3, 4\]; pass"):
        rnn.pack_padded_sequence(x, [1, 3, 3, 4])
    packed = rnn.pack_padded_sequence(x, LENGTHS)
    with pytest.raises(ValueError, match="pad_packed_sequence: expected total_length >= 4, got 3"):
        rnn.pad_packed_sequence(packed, total_length=3)
    assert rnn.pad_packed_sequence(packed, total_length=4)[0].shape == (4, 4, 2)
