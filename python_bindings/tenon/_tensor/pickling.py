# SPDX-License-Identifier: Apache-2.0
"""What pickles of tensors and operators name; compiled functions have no name that pickle accepts."""

from tenon import _core


def tensor(*state):
    """A tensor from its class, bytes, dtype, shape, device and requires_grad."""
    return _core._rebuild(*state)


def operator(name):
    """The operator of a name."""
    return _core.operator(name)
