# SPDX-License-Identifier: Apache-2.0
"""The device that tests of PyTorch's device use: the guide's plugin, which has memory of its own, under the name "toy"."""

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import tenon  # noqa: E402

DEVICE = "toy"


def library() -> str:
    given = os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)
    default = Path(__file__).parents[3] / "build" / "custom_device" / "libtenon_toy.so"
    return next((each for each in (*given, str(default)) if "libtenon_toy" in each), str(default))


def registered() -> None:
    """Registers the device, or skips the module's tests where the plugin or PyTorch's headers are not."""
    path = library()
    if not os.path.exists(path):
        pytest.skip(f"{path} has not been built", allow_module_level=True)
    tenon.plugins.load(path)
    tenon.torch.device.register(DEVICE)
