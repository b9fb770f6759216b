# SPDX-License-Identifier: Apache-2.0
"""No test here may hang: whatever waits for longer than three minutes ends the run with the stacks of all threads."""

import faulthandler

import pytest


@pytest.fixture(autouse=True)
def hard_limit():
    faulthandler.dump_traceback_later(180.0, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
