# SPDX-License-Identifier: Apache-2.0
"""TENON_TEST_DEVICES names the device kinds to test, "cpu" by default; TENON_TEST_PLUGINS libraries
to load first."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

sys.path.insert(0, str(Path(__file__).parent))

DEVICES = os.environ.get("TENON_TEST_DEVICES", "cpu").split(",")


@pytest.fixture(scope="session", autouse=True)
def plugins():
    for path in filter(None, os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)):
        tenon.load_plugin(path)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def quiet_numpy():
    with np.errstate(all="ignore"):
        yield
