# SPDX-License-Identifier: Apache-2.0
"""The layer that decodes tags."""

import numpy as np
import pytest
import tenon
from tenon import nn


@pytest.mark.parametrize("ends", [True, False])
def test_decoder_is_the_operator(ends):
    potentials, transitions = tenon.normal([3, 5, 4]), tenon.normal([4, 4])
    lengths = tenon.tensor([5, 2, 1])
    scores, paths = nn.ViterbiDecoder(transitions, ends)(potentials, lengths)
    want = tenon.viterbi_decode(potentials, transitions, lengths, ends)
    np.testing.assert_array_equal(scores.numpy(), want[0].numpy())
    np.testing.assert_array_equal(paths.numpy(), want[1].numpy())


def test_transitions_move_with_the_layer():
    assert list(nn.ViterbiDecoder(tenon.zeros([3, 3])).state_dict()) == ["transitions"]


def test_transitions_are_square():
    with pytest.raises(
        ValueError, match=r"expected transitions \[tags, tags\], got shape \(2, 3\)"
    ):
        nn.ViterbiDecoder(tenon.zeros([2, 3]))
