# SPDX-License-Identifier: Apache-2.0
"""Some wrong structures; more by `python -m tests.fuzz.structures`."""

from .structures import run


def test_wrong_structures_are_refused_and_right_ones_answered():
    found = run(3000, 7)
    assert found["refused"] > 500 and found["answered"] > 500
