# SPDX-License-Identifier: Apache-2.0
"""How benchmarks time: with contestants whose times are scripted, so that nothing depends on a clock."""

import itertools
import os

import _protocol
import pytest
from _protocol import Times, interleave


class Scripted:
    """A contestant: seconds per call and the time of the empty loop, one pair a round."""

    process = os.getpid()

    def __init__(self, *rounds):
        self.rounds = itertools.cycle(rounds)

    def run(self, count):
        seconds, spin = next(self.rounds)
        return seconds * count, spin


@pytest.fixture
def one_call(monkeypatch):
    """No calibration: each round is one call."""
    monkeypatch.setattr(_protocol, "calls_in", lambda seconds, turns: 1)


FAST, SLOW = 1e-4, 2e-4


def test_rounds_on_a_slow_clock_are_measured_again(one_call):
    ours = Scripted((1.0, FAST), (2.0, SLOW), (1.0, FAST))
    theirs = Scripted((4.0, FAST), (8.0, FAST), (4.0, FAST))
    times = interleave({"tenon": ours, "numpy": theirs}, rounds=6)
    assert times.clean
    assert times.rounds == {"tenon": [1.0] * 6, "numpy": [4.0] * 6}
    assert times.ratio("numpy") == 0.25


def test_a_peer_on_a_slow_clock_spoils_the_round(one_call):
    ours, theirs = Scripted((1.0, FAST)), Scripted((1.0, FAST), (2.0, SLOW))
    times = interleave({"tenon": ours, "numpy": theirs}, rounds=5)
    assert times.rounds["numpy"] == [1.0] * 5


def test_a_clock_that_stays_slow_is_said(one_call):
    ours = Scripted((1.0, FAST), *[(2.0, SLOW)] * 100)
    times = interleave({"tenon": ours}, rounds=5, patience=3)
    assert not times.clean
    assert len(times.rounds["tenon"]) == 15


def test_the_ratio_is_of_rounds_and_not_of_medians():
    times = Times({"tenon": [1.0, 10.0, 3.0], "numpy": [2.0, 20.0, 3.0]}, True, 0.0)
    assert times.ratio("numpy") == 0.5
    assert times.median() == 3.0
    assert times.best_ratio("numpy") == 0.5
    assert times.between("numpy", "tenon", "torch").peers == ["tenon"]


def test_spread_is_that_of_the_middle_half():
    assert Times({"tenon": [1.0, 2.0, 3.0, 4.0, 5.0]}, True, 0.0).spread() == pytest.approx(2 / 3)
    assert Times({"tenon": [1.0]}, True, 0.0).spread() == 0.0


def test_a_turn_lasts_about_as_long_as_asked():
    assert _protocol.calls_in(1.0, Scripted((0.125, FAST))) == 8
    assert _protocol.calls_in(0.01, Scripted((2.0, FAST))) == 1
