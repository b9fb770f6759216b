# SPDX-License-Identifier: Apache-2.0
"""No test here may hang: whatever waits for longer than three minutes ends the run with the stacks of all threads."""

import faulthandler

import pytest

SECRET = bytes(range(1, 17)).hex()


@pytest.fixture(autouse=True)
def job_secret(monkeypatch):
    """No file in the home of who runs the tests."""
    monkeypatch.setenv("TENON_JOB_SECRET", SECRET)


@pytest.fixture(autouse=True)
def hard_limit():
    faulthandler.dump_traceback_later(180.0, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
