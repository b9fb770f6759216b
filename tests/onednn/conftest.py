# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of oneDNN."""

import re
import textwrap

import pytest
from programs_support import run_python


@pytest.fixture
def run():
    def run_program(program, **environment):
        prelude = "import numpy as np, tenon\nimport tenon.nn.functional as F\n"
        return run_python("-c", prelude + textwrap.dedent(program), **environment)

    return run_program


@pytest.fixture(scope="session")
def library():
    """The version of oneDNN; tests that need one are skipped without it."""
    program = """
import tenon
with tenon.autotune():
    tenon.ones((64, 64)) @ tenon.ones((64, 64))
decisions = tenon.autotune.report()["decisions"]
print(decisions[0]["versions"] if decisions else "")
"""
    found = re.search(r"oneDNN [\d.]+", run_python("-c", program)[0])
    if not found:
        pytest.skip("needs oneDNN (Debian: libdnnl2)")
    return found[0]
