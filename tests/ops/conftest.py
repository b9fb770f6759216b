# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

DEVICES = os.environ.get("TENON_TEST_DEVICES", "cpu").split(",")


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def quiet_numpy():
    with np.errstate(all="ignore"):
        yield
