# SPDX-License-Identifier: Apache-2.0
"""What pickles of tensors and operators name; compiled functions have no name that pickle accepts."""

from tenon import _core


def tensor(*state):
    """A tensor from its class, bytes, dtype, shape, device and requires_grad."""
    return _core._rebuild(*state)


def operator(name):
    """The operator of a name."""
    return _core.operator(name)


def reduce_composed(whole):
    """What a pickle of a tensor that is composed of others holds: its parts."""
    if whole.layout == "sharded":
        raise TypeError(
            "expected a tensor that one process has, got one of layout sharded, of which this rank has a part; pickle "
            "full_tensor() or to_local(), or save it with tenon.distributed.checkpoint"
        )
    state = (whole.layout, tuple(whole.shape), list(_core.parts_of(whole)), _core.words_of(whole))
    return composed, state


def composed(layout, shape, parts, words):
    """A tensor that is composed of others, from the name of its layout, shape, parts and words."""
    return _core.compose(layout, shape, parts, words)
