# SPDX-License-Identifier: Apache-2.0
"""Answers do not depend on neighbours: a short form of determinism.py, which runs nightly."""

import pytest
import tenon
from determinism import KINDS, check, check_restart, requests_of


@pytest.fixture(autouse=True)
def threads():
    before = tenon.get_num_threads()
    yield
    tenon.set_num_threads(before)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_each_request_alone(kind):
    seen = check(kind, requests_of(12, 90), [1, 5, 300, 16, 31, 64], 3, seed=1)
    assert all(seen.values()), seen  # each way of computing has been there


def test_a_new_process_answers_alike():
    check_restart("q8_0", 6, 40)
