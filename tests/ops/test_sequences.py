# SPDX-License-Identifier: Apache-2.0
"""Losses over alignments, decoding and padding: long sequences, empty ones, and what is refused."""

import numpy as np
import pytest
import tenon
from running import to_tensor

INF = float("inf")


def ctc(device, log_probs, targets, inputs, lengths, **options):
    args = (np.asarray(a) for a in (log_probs, targets, inputs, lengths))
    return tenon.ctc_loss(*(to_tensor(a, device) for a in args), **options)


def test_ctc_of_a_long_sequence_does_not_underflow():
    """The probability of all alignments is about exp(-1000)."""
    log_probs = np.full((400, 1, 10), np.log(0.1), np.float32)
    loss = ctc("cpu", log_probs, [[1, 2, 3, 4]], [400], [4]).item()
    # The number of alignments is only estimated; an underflow would give infinity.
    assert loss == pytest.approx(400 * np.log(10) - np.log(1.4e17), rel=0.02)


def test_ctc_without_steps_labels_or_sequences(device):
    empty = ctc(device, np.zeros((0, 2, 3)), [[1], [1]], [0, 0], [0, 1])
    assert empty.tolist() == [0.0, INF]
    none = ctc(
        device, np.zeros((4, 0, 3)), np.zeros((0, 2), int), np.zeros(0, int), np.zeros(0, int)
    )
    assert none.shape == (0,)
    blanks = ctc(device, np.full((3, 1, 2), -1.0), np.zeros((1, 0), int), [3], [0])
    assert blanks.tolist() == [3.0]


def test_ctc_has_no_gradient_without_an_alignment(device):
    x = tenon.tensor(np.zeros((2, 1, 3)), device=device, requires_grad=True)
    for zero_infinity in (False, True):
        loss = tenon.ctc_loss(
            x,
            *(tenon.tensor(a, device=device) for a in ([[1, 1]], [2], [2])),
            zero_infinity=zero_infinity,
        )
        assert loss.tolist() == [0.0 if zero_infinity else INF]
        (grad,) = tenon.grad(loss.sum(), [x])
        assert grad.tolist() == np.zeros((2, 1, 3)).tolist()


def test_labels_behind_the_length_do_not_count(device):
    log_probs = np.random.default_rng(0).standard_normal((5, 1, 4))
    want = ctc(device, log_probs, [[1, 2, 0]], [5], [2])
    assert ctc(device, log_probs, [[1, 2, -7]], [5], [2]).tolist() == want.tolist()


def test_padding_and_back(device):
    x = to_tensor(np.arange(12.0).reshape(6, 2), device)
    lengths = to_tensor(np.array([2, 0, 4]), device)
    padded = tenon.sequence_pad(x, lengths, value=-1)
    assert padded.shape == (3, 4, 2)
    assert padded[1].tolist() == [[-1.0, -1.0]] * 4
    assert tenon.sequence_unpad(padded, lengths).tolist() == x.tolist()
    twice = tenon.sequence_reverse(tenon.sequence_reverse(padded, lengths), lengths)
    assert twice.tolist() == padded.tolist()


def test_no_sequences_at_all(device):
    none = to_tensor(np.zeros(0, np.int64), device)
    x = to_tensor(np.zeros((0, 2)), device)
    assert tenon.sequence_pad(x, none).shape == (0, 0, 2)
    rows = to_tensor(np.zeros((0, 3, 2)), device)
    assert tenon.sequence_unpad(rows, none).shape == (0, 2)
    assert tenon.sequence_reverse(rows, none).shape == (0, 3, 2)
    labels = to_tensor(np.zeros((0, 3), np.int64), device)
    assert tenon.edit_distance(labels, labels, none, none).shape == (0,)
    aligned, count = tenon.ctc_align(to_tensor(np.zeros((2, 0), np.int64), device))
    assert aligned.shape == (2, 0) and count.tolist() == [0, 0]


