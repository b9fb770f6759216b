# SPDX-License-Identifier: Apache-2.0
"""Runs on the device `level1`, which has primitive kernels and no others, and may not use the host."""

import os
import sys
from pathlib import Path

import pytest
import tenon

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))


@pytest.fixture(scope="session", autouse=True)
def level1():
    folder = Path(os.environ["TENON_BUILD_DIR"]) / "tests" / "primitives"
    for name in ("level1", "level1_half"):
        tenon.load_plugin(str(folder / f"libtenon_{name}.so"), overrides=True)


@pytest.fixture(autouse=True)
def no_host():
    with tenon.fallback("deny"):
        yield
