# SPDX-License-Identifier: Apache-2.0
"""Names that a namespace leaves to another one, and decoding by Paddle's parameters."""

import pytest
import tenon
from tenon.compat import paddle, torch


@pytest.mark.parametrize(
    "name,there",
    [
        ("Size", "alias"),
        ("autocast", "alias"),
        ("embedding_bag", "torch.nn.functional.embedding_bag"),
        ("segment_reduce", "tenon.geometric"),
    ],
)
def test_a_name_that_is_elsewhere_says_where(name, there):
    with pytest.raises(AttributeError, match=f"does not cover torch.{name}; .*{there}"):
        getattr(torch, name)


class Chain:
    """A cell whose logits depend on the last word alone: after 0 comes 2, then 3, then the end 1."""

    def __call__(self, words, states):
        following = tenon.tensor([2, 1, 3, 1])[words]
        return (tenon.arange(4) == following[:, None]).to("float32") * 9.0, states


def test_paddle_decodes_one_step_more_than_the_number():
    decoder = paddle.nn.BeamSearchDecoder(Chain(), 0, 1, 2)
    first = tenon.zeros([1, 3])
    ids, _ = paddle.nn.dynamic_decode(decoder, first, max_step_num=1)
    assert ids[0, :, 0].tolist() == [2, 3]
    with pytest.raises(NotImplementedError, match="expected is_test=False, got True"):
        paddle.nn.dynamic_decode(decoder, first, is_test=True)