def test_top_p_keeps_to_the_likeliest(device):
    tenon.manual_seed(0)
    rows = to_tensor(np.tile([[0.1, 0.5, 0.15, 0.25]], (200, 1)), device)
    limits = to_tensor(np.full(200, 0.6), device)
    values, indices = tenon.top_p_sampling(rows, limits)
    assert set(indices.tolist()) == {1, 3}
    assert set(values.tolist()) == {0.5, 0.25}
    share = np.mean(np.array(indices.tolist()) == 1)
    assert 0.5 < share < 0.83  # 2/3 within five standard deviations
    _, one = tenon.top_p_sampling(rows, to_tensor(np.zeros(200), device))
    assert set(one.tolist()) == {1}


PROBS, LABELS = tenon.zeros((4, 1, 3)), tenon.tensor([[1, 2]])
ONE, TWO = tenon.tensor([1]), tenon.tensor([2])
REFUSED = {
    "ctc of a matrix": (
        lambda: tenon.ctc_loss(tenon.zeros((4, 3)), LABELS, ONE, ONE),
        r"\[ctc_loss\] expected log_probs to have 3 axes, \[T, N, C\]",
    ),
    "ctc of other batches": (
        lambda: tenon.ctc_loss(PROBS, LABELS, tenon.tensor([1, 1]), ONE),
        r"expected targets \[1, S\], input_lengths \[1\] and target_lengths \[1\], got shapes",
    ),
    "ctc of more steps": (
        lambda: tenon.ctc_loss(PROBS, LABELS, tenon.tensor([5]), ONE),
        "expected input_lengths from 0 to 4, got 5",
    ),
    "ctc of more labels": (
        lambda: tenon.ctc_loss(PROBS, LABELS, TWO, tenon.tensor([3])),
        "expected target_lengths from 0 to 2, got 3",
    ),
    "blank": (
        lambda: tenon.ctc_loss(PROBS, LABELS, ONE, ONE, 3),
        "expected a blank from 0 to 2, got 3",
    ),
    "rnnt targets": (
        lambda: tenon.rnnt_loss(tenon.zeros((1, 2, 3, 4)), tenon.tensor([[1]]), ONE, ONE),
        r"\[rnnt_loss\] expected targets of shape \(1, 2\) and lengths of shape \[1\]",
    ),
    "rnnt without steps": (
        lambda: tenon.rnnt_loss(tenon.zeros((1, 2, 3, 4)), LABELS, tenon.tensor([0]), ONE),
        "expected input_lengths from 1 to 2, got 0",
    ),
    "viterbi transition": (
        lambda: tenon.viterbi_decode(tenon.zeros((1, 2, 3)), tenon.zeros((2, 3)), ONE),
        r"expected potentials \[N, T, tags\] and transition \[tags, tags\], got shapes",
    ),
    "viterbi lengths": (
        lambda: tenon.viterbi_decode(
            tenon.zeros((1, 2, 3)), tenon.zeros((3, 3)), tenon.tensor([0])
        ),
        "expected lengths from 1 to 2, got 0",
    ),
    "gather_tree": (
        lambda: tenon.gather_tree(tenon.zeros((1, 2, 3)), LABELS),
        "expected integer parents of the shape of ids, got",
    ),
    "edit_distance": (
        lambda: tenon.edit_distance(LABELS, LABELS, tenon.tensor([3]), ONE),
        r"\[edit_distance\] expected input_lengths from 0 to 2, got 3",
    ),
    "sequence_pad": (
        lambda: tenon.sequence_pad(tenon.zeros((3,)), LABELS),
        r"expected integer lengths of shape \[N\], got int64 of shape \(1, 2\)",
    ),
    "sequence_reverse": (
        lambda: tenon.sequence_reverse(tenon.zeros((1, 3)), tenon.tensor([4])),
        "expected lengths from 0 to 3, got 4",
    ),
    "top_p": (
        lambda: tenon.top_p_sampling(tenon.ones((2, 3)), tenon.ones((3,))),
        r"expected floating probabilities \[..., classes\] and p \[...\], got float32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_a_label_that_is_no_class():
    with pytest.raises(IndexError, match="expected targets from 0 to 2, got 3"):
        tenon.ctc_loss(PROBS, tenon.tensor([[3, 0]]), TWO, ONE)
