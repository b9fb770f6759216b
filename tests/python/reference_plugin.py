# SPDX-License-Identifier: Apache-2.0
"""The reference device, which has every optional group: for tests of what is built on them."""

import os
import pathlib

import pytest
import tenon

PATH = (
    pathlib.Path(os.environ.get("TENON_BUILD_DIR", "build/release"))
    / "conformance/reference/libtenon_reference.so"
).absolute()

needs_reference = pytest.mark.skipif(
    not PATH.exists(), reason=f"TENON_BUILD_DIR has no {PATH.name}"
)


def load():
    tenon.load_plugin(PATH)
