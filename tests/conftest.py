# SPDX-License-Identifier: Apache-2.0
"""How pytest-xdist divides the tests among processes, where it runs them in several (scripts/test.sh
starts one for each core), and what tests of several folders share."""

import gc
import zlib

import pytest

# Files of thousands of independent cases, which are divided into so many parts.
DIVIDED = {
    f"tests/ops/test_{name}.py"
    for name in ("values", "products", "gradients", "attention", "pooling")
}
PARTS = 16


def unit_of(nodeid):
    """The name of the tests that run in one process with the test `nodeid`.

    The tests of a file stay together, because they may share a fixture that is dear (a built
    extension) or can be made only once in a process (a loaded plugin), except in DIVIDED; those of
    tests/packages share what they build and stay together as a folder."""
    path = nodeid.split("::", 1)[0]
    if path in DIVIDED:
        return f"{path} {zlib.crc32(nodeid.encode()) % PARTS}"
    if path.startswith("tests/packages/"):
        return "tests/packages"
    return path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit_of(nodeid)

    return ByUnit(config, log)


@pytest.fixture
def frozen_heap():
    """gc.collect() and gc.get_objects() see what the test makes, and not the hundred thousands of
    objects that pytest keeps for its cases."""
    gc.freeze()
    yield
    gc.unfreeze()
