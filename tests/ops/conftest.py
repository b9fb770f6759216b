# SPDX-License-Identifier: Apache-2.0
"""TENON_TEST_DEVICES names the device kinds to test, "cpu" by default; TENON_TEST_PLUGINS libraries
to load first. TENON_TEST_EXHAUSTIVE=1 runs every case on every device."""

import collections
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

sys.path.insert(0, str(Path(__file__).parent))

from running import dtype_name, skip_unserved

DEVICES = os.environ.get("TENON_TEST_DEVICES", "cpu").split(",")

# The shapes in these files are chosen for the blocking of the CPU's kernels. Kernels of the test
# devices have no blocks, and are slow: they run one case of so many. TENON_TEST_EXHAUSTIVE=1 runs all.
CASES_PER_OTHER_DEVICE = {"test_products.py": 16, "test_attention.py": 4, "test_pooling.py": 4}
# So do processes for the instruction sets that this processor would not choose (run_with_instruction_set): the odd
# number leaves some cases of each parameter.
CASES_PER_OTHER_INSTRUCTION_SET = 3 if "TENON_CPU_ISA" in os.environ else 1


def pytest_collection_modifyitems(config, items):
    if os.environ.get("TENON_TEST_EXHAUSTIVE") == "1":
        return
    seen = collections.Counter()
    kept, dropped = [], []
    for item in items:
        device = getattr(item, "callspec", None) and item.callspec.params.get("device", "cpu")
        if device and device.startswith("cpu"):
            every = CASES_PER_OTHER_INSTRUCTION_SET
        else:
            every = CASES_PER_OTHER_DEVICE.get(item.path.name, 1)
        if every > 1 and device:
            key = (item.path, item.originalname, device)
            seen[key] += 1
            if seen[key] % every != 1:
                dropped.append(item)
                continue
        kept.append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.fixture(scope="session", autouse=True)
def plugins():
    for path in filter(None, os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)):
        tenon.load_plugin(path)


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """The kind to test. A test that gives it numbers of a dtype for which it has nothing is skipped where the host may
    not stand in: a chip without float64 refuses whatever is done with them."""
    make = tenon.tensor

    def make_served(*args, **options):
        tensor = make(*args, **options)
        skip_unserved(str(tensor.device), dtype_name(tensor))
        return tensor

    if not request.param.startswith("cpu"):
        monkeypatch.setattr(tenon, "tensor", make_served)
    return request.param


@pytest.fixture(autouse=True)
def quiet_numpy():
    with np.errstate(all="ignore"):
        yield
